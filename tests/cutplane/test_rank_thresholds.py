"""Thresholds of RankSVM, compared with all possible thresholds, and decisions by thresholds."""

from __future__ import annotations

import pickle
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import unkernel
from reference.rankings import make_ranking
from unkernel import FormatError, RankSVM
from unkernel.cutplane.thresholds import find_thresholds
from unkernel.models import Decision


def rank_error(thresholds, scores, ranks, weights):
    return float(weights @ np.abs(np.searchsorted(thresholds, scores, side="left") - ranks))


def least_rank_error(scores, ranks, weights, count):
    """Return the least error over all ascending choices of borders, before, between and after the scores."""
    distinct = np.unique(scores)
    places = np.concatenate([[distinct[0] - 1], (distinct[1:] + distinct[:-1]) / 2, [distinct[-1] + 1]])
    borders = combinations_with_replacement(places, count - 1)
    return min(rank_error(np.array(thresholds), scores, ranks, weights) for thresholds in borders)


@settings(print_blob=True)
@given(
    st.integers(2, 4).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(
                st.tuples(st.integers(-4, 4), st.integers(0, count - 1), st.sampled_from([0.0, 1.0, 2.5])),
                min_size=1,
                max_size=9,
            ),
        )
    )
)
def test_thresholds_have_the_least_error_in_ranks(problem):
    count, rows = problem
    scores, ranks, weights = (np.array(column) for column in zip(*rows, strict=True))
    scores = scores / 4
    thresholds = find_thresholds(scores, ranks, weights, count)
    assert (np.diff(thresholds) >= 0).all()
    result = rank_error(thresholds, scores, ranks, weights)
    assert result == pytest.approx(least_rank_error(scores, ranks, weights, count), abs=1e-12)


@pytest.mark.parametrize("low", [1.0, np.nextafter(1.0, 2.0), -1.0, 0.0, 5e-324, 1e300])
def test_a_threshold_fits_between_neighbouring_numbers(low):
    scores = np.array([low, np.nextafter(low, np.inf)])
    thresholds = find_thresholds(scores, np.array([0, 1]), np.ones(2), 2)
    assert rank_error(thresholds, scores, np.array([0, 1]), np.ones(2)) == 0


def test_thresholds_of_a_fitted_ranker():
    X, y, _ = make_ranking(9, rows=30)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 4.0], 30)
    ranker = RankSVM(C=0.3).fit(X, y)
    scores, ranks = ranker.decision_function(X), y - 1
    assert ranker.fit_thresholds(X, y) is ranker
    error = np.abs(ranker.predict(X) - y).sum()
    assert error == least_rank_error(scores, ranks, np.ones(30), 3)
    assert np.array_equal(ranker.decision_function(X), scores)
    ranker.fit_thresholds(X, y, weights)
    assert weights @ np.abs(ranker.predict(X) - y) == least_rank_error(scores, ranks, weights, 3)
    assert ranker.thresholds_.shape == (2,)
    ranker.fit_thresholds(X[y == 2], y[y == 2])
    assert set(ranker.predict(X[y == 2])) == {2}


def test_predict_exists_only_with_thresholds():
    X, y, _ = make_ranking(9)
    ranker = RankSVM()
    assert not hasattr(ranker, "predict")
    with pytest.raises(NotFittedError):
        ranker.fit_thresholds(X, y)
    ranker.fit(X, y)
    with pytest.raises(AttributeError, match="predict") as caught:
        ranker.predict(X)
    assert "fit_thresholds" in str(caught.value) + str(caught.value.__cause__)
    assert hasattr(ranker.fit_thresholds(X, y), "predict")
    assert not hasattr(ranker.fit(X, y), "predict")
    assert not hasattr(clone(ranker.fit_thresholds(X, y)), "predict")


def test_thresholds_are_for_known_labels():
    X, y, _ = make_ranking(9)
    ranker = RankSVM().fit(X, y)
    with pytest.raises(ValueError, match=r"labels that fit did not see: \[7"):
        ranker.fit_thresholds(X, np.where(y == 2, 7, y))
    with pytest.raises(ValueError, match="inconsistent"):
        ranker.fit_thresholds(X, y[1:])
    with pytest.raises(ValueError, match="NaN"):
        ranker.fit_thresholds(X, np.full(len(y), np.nan))
    many_ranks = RankSVM().fit(np.arange(1025.0)[:, None], np.arange(1025))
    with pytest.raises(ValueError, match="at most 1024"):
        many_ranks.fit_thresholds([[0.0]], [0])


