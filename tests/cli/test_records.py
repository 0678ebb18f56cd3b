"""Successful commands on files of records."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

import unkernel
from unkernel import RecordEncoder, load
from unkernel.records.files import open_records

RUN = [sys.executable, "-m", "unkernel"]


@pytest.fixture
def parquet_file(tmp_path, people_records):
    names = list(people_records[0])
    pq.write_table(
        pa.table({name: [record[name] for record in people_records] for name in names}),
        tmp_path / "people.parquet",
    )
    return tmp_path / "people.parquet"


def test_training_shows_kinds_and_quality(run, people_file, tmp_path):
    result = run(
        "train", "poly", people_file, "--target", "rich", "-o", tmp_path / "m.uk", "--test", people_file
    )
    assert result.code == 0, result.err
    for words in (
        "age",
        "binned",
        "job",
        "category",
        "target",
        "test accuracy",
        "test log loss",
        "test ROC area",
    ):
        assert words in result.out
    result = run(
        "train", "poly", people_file, "--target", "rich", "-o", tmp_path / "m.uk", "--cv", 3, "--json"
    )
    output = result.json
    assert output["target"] == "rich"
    assert [(column["column"], column["kind"]) for column in output["columns"]] == [
        ("age", "binned"),
        ("job", "category"),
        ("member", "category"),
    ]
    assert sum(column["features"] for column in output["columns"]) == output["features"]
    assert output["training_accuracy"] > 0.95
    assert 0 < output["training_log_loss"] < 0.3
    assert output["training_roc_area"] > 0.95
    assert output["calibrated"] is True
    assert output["cross_validation"]["measures"]["accuracy"]["mean"] > 0.8


@pytest.mark.parametrize("kind", ["logistic", "linear"])
def test_other_kinds_of_models(run, people_file, tmp_path, kind):
    result = run("train", kind, people_file, "--target", "rich", "-o", tmp_path / "m.uk", "--json")
    assert result.code == 0, result.err
    assert result.json["training_log_loss"] < 0.6
    assert result.json["calibrated"] == (kind == "linear")
    fast = load(tmp_path / "m.uk")
    assert fast.predict_proba_one({"age": 60, "job": "pilot", "member": True})[1] > 0.5


def test_many_classes_and_class_weights(run, tmp_path):
    lines = "".join(f"{k % 7},{'abc'[k % 3]},{'xyz'[k % 3]}\n" for k in range(120))
    (tmp_path / "d.csv").write_text("n,c,label\n" + lines)
    result = run(
        "train", "poly", tmp_path / "d.csv", "--target", "label", "-o", tmp_path / "m.uk", "--json",
        "--class-weight", "x=2,y=1,z=1", "--degree", 1,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert result.json["classes"] == ["x", "y", "z"]
    assert result.json["training_accuracy"] == 1.0
    run(
        "predict",
        tmp_path / "m.uk",
        tmp_path / "d.csv",
        "-o",
        tmp_path / "a.tsv",
        "--scores",
        "--probability",
    )
    lines = (tmp_path / "a.tsv").read_text().splitlines()
    assert lines[0].split("\t") == [
        "prediction", "score x", "score y", "score z", "probability x", "probability y", "probability z",
    ]  # fmt: skip
    assert lines[1].startswith("x\t")


def test_schema_and_drop(run, people_file, tmp_path):
    (tmp_path / "s.json").write_text('{"age": "number", "member": "drop"}')
    result = run(
        "train", "poly", people_file, "--target", "rich", "-o", tmp_path / "m.uk", "--json", "--quiet",
        "--schema", tmp_path / "s.json", "--drop", "job", "--calibrate", 0,
    )  # fmt: skip
    assert result.code == 0, result.err
    assert [(column["column"], column["kind"]) for column in result.json["columns"]] == [("age", "number")]
    assert result.json["training_log_loss"] is None
    assert (
        "no probabilities"
        in run("predict", tmp_path / "m.uk", people_file, "-o", tmp_path / "a.csv", "--probability").error()
    )
    (tmp_path / "only.csv").write_text("age\n30\n70\n")  # dropped columns need not exist
    assert run("predict", tmp_path / "m.uk", tmp_path / "only.csv", "-o", tmp_path / "a.csv").code == 0


def test_all_formats_give_the_same_answers(run, people_model, people_file, parquet_file, people_records):
    tmp_path = parquet_file.parent
    (tmp_path / "people.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(record) + "\n" for record in people_records).encode())
    )
    shuffled = [dict(reversed(record.items())) for record in people_records]
    with (tmp_path / "people.tsv").open("w") as file:
        writer = csv.DictWriter(file, list(shuffled[0]), delimiter="\t")
        writer.writeheader()
        writer.writerows([row | {"member": str(row["member"]).lower()} for row in shuffled])
    expected = [str(prediction) for prediction in load(people_model).predict(people_records)]
    accuracies = set()
    for name in (people_file, parquet_file, tmp_path / "people.jsonl.gz", tmp_path / "people.tsv"):
        result = run("predict", people_model, name, "-o", tmp_path / "a.csv", "--force", "--json")
        assert result.code == 0, result.err
        assert (tmp_path / "a.csv").read_text().splitlines() == ["prediction", *expected]
        accuracies.add((result.json["accuracy"], result.json["log_loss"], result.json["roc_area"]))
    assert len(accuracies) == 1


def test_scores_and_probabilities_read_back(run, people_model, people_file, people_records, tmp_path):
    run("predict", people_model, people_file, "-o", tmp_path / "a.csv", "--scores", "--probability")
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    fast = load(people_model)
    assert list(rows[0]) == ["prediction", "score", "probability no", "probability yes"]
    np.testing.assert_array_equal(
        [float(row["score"]) for row in rows], fast.decision_function(people_records)
    )
    result = [[float(row["probability no"]), float(row["probability yes"])] for row in rows]
    np.testing.assert_array_equal(result, fast.predict_proba(people_records))
    run("predict", people_model, people_file, "-o", tmp_path / "a.jsonl", "--scores")
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert lines[0] == {"prediction": rows[0]["prediction"], "score": float(rows[0]["score"])}
    run("predict", people_model, people_file, "-o", tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text().splitlines() == [row["prediction"] for row in rows]


@pytest.mark.parametrize("learner", ["pairs", "pairs by class", "calibrated"])
def test_columns_of_scores_are_named_by_classes_or_pairs(run, people_records, learner, tmp_path):
    estimator = {
        "pairs": SVC(kernel="linear", decision_function_shape="ovo"),
        "pairs by class": SVC(kernel="linear"),
        "calibrated": CalibratedClassifierCV(LinearSVC(), cv=2),
    }[learner]
    y = ["abcd"[number % 4] for number in range(len(people_records))]
    fast = unkernel.compile(make_pipeline(RecordEncoder(), estimator).fit(people_records, y), measure=False)
    fast.save(tmp_path / "m.uk")
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(record) + "\n" for record in people_records))
    names = [f"score {name}" for name in "abcd"]
    if learner == "pairs":
        names = [f"score {i} : {j}" for i, j in itertools.combinations("abcd", 2)]
    for output in ("a.jsonl", "a.csv"):
        outcome = run(
            "predict", tmp_path / "m.uk", tmp_path / "people.jsonl", "-o", tmp_path / output, "--scores"
        )
        assert outcome.code == 0, outcome.err
        rows = (
            [json.loads(line) for line in (tmp_path / output).read_text().splitlines()]
            if output == "a.jsonl"
            else list(csv.DictReader((tmp_path / output).open()))
        )
        assert list(rows[0]) == ["prediction", *names]
        result = [[float(row[name]) for name in names] for row in rows]
        np.testing.assert_array_equal(result, fast.decision_function(people_records))


def test_remembered_answers(run, people_model, people_file, tmp_path):
    uncached = run(
        "predict", people_model, people_file, "-o", tmp_path / "plain.csv", "--scores", "--json"
    ).json
    cached = run(
        "predict",
        people_model,
        people_file,
        "-o",
        tmp_path / "cached.csv",
        "--scores",
        "--cache-rows",
        99,
        "--json",
    ).json
    assert (tmp_path / "cached.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    assert cached["cache"]["hits"] + cached["cache"]["misses"] == uncached["rows"]
    assert cached["cache"]["maxsize"] == 99 and "cache" not in uncached


def test_labels_are_quoted_where_they_must_be(run, tmp_path):
    (tmp_path / "d.csv").write_text("n,label\n" + '1,"a,""b"\n2,c\n' * 20)
    run("train", "poly", tmp_path / "d.csv", "--target", "label", "-o", tmp_path / "m.uk", "--quiet")
    run("predict", tmp_path / "m.uk", tmp_path / "d.csv", "-o", tmp_path / "a.csv")
    assert [row["prediction"] for row in csv.DictReader((tmp_path / "a.csv").open())][:2] == ['a,"b', "c"]


def test_stdin_and_stdout(run, stdin, people_model, people_records):
    record = {key: value for key, value in people_records[0].items() if key != "rich"}
    stdin((json.dumps(record) + "\n").encode())
    result = run("predict", people_model, "-", "-o", "-", "--quiet")
    assert json.loads(result.out) == {"prediction": load(people_model).predict_one(record)}
    stdin(b"age,job,member\n60,pilot,true\n")
    result = run("predict", people_model, "-", "-o", "-")
    assert result.out == "prediction\nyes\n"
    assert "not all records have a label in column 'rich'" in result.err


def test_records_from_stdin_are_answered_on_stdout(run, stdin, people_model, people_file, tmp_path):
    line = b'{"age": 60, "job": "pilot", "member": true, "rich": "yes"}\n'
    stdin(line)
    result = run("predict", people_model, "-", "--probability")
    answer = json.loads(result.out)
    assert answer["prediction"] == "yes" and answer["probability yes"] > 0.5
    assert "accuracy" in result.err
    stdin(b"age,job,member\n60,pilot,true\n20,pilot,true\n")
    result = run("predict", people_model, "-", "--quiet")
    assert (result.code, result.out, result.err) == (0, "prediction\nyes\nno\n", "")
    stdin(line)
    assert run("predict", people_model, "-", "--json").json["correct"] == 1  # the summary, as JSON
    stdin(line)
    assert "accuracy" in run("predict", people_model, "-", "-o", tmp_path / "a.txt").out
    assert (tmp_path / "a.txt").read_text() == "yes\n"


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_several_files_are_one_table(run, people_records, people_file, tmp_path, suffix):
    """By name or by pattern; columns may have another order."""
    for number, part in enumerate((people_records[:100], people_records[100:])):
        records = [dict(sorted(record.items(), reverse=bool(number))) for record in part]
        place = tmp_path / f"part-{number}.{suffix}"
        if suffix == "parquet":
            pq.write_table(pa.Table.from_pylist(records), place)
        elif suffix == "jsonl":
            place.write_text("".join(json.dumps(record) + "\n" for record in records))
        else:
            with place.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(records[0]))
                writer.writeheader()
                writer.writerows(records)
    options = ("--target", "rich", "--json", "--force", "-o", tmp_path / "m.uk")
    files = [tmp_path / f"part-{number}.{suffix}" for number in (0, 1)]
    by_name = run("train", "linear", *files, *options).json
    assert by_name["rows"] == 300 and by_name["data"] == f"{files[0]} and 1 other file"
    model_bytes = (tmp_path / "m.uk").read_bytes()
    assert run("train", "linear", tmp_path / f"part-*.{suffix}", *options).json["rows"] == 300
    assert (tmp_path / "m.uk").read_bytes() == model_bytes
    of_one_file = run("train", "linear", people_file, *options).json
    assert by_name["training_accuracy"] == of_one_file["training_accuracy"]
    tuned = run("tune", "linear", *files, "--target", "rich", "--C", "1,2", "--cv", 2, "--json")
    assert tuned.json["rows"] == 300


def test_records_of_a_file_are_answered_on_stdout_too(run, people_model, people_file, tmp_path):
    result = run("predict", people_model, people_file, "--scores")
    assert "accuracy" in result.err
    run("predict", people_model, people_file, "--scores", "-o", tmp_path / "a.csv")
    assert result.out == (tmp_path / "a.csv").read_text()
    assert (
        "name a file with --output" in run("predict", people_model, people_file, "--scores", "--json").error()
    )


def test_records_from_a_pipe_are_answered_line_by_line(people_model):
    source = str(Path(unkernel.__file__).parents[1])
    with subprocess.Popen(
        [*RUN, "predict", str(people_model), "-", "--quiet"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": source},
    ) as process:  # fmt: skip
        for age, answer in ((60, "yes"), (20, "no"), (61, "yes")):
            process.stdin.write(json.dumps({"age": age, "job": "pilot", "member": True}).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == {"prediction": answer}
        process.stdin.close()
        assert process.wait() == 0


def test_predicting_needs_no_pandas(people_model, people_file):
    """Scikit-learn is not needed either, even if the file has labels: imports would take longer than
    predictions.
    """
    code = (
        "import sys; from unkernel.cli import main; main(sys.argv[1:]); "
        "print({'pandas', 'sklearn'} & {*sys.modules})"
    )
    source = str(Path(unkernel.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-c", code, "predict", str(people_model), str(people_file), "--quiet"],
        env=os.environ | {"PYTHONPATH": source}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert result.stdout.endswith("\nset()\n"), result.stderr


def test_evaluate_and_predict_report_the_same_measures(run, people_model, people_file):
    output = run("evaluate", people_model, people_file, "--json").json
    predicted = run("predict", people_model, people_file, "--json").json
    for name in ("accuracy", "f1", "roc_area", "log_loss", "rows"):
        assert output[name] == predicted[name]
    assert "log loss" in run("evaluate", people_model, people_file).out


def test_explain_a_record_and_one_of_a_file(run, people_model, people_file, people_records):
    fast = load(people_model)
    result = run("explain", people_model, people_file, "--row", 3, "--json", "--top", 2)
    assert result.code == 0, result.err
    output = result.json
    assert output["score"] == pytest.approx(fast.score_one(people_records[3]))
    assert output["label"] == people_records[3]["rich"]
    assert len(output["contributions"]) == 2
    record = {key: value for key, value in people_records[3].items() if key != "rich"}
    result = run("explain", people_model, json.dumps(record), "--json")
    assert result.json["score"] == output["score"]
    result = run("explain", people_model, json.dumps(record), "--of", "yes")
    assert "age" in result.out and "label in the file" not in result.out
    assert "no record 9,999" in run("explain", people_model, people_file, "--row", 9999).error()


def test_a_misspelt_key_of_a_record_to_explain_is_named(run, people_model):
    result = run("explain", people_model, '{"Age": 50, "job": "pilot", "rich": "yes"}')
    assert result.code == 0
    assert "does not know 'Age' and ignores it; it reads age, job, member" in " ".join(result.err.split())
    assert run("explain", people_model, '{"age": 50, "job": "pilot", "rich": "yes"}').err == ""


def test_a_record_in_place_of_a_file_to_predict(run, people_model):
    error = run("predict", people_model, '{"age": 50}').error()
    assert error.startswith("DATA must be a file, got the record {"), error


def test_inspect_bench_and_compile(run, people_model, people_file, tmp_path):
    output = run("inspect", people_model, "--top", 2, "--json").json
    assert output["target"] == "rich"
    assert [column["column"] for column in output["columns"]] == ["age", "job", "member"]
    assert output["classes"] == ["no", "yes"]
    assert output["probability"] is True
    result = run("inspect", people_model, "--top", 2)
    assert "binned" in result.out and "heaviest conjunctions" in result.out
    assert "job = " in result.out  # by names, not by numbers
    result = run("bench", people_model, people_file, "--seconds", 0.01, "--jobs", 1)
    assert "µs/record" in result.out, result.err
    result = run(
        "compile", people_model, "-o", tmp_path / "c.uk", "--engine", "expanded", "--sample", people_file
    )
    assert result.code == 0, result.err
    assert (
        run("evaluate", tmp_path / "c.uk", people_file, "--json").json["correct"]
        == run("evaluate", people_model, people_file, "--json").json["correct"]
    )


def test_unknown_keys(run, people_model, people_file, model_file, tmp_path):
    strict, lenient = tmp_path / "strict.uk", tmp_path / "lenient.uk"
    assert run("compile", people_model, "-o", strict, "--unknown-keys", "error").code == 0
    assert run("compile", strict, "-o", lenient, "--unknown-keys", "ignore").code == 0
    with_unknown_column = tmp_path / "more.csv"
    with_unknown_column.write_text("age,job,member,shoes\n60,pilot,true,44\n")
    assert "does not know the column 'shoes'" in run("predict", strict, with_unknown_column).error()
    for model in (people_model, lenient):
        assert run("predict", model, with_unknown_column).code == 0
    for command in (["evaluate"], ["explain"], ["bench", "--seconds", 0.01, "--jobs", 1], ["predict"]):
        result = run(command[0], strict, people_file, *command[1:])  # the target is in the file
        assert result.code == 0, result.err
    lines = tmp_path / "people.jsonl"
    lines.write_text('{"age": 60, "job": "pilot", "member": true, "rich": "yes"}\n')
    assert run("evaluate", strict, lines, "--json").json["accuracy"] == 1.0
    result = run("compile", model_file, "-o", tmp_path / "c.uk", "--unknown-keys", "error")
    assert "--unknown-keys is for models of records" in result.error()


def test_tuning(run, people_file, tmp_path):
    result = run(
        "tune", "poly", people_file, "--target", "rich", "--degree", 1, "--C", "0.1,1", "--cv", 2,
        "-o", tmp_path / "best.uk", "--json",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert len(result.json["settings"]) == 2
    assert load(tmp_path / "best.uk").predict_one({"age": 60, "job": "pilot", "member": True}) == "yes"


def test_models_saved_from_python_predict_without_a_target(run, people_records, people_file, tmp_path):
    from sklearn.pipeline import make_pipeline

    X = [{key: record[key] for key in ("age", "job")} for record in people_records]
    y = [record["rich"] for record in people_records]
    pipeline = make_pipeline(unkernel.RecordEncoder(), unkernel.PolySVC(degree=2)).fit(X, y)
    unkernel.compile(pipeline).save(tmp_path / "m.uk")
    result = run("predict", tmp_path / "m.uk", people_file, "-o", tmp_path / "a.txt")
    assert result.code == 0, result.err
    assert "not known" in result.out
    assert (tmp_path / "a.txt").read_text().split() == list(pipeline.predict(X))


def test_memory_does_not_grow_with_the_file(people_model, people_file, run, monkeypatch, tmp_path):
    """Blocks are processed one after another."""
    monkeypatch.setattr("unkernel.cli.inputs.records._PREDICTION_BLOCK_BYTES", 64)
    block_sizes = []
    real = open_records

    def watched(*arguments, **options):
        file = real(*arguments, **options)
        blocks = file.blocks
        file.blocks = lambda *a: (block_sizes.append(block.n_rows) or block for block in blocks(*a))
        return file

    monkeypatch.setattr("unkernel.cli.inputs.records.open_records", watched)
    expected = io.StringIO()
    result = run("predict", people_model, people_file, "-o", tmp_path / "a.csv", "--json")
    assert result.json["rows"] == sum(block_sizes) == 300
    assert max(block_sizes) < 10, expected
