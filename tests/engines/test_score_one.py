"""Single rows: valid and invalid forms, and the same scores as for many rows."""

from __future__ import annotations

import array
import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import unkernel
from reference.kernels import EXACT, assert_scores, make_kernel_model, polynomial, rows_for
from reference.models import make_model
from reference.selection import few_examples
from unkernel.models import Decision
from unkernel.models.kernel import Kernel

MODEL = make_kernel_model(1, polynomial(3), vectors=80)
FAST = {engine: unkernel.compile(MODEL, engine, rare=30) for engine in EXACT}
every_engine = pytest.mark.parametrize("engine", EXACT)
IDS = [1, 3, 6, 9]


def read_only(values):
    values.setflags(write=False)
    return values


class ListSubclass(list):
    """A list subclass."""


ROWS = {
    "tuple": (1, 3, 6, 9),
    "a subclass of list": ListSubclass(IDS),
    "numpy ints in a list": [np.int64(1), np.int32(3), np.uint8(6), 9],
    "int32": np.array(IDS, np.int32),
    "int64": np.array(IDS, np.int64),
    "read-only": read_only(np.array(IDS)),
    "not contiguous int64": np.array([1, 0, 3, 0, 6, 0, 9])[::2],
    "not contiguous int32": np.array([9, 6, 3, 1], np.int32)[::-1],
    "not aligned": np.frombuffer(b"x" + np.array(IDS).tobytes(), np.int64, offset=1),
    "array i": array.array("i", IDS),
    "array l": array.array("l", IDS),
    "array q": array.array("q", IDS),
    "bytes": np.array(IDS, np.int32).tobytes(),
    "bytearray": bytearray(np.array(IDS, np.int32).tobytes()),
    "memoryview of ints": memoryview(np.array(IDS, np.int64)),
    "memoryview of bytes": memoryview(np.array(IDS, np.int32).tobytes()),
    "unsorted": [9, 1, 6, 3],
    "unsorted int32": np.array([9, 1, 6, 3], np.int32),
    "repeated": [1, 1, 3, 9, 6, 9, 9],
    "unknown ids": [0x7FFFFFFF, 1, 3, 6, 9, 10, 12, 99],
    "huge ids": [1, 3, 6, 9, 2**40, 2**63 - 1],
    "huge ids in an array": np.array([2**40, 1, 3, 6, 9, 2**62]),
}


@every_engine
@pytest.mark.parametrize("row", ROWS)
def test_rows_of_any_type(engine, row):
    fast = FAST[engine]
    expected = fast.score_one(IDS)
    assert type(expected) is float
    assert fast.score_one(ROWS[row]) == expected
    assert fast.worker().score_one(ROWS[row]) == expected


def test_ranges_are_rows():
    assert FAST["split"].score_one(range(2, 9, 3)) == FAST["split"].score_one([2, 5, 8])


@every_engine
@pytest.mark.parametrize("row", [[], (), b"", np.array([], np.int64), np.array([], np.int32), range(0)])
def test_empty_rows_have_the_score_of_the_intercept(engine, row):
    assert_scores([FAST[engine].score_one(row)], MODEL, np.zeros((1, 12)))
    assert_scores([FAST[engine].score_one(row, [])], MODEL, np.zeros((1, 12)))


@pytest.mark.parametrize(
    "row",
    [
        [-1],
        [3, -(2**40)],
        np.array([1, -1]),
        np.array([1, -1], np.int32),
        np.array([[1, 3]]),
        np.array([[1], [3]]),
        b"abc",
        bytes(6),
        b"\xff" * 4,
    ],
)
def test_rows_that_are_refused(row):
    with pytest.raises(ValueError, match=r"one dimension|not negative|a whole number"):
        FAST["inverted"].score_one(row)


@pytest.mark.parametrize(
    "row",
    [
        [1.0],
        ["1"],
        [None],
        "135",
        None,
        3,
        {1, 3},
        {1: 1.0},
        np.array([1.0, 3.0]),
        np.array([1, 3], np.uint32),
        np.array([1, 3], np.uint64),
        np.array([1, 3], np.int16),
        np.array([1, 3], ">i4"),
        np.array([True, False]),
        np.array(["1"]),
        np.array([1], object),
        array.array("d", [1.0]),
        sparse.csr_matrix([[1.0, 0.0]]),
    ],
)
def test_rows_of_the_wrong_type(row):
    with pytest.raises(TypeError):
        FAST["inverted"].score_one(row)


@pytest.mark.parametrize("row", [[2**63], (5**40,), [3, -(2**70)]])
def test_an_id_of_too_many_digits(row):
    with pytest.raises(ValueError, match=r"from 0 to 2\^63 - 1"):
        FAST["inverted"].score_one(row)


def arrays_of_bytes():
    """Return arrays of four ids of one byte, which must not be read as one id of four bytes."""
    return [np.array([1, 3, 6, 9], kind) for kind in (np.uint8, np.int8)]


