"""The measures that ``train``, ``predict`` and ``evaluate`` report equal scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, ndcg_score, precision_score, recall_score, roc_auc_score

from unkernel import load, read_svmlight
from unkernel.cli.learners.linear import compute_objective_measure
from unkernel.cli.quality import compare_classes, ndcg
from unkernel.measures.detection import roc_area
from unkernel.models import Decision


@pytest.fixture
def noisy_scores() -> tuple[np.ndarray, np.ndarray]:
    """Return scores, some of which are equal, and labels that usually have the sign of the score."""
    generator = np.random.default_rng(0)
    scores = generator.normal(size=200).round(1)
    return scores, np.where(scores + generator.normal(size=200) > 0.3, 1, -1)


def test_two_classes(noisy_scores):
    scores, labels = noisy_scores
    decision = Decision("binary", np.array([-1, 1]))
    measures = compare_classes(decision, scores[:, np.newaxis], labels.astype(float))
    answers = np.where(scores > 0, 1, -1)
    assert measures["accuracy"] == np.mean(answers == labels)
    assert measures["correct"] == np.sum(answers == labels)
    assert measures["positive_class"] == 1
    for name, measure in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
        assert measures[name] == pytest.approx(measure(labels, answers))
    assert measures["roc_area"] == pytest.approx(roc_auc_score(labels, scores))


@pytest.mark.parametrize(
    ("scheme", "classes", "columns"),
    [
        ("one_vs_one", [-1, 1], lambda scores: -scores[:, np.newaxis]),
        ("one_vs_one", [1, -1], lambda scores: scores[:, np.newaxis]),
        ("one_vs_rest", [-1, 1], lambda scores: np.column_stack([-scores, scores])),
        ("binary", [1, -1], lambda scores: -scores[:, np.newaxis]),
    ],
)
def test_the_positive_class_is_the_larger_one_in_every_scheme(noisy_scores, scheme, classes, columns):
    scores, labels = noisy_scores
    scores = np.where(scores == 0, 0.05, scores)
    decision = Decision(scheme, np.array(classes))
    measures = compare_classes(decision, columns(scores), labels.astype(float))
    answers = np.where(scores > 0, 1, -1)
    assert measures["positive_class"] == 1
    assert measures["accuracy"] == np.mean(answers == labels)
    assert measures["f1"] == pytest.approx(f1_score(labels, answers))
    assert measures["roc_area"] == pytest.approx(roc_auc_score(labels, scores))


def test_models_of_more_than_two_classes_have_no_positive_class():
    decision = Decision("one_vs_rest", np.array([0, 1, 2]))
    measures = compare_classes(decision, np.eye(3), np.array([0.0, 1.0, 0.0]))
    assert (measures["accuracy"], measures["f1"], measures["roc_area"]) == (2 / 3, None, None)


def test_files_of_one_class_have_no_roc_area(noisy_scores):
    scores, _ = noisy_scores
    assert roc_area(scores, np.ones(200, dtype=bool)) is None
    assert compute_objective_measure("roc_area", None, scores, np.zeros(200, dtype=bool)) is None


def test_measures_of_objectives_equal_their_definitions(noisy_scores):
    scores, labels = noisy_scores
    positive = labels == 1
    assert compute_objective_measure("f1", None, scores, positive) == pytest.approx(
        f1_score(positive, scores > 0)
    )
    assert compute_objective_measure("roc_area", None, scores, positive) == pytest.approx(
        roc_auc_score(positive, scores)
    )
    assert compute_objective_measure("error_rate", None, scores, positive) is None
    top = np.argsort(-scores, kind="stable")[:7]
    assert compute_objective_measure("precision_at_k", 7, scores, positive) == positive[top].mean()


def test_ndcg():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 4, 120).astype(float)
    scores = generator.normal(size=120).round(1)  # rounding makes ties
    groups = generator.permutation(np.repeat(np.arange(12), 10))
    labels[groups == 3] = 0.0  # a query without relevant rows
    measure = ndcg(scores, labels, groups, 5)
    values = [
        ndcg_score([2 ** labels[groups == query] - 1], [scores[groups == query]], k=5)
        for query in range(12)
        if query != 3
    ]
    assert measure["value"] == pytest.approx(np.mean(values))
    assert (measure["k"], measure["queries"], measure["queries_without_relevant"]) == (5, 11, 1)
    single_query = ndcg(scores, labels, None, 200)
    assert single_query["value"] == pytest.approx(ndcg_score([2**labels - 1], [scores]))
    assert ndcg(scores, labels - 1, groups, 5) is None
    assert ndcg(scores, labels + 1000, groups, 5) is None
    assert ndcg(scores, np.zeros(120), groups, 5)["value"] is None


def test_train_predict_and_evaluate_agree(run, linear_files, tmp_path):
    data, test = linear_files
    trained = run("train", "linear", data, "-o", tmp_path / "m.uk", "--test", test, "--json").json
    predicted = run("predict", tmp_path / "m.uk", test, "--json").json
    evaluated = run("evaluate", tmp_path / "m.uk", test, "--json").json
    X, y = read_svmlight(test)
    model = load(tmp_path / "m.uk")
    expected = {
        "precision": precision_score(y, model.predict(X)),
        "recall": recall_score(y, model.predict(X)),
        "f1": f1_score(y, model.predict(X)),
        "roc_area": roc_auc_score(y, model.decision_function(X)),
    }
    for name, value in expected.items():
        assert trained["test"][name] == predicted[name] == evaluated[name] == pytest.approx(value)
    text = run("evaluate", tmp_path / "m.uk", test).out
    for words in ("accuracy", "F1", "precision", "recall", "ROC area"):
        assert words in text


def test_rankings(run, rank_files, tmp_path):
    data, test = rank_files
    model = tmp_path / "m.uk"
    trained = run("train", "rank", data, "-o", model, "--test", test, "--ndcg-at", "3", "--json").json
    for command in ("predict", "evaluate"):
        output = run(command, model, test, "--ndcg-at", "3", "--json").json
        assert output["ndcg"] == trained["test"]["ndcg"]
    assert output["ndcg"]["k"] == 3
    assert "NDCG@10" in run("evaluate", model, test).out


def test_evaluate_needs_labels(run, model_file, people_model, people_file, tmp_path):
    """Without labels, nothing can be measured, and the command fails."""
    (tmp_path / "rows").write_text("0 1:1\n0 3:1\n")
    message = run("evaluate", model_file, tmp_path / "rows").error()
    assert message.startswith(f"{tmp_path / 'rows'}: nothing can be measured: 2 rows of 2 have labels")
    lines = [line.rpartition(",")[0] for line in people_file.read_text().splitlines()]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    for option in ("--json",), ():
        message = run("evaluate", people_model, tmp_path / "new.csv", *option).error()
        assert "nothing can be measured: not all records have a label in column 'rich'" in message
    assert run("predict", people_model, tmp_path / "new.csv").code == 0


def test_a_table_without_records(run, people_model, tmp_path):
    (tmp_path / "none.csv").write_text("age,job,member,rich\n")
    result = run("predict", people_model, tmp_path / "none.csv")
    assert (result.code, result.out) == (0, "prediction\n")
    assert "nan" not in result.err and "not known: there is no record" in result.err
    assert (
        run("predict", people_model, tmp_path / "none.csv", "--json").json["rows_per_second"]["scoring"] == 0
    )
    message = run("evaluate", people_model, tmp_path / "none.csv").error()
    assert "nothing can be measured: there is no record" in message
