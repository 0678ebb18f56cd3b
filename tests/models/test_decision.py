"""Decisions from scores, against slow implementations."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from sklearn.utils.multiclass import _ovr_decision_function

from reference.models import make_model
from reference.selection import few_examples
from unkernel import FormatError, PolyRegressor, compile, load, write_model
from unkernel.models import ConjunctionModel, Decision, Kernel, KernelModel, LinearModel, Platt
from unkernel.models.decision import condense_pairs, expand_pairs, pair_columns, pairs


def some_scores(decision, rows=50, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(rows, decision.n_scores))
    scores[rng.random(scores.shape) < 0.2] = 0.0
    return scores


def slow_vote(row, classes):
    votes = [0] * classes
    for score, (i, j) in zip(row, pairs(classes), strict=True):
        votes[i if score > 0 else j] += 1
    return votes.index(max(votes))


def slow_probabilities(row, a, b, classes):
    """Solve Wu, Lin and Weng's second method directly: Q p + e z = 0, e'p = 1."""
    r = np.zeros((classes, classes))
    for score, one_a, one_b, (i, j) in zip(row, a, b, pairs(classes), strict=True):
        r[i, j] = min(max(1 / (1 + np.exp(one_a * score + one_b)), 1e-7), 1 - 1e-7)
        r[j, i] = 1 - r[i, j]
    Q = -r * r.T
    np.fill_diagonal(Q, (r**2).sum(axis=0))
    system = np.block([[Q, np.ones((classes, 1))], [np.ones((1, classes)), np.zeros((1, 1))]])
    return np.linalg.solve(system, np.append(np.zeros(classes), 1.0))[:classes]


@pytest.mark.parametrize("classes", [2, 3, 4, 7])
def test_votes(classes):
    decision = Decision("one_vs_one", np.arange(classes) * 10)
    scores = some_scores(decision)
    assert decision.choose(scores).tolist() == [10 * slow_vote(row, classes) for row in scores]
    assert np.array_equal(decision.decide(scores), scores[:, 0] if classes == 2 else scores)


@pytest.mark.parametrize("classes", [3, 4, 7])
def test_summed_pair_scores_equal_scikit_learn(classes):
    decision = Decision("one_vs_one", np.arange(classes), shape="ovr")
    scores = some_scores(decision)
    expected = _ovr_decision_function(scores < 0, -scores, classes)
    np.testing.assert_allclose(decision.decide(scores), expected, rtol=1e-14, atol=1e-15)
    ties = Decision("one_vs_one", np.arange(classes), shape="ovr", break_ties=True)
    assert np.array_equal(ties.choose(scores), expected.argmax(axis=1))


def test_the_other_schemes():
    binary = Decision("binary", np.array(["no", "yes"]))
    assert binary.choose([[-1.0], [0.0], [1e-9]]).tolist() == ["no", "no", "yes"]
    assert binary.decide([[-1.0], [2.0]]).tolist() == [-1, 2]
    one_vs_rest = Decision("one_vs_rest", np.array([7, 8, 9]))
    assert one_vs_rest.choose([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]]).tolist() == [7, 9]
    assert one_vs_rest.decide([[1.0, 1.0, 0.0]]).tolist() == [[1, 1, 0]]
    one_class = Decision("one_class", np.array([-1, 1]))
    assert one_class.choose([[0.0], [1.0]]).tolist() == [-1, 1]
    regression = Decision("regression", np.empty(0))
    assert regression.choose([[0.25]]).tolist() == regression.decide([[0.25]]).tolist() == [0.25]
    for decision in (binary, one_vs_rest, one_class, regression):
        assert decision.choose(np.empty((0, decision.n_scores))).shape == (0,)
        with pytest.raises(ValueError, match="expected scores of shape"):
            decision.choose(np.zeros((2, decision.n_scores + 1)))
        with pytest.raises(ValueError, match="CalibratedClassifierCV"):
            decision.probabilities(np.zeros((2, decision.n_scores)))


def test_the_log_link_predicts_exponentials():
    decision = Decision("regression", np.empty(0), link="log")
    scores = np.array([-1000.0, -2.0, 0.0, 0.25, 30.0, 1000.0])[:, None]
    assert decision.decide(scores).tolist() == scores[:, 0].tolist()
    np.testing.assert_allclose(decision.choose(scores)[:-1], np.exp(scores[:-1, 0]), rtol=1e-15)
    assert decision.choose(scores)[-1] == np.finfo(float).max
    assert decision.choose(np.empty((0, 1))).shape == (0,)
    assert "decision_link" not in Decision("regression", np.empty(0)).to_json()
    for unknown in ("logit", "", None, 1):
        with pytest.raises(FormatError, match="'decision' is missing or damaged"):
            Decision.from_json("file", decision.to_json() | {"decision_link": unknown})
    for options in ({"link": "logit"}, {"link": "log", "ranking": True}):
        with pytest.raises(ValueError, match="link"):
            Decision("regression", np.empty(0), **options)
    with pytest.raises(ValueError, match="link 'log' is for models that predict numbers"):
        Decision("binary", np.arange(2), link="log")


@pytest.mark.parametrize("kind", ["linear", "kernel", "conjunctions"])
def test_models_of_every_kind_have_links(kind, tmp_path):
    decision = Decision("regression", np.empty(0, np.int64), link="log")
    X = np.array([[0.5, 0.25], [1.0, 0.0]])
    if kind == "linear":
        model = LinearModel(np.ones((2, 1)), np.zeros(1), decision, 2, True, {})
    elif kind == "kernel":
        kernel = Kernel("polynomial", 2, 1.0, 1.0)
        model = KernelModel(kernel, X, np.ones((2, 1)), np.zeros(1), decision, 2, True, {})
    else:
        model = PolyRegressor(loss="poisson").fit(X, [1, 2]).to_model()
    fast = compile(model)
    fast.save(tmp_path / "m.uk")
    assert b'"version": "3"' in (tmp_path / "m.uk").read_bytes()[:4096]
    loaded = load(tmp_path / "m.uk")
    scores = fast.decision_function(X)
    assert loaded.decision.link == "log"
    for classifier in (fast, loaded):
        np.testing.assert_allclose(classifier.predict(X), np.exp(scores), rtol=1e-14)
        assert classifier.predict_one([0, 1], [0.5, 0.25]) == classifier.predict(X)[0]
    if kind == "kernel":
        with pytest.raises(ValueError, match="'libsvm' has no link of counts: save the model"):
            write_model(model, tmp_path / "m.model", format="libsvm")


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("coupled", [False, True])
def test_probabilities(classes, coupled):
    count = classes * (classes - 1) // 2
    rng = np.random.default_rng(classes)
    platt = Platt(-rng.random(count) - 0.5, rng.normal(size=count), coupled)
    decision = Decision("one_vs_one", np.arange(classes), probability=platt)
    scores = some_scores(decision, 200)
    probabilities = decision.probabilities(scores)
    expected = [slow_probabilities(row, platt.a, platt.b, classes) for row in scores]
    # The iteration stops when the gradient's error is below 0.005 / classes.
    exact = classes == 2 and not coupled
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-12 if exact else 0.02)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)


def test_probabilities_of_a_binary_score():
    platt = Platt(np.array([-2.0]), np.array([0.5]))
    probabilities = Decision("binary", np.array([0, 1]), probability=platt).probabilities(
        [[1.0], [1e9], [-1e9]]
    )
    np.testing.assert_allclose(
        probabilities[0], [1 - 1 / (1 + np.exp(-1.5)), 1 / (1 + np.exp(-1.5))], rtol=1e-14
    )
    np.testing.assert_allclose(probabilities[1:], [[1e-7, 1 - 1e-7], [1 - 1e-7, 1e-7]], rtol=1e-8)


@given(st.integers(2, 9), st.data())
@few_examples(10)
def test_coefficients_of_pairs(classes, data):
    counts = data.draw(st.lists(st.integers(0, 4), min_size=classes, max_size=classes))
    shape = (sum(counts), classes - 1)
    coefficients = data.draw(st_numpy.arrays(np.float64, shape, elements=st.floats(-9, 9)))
    expanded = expand_pairs(coefficients, counts)
    assert np.array_equal(condense_pairs(expanded, counts), coefficients)
    ordered_pairs = list(pairs(classes))
    for row, code in enumerate(np.repeat(np.arange(classes), counts).tolist()):
        other_codes = [other_code for other_code in range(classes) if other_code != code]
        assert pair_columns(classes, code).tolist() == [
            ordered_pairs.index(tuple(sorted((code, o)))) for o in other_codes
        ]
        assert expanded[row, pair_columns(classes, code)].tolist() == coefficients[row].tolist()
        assert np.count_nonzero(expanded[row]) == np.count_nonzero(coefficients[row])


DECISIONS = [
    Decision("binary", np.array(["a", "b"])),
    Decision("binary", np.array([0.5, 1.5]), probability=Platt(np.array([-1.0]), np.array([0.1]), True)),
    Decision("one_vs_rest", np.arange(3)),
    Decision("one_vs_one", np.arange(4), "ovr", True, Platt(np.arange(6.0), np.ones(6))),
    Decision("one_class", np.array([-1, 1])),
    Decision("regression", np.empty(0)),
    Decision("regression", np.empty(0), link="log"),
]


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision.scheme)
def test_to_json_and_back(decision):
    stored = json.loads(json.dumps(decision.to_json()))
    result = Decision.from_json("f", stored)
    assert result.to_json() == decision.to_json()
    assert result.classes.tolist() == decision.classes.tolist()


ODD = [None, True, 0, -1, 1.5, float("nan"), 10**400, "", "binary", "one_class", [], [1, 2], {}, {"a": [1]}]


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision.scheme)
def test_damaged_tables(decision):
    """Replace each value by each value of `ODD`: the table is refused, or works."""
    table = decision.to_json()
    refused = 0
    for key in table:
        for value in ODD:
            try:
                Decision.from_json("f", table | {key: value}).choose(np.zeros((1, decision.n_scores)))
            except FormatError as error:
                assert error.file == "f"
                refused += 1
            except ValueError as error:  # another scheme has a different number of scores
                assert "expected scores" in str(error)
    assert refused > 3 * len(ODD)
    for value in ODD:
        with pytest.raises(FormatError):
            Decision.from_json("f", value)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("two", np.arange(2)), "scheme must be"),
        (("binary", np.arange(3)), "two classes"),
        (("one_vs_one", np.arange(1)), "at least two classes"),
        (("one_vs_rest", np.arange(0)), "at least two classes"),
        (("one_class", np.array([0, 1])), "-1 and 1"),
        (("regression", np.arange(2)), "no classes"),
        (("one_vs_one", np.arange(3), "pairs"), "shape must be"),
        (("one_vs_rest", np.arange(3), "ovo", False, Platt(np.ones(3), np.ones(3))), "no sigmoids"),
        (("one_vs_one", np.arange(3), "ovo", False, Platt(np.ones(2), np.ones(3))), "3 pairs"),
        (("binary", np.arange(2), "ovo", False, Platt(np.array([np.nan]), np.ones(1))), "not finite"),
    ],
)
def test_inconsistent_decisions_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        Decision(*arguments)


def test_conjunction_models_have_decisions():
    model = make_model(classes=["a", "b"])
    assert isinstance(model, ConjunctionModel)
    assert model.decision.scheme == "binary"
    assert model.decision is model.decision
    assert model.fixed_width
    assert make_model(classes=range(3)).decision.scheme == "one_vs_rest"


def test_ranking_decisions_are_stored_or_implied_by_the_learner(tmp_path):
    """Files store that a model ranks; in older files, the name of the learner implies it."""
    with pytest.raises(ValueError, match="scheme 'binary' does not rank rows"):
        Decision("binary", np.array([0, 1]), ranking=True)
    for ranking, origin in ((True, {}), (False, {"learner": "RankSVM"}), (False, {"learner": "SVR"})):
        decision = Decision("regression", np.empty(0, np.int64), ranking=ranking)
        LinearModel(np.ones((2, 1)), np.zeros(1), decision, 2, True, origin).save(tmp_path / "m.uk")
        assert decision.to_json().get("ranking", False) == ranking
        loaded = load(tmp_path / "m.uk")
        assert loaded.decision.ranking == (ranking or origin["learner"] == "RankSVM")
        if loaded.decision.ranking:
            with pytest.raises(ValueError, match="this model ranks rows"):
                loaded.score(np.eye(2), [1.0, 2.0])
    with pytest.raises(FormatError, match="'decision' is missing or damaged"):
        Decision.from_json("file", decision.to_json() | {"ranking": "yes"})
