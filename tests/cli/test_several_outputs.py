"""Commands on models of several labels and outputs: ``predict``, ``explain``, ``inspect`` and refusals."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

import unkernel
from unkernel import PolySVC, RecordEncoder
from unkernel.data import write_svmlight
from unkernel.models import from_estimator

RECORDS = [{"age": age, "town": town} for age in range(20, 80, 5) for town in ("Nara", "Uji, Kyoto", "Kobe")]
TOPICS = ["old", "by the sea", "é"]
INDICATOR = np.array(
    [[one["age"] > 45, one["town"] == "Kobe", "a" not in one["town"]] for one in RECORDS], dtype=int
)
CLASSES = np.array([[one["town"], "old" if one["age"] > 45 else "new"] for one in RECORDS])


def compile_last_step(last: Any, targets: Any, classes: Any = None) -> Any:
    pipeline = make_pipeline(RecordEncoder(n_bins=4, min_count=1), last).fit(RECORDS, targets)
    return unkernel.compile(pipeline, classes=classes, measure=False)


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Any]:
    return {
        "labels": compile_last_step(OneVsRestClassifier(LogisticRegression()), INDICATOR, TOPICS),
        "outputs": compile_last_step(MultiOutputClassifier(LogisticRegression()), CLASSES),
        "numbers": compile_last_step(Ridge(), INDICATOR[:, :2] * 1.5),
    }


@pytest.fixture(scope="module")
def files(models, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    for name, model in models.items():
        model.save(folder / f"{name}.uk")
    (folder / "new.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return {name: folder / f"{name}.uk" for name in models} | {"data": folder / "new.jsonl"}


def test_predictions_as_csv(run, models, files, tmp_path):
    output = tmp_path / "answers.csv"
    for name, columns in (
        (
            "labels",
            [f"{what} {topic}" for what in ("prediction", "score", "probability") for topic in TOPICS],
        ),
        (
            "outputs",
            [
                *("prediction 0", "prediction 1"),
                *(f"score 0 {town}" for town in ("Kobe", "Nara", "Uji, Kyoto")),
                "score 1",
                *(f"probability 0 {town}" for town in ("Kobe", "Nara", "Uji, Kyoto")),
                *("probability 1 new", "probability 1 old"),
            ],
        ),
        ("numbers", ["prediction 0", "prediction 1", "score 0", "score 1"]),
    ):
        options = ["--scores"] + (["--probability"] if name != "numbers" else [])
        assert run("predict", files[name], files["data"], "-o", output, *options, "--force").code == 0
        with output.open(newline="") as file:
            header, *rows = csv.reader(file)
        assert header == columns
        model = models[name]
        for record, row in zip(RECORDS, rows, strict=True):
            answer = model.predict_one(record)
            assert row[: len(answer)] == list(map(str, answer))
            shares = model.predict_proba_one(record) if name != "numbers" else []
            flat = [share for part in shares for share in part] if name == "outputs" else shares
            assert list(map(float, row[len(answer) :])) == [*model.score_one(record), *flat]


def test_predictions_as_json_lines_and_plain_lines(run, models, files, tmp_path):
    out = run("predict", files["labels"], files["data"], "-o", "-", "-q").out.splitlines()
    answers = [json.loads(line) for line in out]
    expected = [
        [topic for topic, is_set in zip(TOPICS, row, strict=True) if is_set]
        for row in models["labels"].predict(RECORDS)
    ]
    assert answers == [{"prediction": prediction} for prediction in expected]
    assert [] in expected
    lines = tmp_path / "answers.txt"
    assert run("predict", files["outputs"], files["data"], "-o", lines, "-q").code == 0
    assert lines.read_text().splitlines() == [
        " ".join(row) for row in models["outputs"].predict(RECORDS).tolist()
    ]
    for name, note in (
        ("labels", "the records have no column that is known as the target"),
        ("outputs", "the model predicts several labels or values for each row"),
    ):
        assert note in run("predict", files[name], files["data"], "-o", lines, "--force").out


def test_explain(run, models, files):
    record = json.dumps(RECORDS[0])
    labels = run("explain", files["labels"], record, "--of", "é", "--json").json
    assert (labels["for_class"], labels["scores"]) == ("é", TOPICS)
    assert labels["prediction"] == ["é"] * models["labels"].predict_one(RECORDS[0])[2]
    assert labels["score"] == pytest.approx(models["labels"].score_one(RECORDS[0]))
    outputs = run("explain", files["outputs"], record, "--of", "1", "--json").json
    assert (outputs["for_output"], outputs["for_class"], outputs["against"]) == (1, "old", "new")
    assert outputs["shown"]["score"] == pytest.approx(models["outputs"].score_one(RECORDS[0])[-1:])
    text = run("explain", files["outputs"], record).out
    assert "output 0" in text and "['Nara', 'new']" in text
    message = run("explain", files["outputs"], record, "--of", "old").error()
    assert message == "--of must be one of 0, 1, got 'old'"


def test_inspect(run, files):
    text = run("inspect", files["labels"], "--top", "3").out
    assert "3: old, by the sea, é" in text and "each label on its own" in text
    description = run("inspect", files["outputs"], "--top", "40", "--json").json
    assert [output["scheme"] for output in description["outputs"]] == ["one_vs_rest", "binary"]
    assert {entry["speaks_for"] for entry in description["top"]} >= {"output 1: old", "output 1: new"}
    assert "output 1: " in run("inspect", files["outputs"], "--top", "40").out
    assert "2 numbers (regression)" in run("inspect", files["numbers"]).out
    shares = run("inspect", files["labels"], "--data", files["data"], "--json").json
    assert sum(term["share"] for term in shares["importances"]["terms"]) == pytest.approx(1.0)


def test_many_outputs_are_listed_in_part(run, tmp_path):
    targets = (np.arange(len(RECORDS))[:, None] >> np.arange(12)) % 2
    targets[0], targets[1] = 0, 1
    inner = FixedThresholdClassifier(LogisticRegression(), threshold=0.25)
    compile_last_step(MultiOutputClassifier(inner), targets).save(tmp_path / "m.uk")
    text = " ".join(run("inspect", tmp_path / "m.uk").out.split())
    assert "output 9 2 classes: 0, 1; 1 from a probability of 0.25 on" in text
    assert "output 10" not in text and "further outputs 2" in text


def test_what_one_target_needs_is_refused(run, files, tmp_path):
    for command in (
        ["evaluate", files["outputs"], files["data"]],
        ["report", files["labels"], "--test", files["data"], "-o", tmp_path / "report.html"],
    ):
        assert "several labels or values" in run(*command).error()
    message = run("predict", files["numbers"], files["data"], "--probability").error()
    assert "no probabilities" in message or "numbers" in message
    compiled_again = tmp_path / "again.uk"
    assert run("compile", files["outputs"], "-o", compiled_again).code == 0
    assert unkernel.load(compiled_again).predict_one(RECORDS[0]) == ["Nara", "new"]
    message = run("compile", files["outputs"], "-o", tmp_path / "x.uk", "--decision-threshold", "0.3").error()
    assert "two classes" in message


def write_tags(path: Path, count: int, seed: int) -> list[list[str]]:
    """Write records with a list of labels; return the lists."""
    rng = np.random.default_rng(seed)
    tags = []
    with path.open("w") as file:
        for _ in range(count):
            age, town = int(rng.integers(20, 70)), str(rng.choice(["Nara", "Kobe"]))
            found = {"old": age > 45, "by the sea": town == "Kobe"}
            tags.append([name for name, is_set in found.items() if is_set != (rng.random() < 0.05)])
            file.write(json.dumps({"age": age, "town": town, "tags": tags[-1]}) + "\n")
    return tags


def test_a_target_of_lists_is_learned_as_labels(run, tmp_path):
    train, test, model = tmp_path / "train.jsonl", tmp_path / "test.jsonl", tmp_path / "tags.uk"
    write_tags(train, 150, 0)
    gold = write_tags(test, 60, 1)
    trained = run("train", train, "--target", "tags", "-o", model, "--test", test, "--json").json
    assert (trained["task"], trained["labels"], trained["target"]) == (
        "labels",
        ["by the sea", "old"],
        "tags",
    )
    fast = unkernel.load(model)
    binarizer = MultiLabelBinarizer(classes=fast.classes_)
    truth = binarizer.fit_transform(gold)
    records = [json.loads(line) for line in test.read_text().splitlines()]
    predicted = fast.predict(records)
    accuracy, f1 = accuracy_score(truth, predicted), f1_score(truth, predicted, average="micro")
    assert accuracy > 0.7
    for measured in (trained["test"], run("evaluate", model, test, "--json").json):
        assert measured["accuracy"] == pytest.approx(accuracy)
        assert measured["f1"] == pytest.approx(f1)
        assert measured["precision"] == pytest.approx(precision_score(truth, predicted, average="micro"))
        assert measured["recall"] == pytest.approx(recall_score(truth, predicted, average="micro"))
    text = run("train", train, "--target", "tags", "-o", model, "--test", test, "--force").out
    assert "tags, predicted as labels" in text and "of all labels together" in text
    explained = run("explain", model, test, "--row", "2", "--json").json
    assert explained["label"] == gold[2]
    assert "classes" not in run("inspect", model).out
    message = run("train", train, "--target", "tags", "-o", model, "--threshold", "0.3", "--force").error()
    assert "--threshold is for two classes, not for labels" in message
    assert (
        "a label is a string or a number"
        in run("train", "logistic", train, "--target", "tags", "-o", tmp_path / "x.uk").error()
    )
    message = run("update", model, test, "-o", tmp_path / "x.uk").error()
    assert "a model of several labels or outputs cannot be updated" in message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"age": 3, "tags": "old"}', "151: column 'tags': other records have a list of labels"),
        ('{"age": 3, "tags": null}', "151: column 'tags': other records have a list of labels"),
        ('{"age": 3, "tags": ["old", 1.5]}', "151: column 'tags': a label in a list is a string or a whole"),
        ('{"age": 3, "tags": ["\\ud800"]}', "151: column 'tags': the label has a lone surrogate"),
        ('{"age": 3, "tags": [3]}', "labels must be all strings, or all whole numbers"),
    ],
    ids=["string", "null", "fraction", "surrogate", "types"],
)
def test_bad_lists_of_labels(run, tmp_path, line, message):
    train = tmp_path / "train.jsonl"
    write_tags(train, 150, 0)
    with train.open("a") as file:
        file.write(line + "\n")
    assert message in run("train", train, "--target", "tags", "-o", tmp_path / "x.uk").error()


def test_rows(run, tmp_path):
    X = RecordEncoder(min_count=1).fit_transform(RECORDS)
    estimator = OneVsRestClassifier(PolySVC()).fit(X, INDICATOR)
    from_estimator(estimator).save(tmp_path / "rows.uk")
    write_svmlight(tmp_path / "rows.svm", X, INDICATOR[:, 0])
    lines = run("predict", tmp_path / "rows.uk", tmp_path / "rows.svm", "-o", "-", "-q").out.splitlines()
    assert lines == [" ".join(map(str, row)) for row in estimator.predict(X).tolist()]
    explained = run("explain", tmp_path / "rows.uk", tmp_path / "rows.svm", "--row", "4", "--json").json
    assert explained["prediction"] == np.flatnonzero(estimator.predict(X)[4]).tolist()
    assert run("verify", tmp_path / "rows.uk").code == 0
    assert "several labels" in run("evaluate", tmp_path / "rows.uk", tmp_path / "rows.svm").error()