@pytest.mark.parametrize("row", arrays_of_bytes())
def test_numpy_arrays_of_bytes_are_read_or_refused(row):
    try:
        score = FAST["inverted"].score_one(row)
    except TypeError:
        return
    assert score == FAST["inverted"].score_one(IDS)


# --- Values ------------------------------------------------------------------------------------------


@every_engine
@pytest.mark.parametrize(
    "values",
    [
        [0.5, -1.0, 2.0, 3.5],
        (0.5, -1, 2, 3.5),
        np.array([0.5, -1.0, 2.0, 3.5]),
        np.array([0.5, -1.0, 2.0, 3.5], np.float32),
        array.array("d", [0.5, -1.0, 2.0, 3.5]),
        np.repeat([0.5, -1.0, 2.0, 3.5], 2)[::2],
    ],
)
def test_values(engine, values):
    X = np.zeros((1, 12))
    X[0, IDS] = [0.5, -1.0, 2.0, 3.5]
    assert_scores([FAST[engine].score_one(IDS, values)], MODEL, X)
    assert FAST[engine].score_one(IDS, values) == FAST[engine].decision_function(X)[0]
    assert FAST[engine].score_one(ids=IDS, values=values) == FAST[engine].score_one(IDS, list(values))


@every_engine
def test_values_of_an_id_that_occurs_twice_add_up(engine):
    score = FAST[engine].score_one
    assert score([3, 1, 3], [0.25, 2.0, 0.5]) == score([1, 3], [2.0, 0.75])
    assert score([3, 1, 3], [1.0, 2.0, -1.0]) == pytest.approx(score([1], [2.0]), rel=1e-12)
    assert score([1, 3, 1], [0.5, 1.0, 0.5]) == score([1, 3])
    assert score([1, 3, 5], [1.0, 1.0, 0.0]) == pytest.approx(score([1, 3]), rel=1e-12)


@pytest.mark.parametrize("values", [[1.0], [1.0] * 3, [], [np.nan, 1.0], [1.0, np.inf], [1.0, -np.inf]])
def test_values_that_are_refused(values):
    with pytest.raises(ValueError, match=r"values for 2 feature ids|finite"):
        FAST["inverted"].score_one([1, 3], values)
    with pytest.raises(ValueError, match=r"values for 2 feature ids|finite"):
        FAST["inverted"].score_one([1, 3], np.array(values))


@pytest.mark.parametrize("values", [1.0, ["1", "2"], [None, 1.0], [1j, 1.0], np.ones((2, 2))])
def test_values_of_the_wrong_type(values):
    with pytest.raises(TypeError):
        FAST["inverted"].score_one([1, 3], values)


@every_engine
def test_scores_that_are_too_large(engine):
    with pytest.raises(ValueError, match="a score is not finite"):
        FAST[engine].score_one([1, 3], [1e200, 1e200])
    with pytest.raises(ValueError, match="a score is not finite"):
        FAST[engine].decision_function([[0, 1e200, 0, 1e200] + [0] * 8])


# --- Classes -----------------------------------------------------------------------------------------