@pytest.mark.parametrize("labels", [(1, 2, 3), (-0.5, 0.25, 9.0), (10.0, 20.0, 30.0), (False, True)], ids=str)
def test_thresholds_are_saved_with_the_model(labels, tmp_path):
    X, y, _ = make_ranking(10, labels=labels)
    ranker = RankSVM().fit(X, y)
    ranker.save(tmp_path / "scores.uk")
    without_thresholds = unkernel.load(tmp_path / "scores.uk")
    assert np.array_equal(without_thresholds.decision_function(X), ranker.decision_function(X))
    assert np.array_equal(without_thresholds.predict(X), ranker.decision_function(X))
    ranker.fit_thresholds(X, y).save(tmp_path / "ordinal.uk")
    for copy in (
        unkernel.load(tmp_path / "ordinal.uk"),
        unkernel.compile(ranker),
        unkernel.compile(ranker.to_model()),
        pickle.loads(pickle.dumps(ranker)),
    ):
        assert np.array_equal(copy.decision_function(X), ranker.decision_function(X))
        assert np.array_equal(copy.predict(X), ranker.predict(X))
    loaded = unkernel.load(tmp_path / "ordinal.uk").decision
    assert loaded.scheme == "ordinal"
    assert np.array_equal(loaded.thresholds, ranker.thresholds_)
    assert loaded.classes.tolist() == list(labels)


ORDINAL = Decision("ordinal", np.array([1, 2, 4]), thresholds=np.array([-0.5, 0.5]))


def test_ordinal_decisions_count_the_thresholds_below():
    scores = np.array([[-9.0], [-0.5], [0.0], [0.5], [np.nextafter(0.5, 1)], [1e300]])
    assert ORDINAL.choose(scores).tolist() == [1, 1, 2, 2, 4, 4]
    assert ORDINAL.decide(scores).tolist() == scores[:, 0].tolist()
    restored = Decision.from_json("f", ORDINAL.to_json())
    assert restored.choose(scores).tolist() == [1, 1, 2, 2, 4, 4]


@pytest.mark.parametrize(
    "change",
    [
        {"thresholds": [0.5]},
        {"thresholds": [0.5, -0.5]},
        {"thresholds": [0.5, float("nan")]},
        {"thresholds": [0.5, float("inf")]},
        {"thresholds": [0.5, 10**400]},
        {"thresholds": [0.5, "1"]},
        {"thresholds": [0.5, None]},
        {"thresholds": [[0.5, 1.0]]},
        {"thresholds": "ab"},
        {"thresholds": None},
        {"thresholds": {}},
        {"thresholds": 3},
        {"classes": None},
        {"classes": []},
        {"scheme": "one_vs_rest"},
        {"scheme": "binary"},
    ],
    ids=str,
)
def test_damaged_ordinal_decisions_are_refused(change):
    with pytest.raises(FormatError, match=r"'decision'|class"):
        Decision.from_json("f", ORDINAL.to_json() | change)


@pytest.mark.parametrize(
    ("classes", "thresholds"), [([1, 2], []), ([1], []), ([1, 2], [np.nan]), ([1, 2, 3], [1.0, 0.0])], ids=str
)
def test_ordinal_decisions_that_do_not_fit_together(classes, thresholds):
    with pytest.raises(ValueError, match=r"threshold|two classes"):
        Decision("ordinal", np.array(classes), thresholds=np.array(thresholds))
    with pytest.raises(ValueError, match="threshold"):
        Decision("binary", np.array([0, 1]), thresholds=np.array([0.0]))


def test_damaged_files_of_rankers_are_refused_or_answer(tmp_path):
    X, y, _ = make_ranking(10)
    path = tmp_path / "model.uk"
    RankSVM().fit(X, y).fit_thresholds(X, y).save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        place = int(rng.integers(len(content)))
        path.unlink()  # a loaded ranker may still map the previous file
        path.write_bytes(content[:place] + bytes([int(rng.integers(256))]) + content[place + 1 :])
        try:
            fast = unkernel.load(path)
        except FormatError as error:
            assert error.file == str(path)
            refused += 1
        else:
            assert len(fast.decision.choose(np.zeros((2, fast.decision.n_scores)))) == 2
    assert refused > 100