ANSWERS = {
    "binary": Decision("binary", np.array(["no", "yes"])),
    "zero is positive": Decision("binary", np.array([3, 7]), zero_is_positive=True),
    "one class": Decision("one_class", np.array([-1, 1])),
    "regression": Decision("regression", np.empty(0)),
    "ordinal": Decision("ordinal", np.arange(3), thresholds=np.array([-1.0, 1.0])),
    "one against the rest": Decision("one_vs_rest", np.array(["a", "b", "c"])),
    "one against one": Decision("one_vs_one", np.array(["a", "b", "c"])),
    "broken ties": Decision("one_vs_one", np.arange(3), shape="ovr", break_ties=True),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_class_of_one_row(name):
    decision = ANSWERS[name]
    model = make_kernel_model(4, Kernel("rbf", gamma=0.1), scores=decision.n_scores)
    if name == "zero is positive":  # and of every row
        model = dataclasses.replace(model, coefficients=np.zeros((40, 1)), intercept=np.zeros(1))
    fast = unkernel.compile(dataclasses.replace(model, decision=decision), "inverted")
    X = rows_for(model, 1, real=True, count=20, extra_columns=0)
    predict_one = [fast.predict_one, fast.worker().predict_one]
    for predict in predict_one:
        result = [predict(np.flatnonzero(row), row[row != 0]) for row in X]
        assert result == fast.predict(X).tolist()
        assert type(result[0]) is type(fast.predict(X).tolist()[0])
        assert predict([1, 3]) == predict([3, 1], values=[1.0, 1.0])
    with pytest.raises(ValueError, match="values for 2 feature ids"):
        fast.predict_one([1, 3], [1.0])


# --- The same as many rows -----------------------------------------------------------------------------


@every_engine
@given(row=st.lists(st.integers(0, 14), unique=True).map(sorted))
@few_examples(10)
def test_single_rows_have_the_same_bits_as_many_rows(engine, row):
    X = np.zeros((3, 15))
    X[1, row] = 1.0
    assert FAST[engine].score_one(row) == FAST[engine].decision_function(X)[1]


@every_engine
@given(row=st.lists(st.integers(0, 14), max_size=20), seed=st.integers(0, 2**32))
@few_examples(10)
def test_any_order_and_values(engine, row, seed):
    values = np.random.default_rng(seed).normal(size=len(row))
    X = np.zeros((1, 15))
    np.add.at(X[0], row, values)
    assert_scores([FAST[engine].score_one(row, values)], MODEL, X)


@every_engine
@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_many_classes(engine, shape):
    model = make_kernel_model(scores=6)
    model = dataclasses.replace(model, decision=dataclasses.replace(model.decision, shape=shape))
    fast = unkernel.compile(model, engine)
    X = rows_for(model)
    expected = fast.decision_function(X)
    assert expected.shape == (len(X), 6 if shape == "ovo" else 4)
    worker = fast.worker()
    for x, scores in zip(X, expected, strict=True):
        row = np.flatnonzero(x)
        assert fast.score_one(row) == worker.score_one(row) == scores.tolist()
        assert fast.score_one(ids=row, values=np.ones(len(row))) == scores.tolist()


@pytest.mark.parametrize("sets", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_trained_weights(sets, classes):
    fast = unkernel.compile(make_model(2, degree=3, sets=sets, classes=range(classes)))
    X = (np.random.default_rng(0).random((10, 6)) < 0.6).astype(float)
    result = [fast.score_one(np.flatnonzero(x).tolist()) for x in X]
    assert np.array_equal(result, fast.decision_function(X))


@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("rbf", gamma=0.2), Kernel("sigmoid", gamma=0.1)])
def test_other_kernels(kernel):
    model = make_kernel_model(4, kernel, real=True)
    fast = unkernel.compile(model)
    X = rows_for(model, real=True)
    result = [fast.score_one(np.flatnonzero(x), x[x != 0]) for x in X]
    assert np.array_equal(result, fast.decision_function(X))


# --- Threads -------------------------------------------------------------------------------------------


@every_engine
@pytest.mark.parametrize("real", [False, True])
def test_workers_in_threads(engine, real):
    fast = FAST[engine]
    X = rows_for(MODEL, 5, real=real, count=300)
    rows = [(np.flatnonzero(x), x[x != 0]) for x in X]
    expected = fast.decision_function(X, n_jobs=1).tolist()

    def score_rows(scorer):
        return [scorer.score_one(ids, values if real else None) for ids, values in rows]

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(score_rows, fast.worker()) for _ in range(8)]
        shared = [pool.submit(score_rows, fast) for _ in range(8)]
        batches = [pool.submit(fast.decision_function, X, n_jobs=1 + k % 3) for k in range(8)]
    assert all(answer.result() == expected for answer in futures + shared)
    assert all(answer.result().tolist() == expected for answer in batches)


@every_engine
@pytest.mark.parametrize("scores", [1, 3])
def test_results_do_not_depend_on_the_number_of_threads(engine, scores):
    model = make_kernel_model(1, polynomial(2), vectors=60, scores=scores)
    fast = unkernel.compile(model, engine)
    rows = [rows_for(model, seed, count=1200, real=seed % 2 == 1) for seed in range(3)]
    X = sparse.csr_matrix(np.vstack(rows))
    alone = fast.decision_function(X, n_jobs=1)
    for n_jobs in (2, 7, None, -1):
        assert np.array_equal(fast.decision_function(X, n_jobs=n_jobs), alone)


def test_building_with_threads_gives_the_same_engine():
    model = make_kernel_model(1, polynomial(3), vectors=300, features=40)
    X = rows_for(model)
    for engine in EXACT:
        alone = unkernel.compile(model, engine, n_jobs=1, rare=40).decision_function(X)
        for n_jobs in (2, 5, None):
            fast = unkernel.compile(model, engine, n_jobs=n_jobs, rare=40)
            assert np.array_equal(fast.decision_function(X), alone)


class AsksAgain:
    """An id (or a value) that requests another score while it is read."""

    def __init__(self, score, number):
        self.ask = lambda: score(list(range(12)) * 5, [2.0] * 60)
        self.number = number

    def __index__(self):
        self.ask()
        return self.number

    def __float__(self):
        self.ask()
        return float(self.number)


@every_engine
def test_ids_and_values_may_request_other_scores(engine):
    """Ids and values may be objects with Python methods, during which other threads may run."""
    score = FAST[engine].score_one
    assert score([1, AsksAgain(score, 3), 6, 9]) == score(IDS)
    assert score(IDS, [1.0, AsksAgain(score, 1), 1.0, 1.0]) == score(IDS)


def test_a_worker_keeps_its_engine():
    worker = unkernel.compile(MODEL, "split").worker()
    assert worker.score_one(IDS) == pytest.approx(FAST["split"].score_one(IDS), rel=1e-12)
