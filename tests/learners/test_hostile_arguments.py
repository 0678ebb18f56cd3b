"""Input refused by learners and compiled classifiers, each with a message that names the problem."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from reference.parse_corpora import bunsetsu, chunks, treebank
from unkernel import (
    CuttingPlaneSVC,
    PolyLogisticRegression,
    PolyRegressor,
    PolySVC,
    RankSVM,
    TreeSVC,
    compile,
    load,
)
from unkernel.data import write_svmlight
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker

pytestmark = pytest.mark.hostile

X = (np.random.default_rng(0).random((60, 8)) < 0.4).astype(float)
y = np.where(X[:, 0] != X[:, 1], 1, -1)
TREES = ["(S (NP dogs) (VP bark))", "(S (NP cats) (VP sleep))"] * 10
ROW_LEARNERS = [PolySVC, PolyLogisticRegression, PolyRegressor, CuttingPlaneSVC, RankSVM]
LEARNERS = [*ROW_LEARNERS, TreeSVC]


def score(fitted: Any) -> Any:
    """Return the method that scores rows: decision_function, or predict of a regressor."""
    return fitted.predict if isinstance(fitted, PolyRegressor) else fitted.decision_function


def examples(learner: type) -> tuple[Any, Any]:
    return (TREES, y[:20]) if learner is TreeSVC else (X, y)


# --- Costs and weights --------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.0, -1.0, 1e21, 1e100, 1e300, np.inf, np.nan, "1", None])
@pytest.mark.parametrize("learner", LEARNERS)
def test_costs_that_overflow_are_refused(learner, C):
    with pytest.raises(ValueError, match=f"'C' parameter of {learner.__name__} must be a float in the range"):
        learner(C=C).fit(*examples(learner))


@pytest.mark.parametrize("weight", [1e21, 1e300, np.inf, np.nan, -1.0])
@pytest.mark.parametrize("learner", LEARNERS)
def test_weights_that_overflow_are_refused(learner, weight):
    inputs, labels = examples(learner)
    weights = np.where(np.arange(len(labels)) == 3, weight, 1.0)
    with pytest.raises(ValueError, match="sample_weight"):
        learner().fit(inputs, labels, sample_weight=weights)


@pytest.mark.parametrize("weight", [-1.0, 1e21, np.inf, np.nan])
@pytest.mark.parametrize("learner", [PolySVC, PolyLogisticRegression, CuttingPlaneSVC, TreeSVC])
def test_class_weights_that_overflow_are_refused(learner, weight):
    with pytest.raises(ValueError, match=r"class_weight of 1 is .*: it must be 0 or a positive number"):
        learner(class_weight={1: weight}).fit(*examples(learner))


@pytest.mark.parametrize("learner", [PolySVC, PolyLogisticRegression])
def test_too_large_costs_times_weights_are_refused(learner):
    with pytest.raises(ValueError, match="C times the weights must be positive, and at most 1e20"):
        learner(C=1e15).fit(X, y, sample_weight=np.full(60, 1e15))


# --- Labels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing_value", [None, np.nan, float("inf")])
@pytest.mark.parametrize("learner", LEARNERS)
def test_missing_labels_are_refused(learner, missing_value):
    inputs, labels = examples(learner)
    labels = np.array(labels, object)
    labels[3] = missing_value
    with pytest.raises((ValueError, TypeError)):
        learner().fit(inputs, labels)
    with pytest.raises((ValueError, TypeError)):
        learner().fit(inputs, labels.tolist())


def test_none_is_refused_as_a_rank():
    with pytest.raises(ValueError, match="y contains NaN"):
        RankSVM().fit(X, [None if i % 3 else i for i in range(60)])


# --- Masked values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ROW_LEARNERS)
def test_masked_values_are_refused(learner):
    mask = np.zeros((60, 8), bool)
    fitted = learner().fit(np.ma.array(X, mask=mask), y)
    mask[2, 5] = True
    masked = np.ma.array(X, mask=mask)
    for call in (
        lambda: learner().fit(masked, y),
        lambda: learner().fit(X, np.ma.array(y, mask=mask[:, 5])),
        lambda: learner().fit(X, y, sample_weight=np.ma.array(np.ones(60), mask=mask[:, 5])),
        lambda: score(fitted)(masked),
        lambda: compile(fitted).decision_function(masked),
        lambda: write_svmlight("/dev/null", masked, y),
    ):
        with pytest.raises(ValueError, match="masked values"):
            call()


# --- Malformed sparse matrices ------------------------------------------------------------------------


def replace_arrays(kind: str, **arrays: Any) -> Any:
    """Return a matrix whose arrays were replaced after scipy had checked them."""
    matrix = sparse.csr_matrix(X).asformat(kind, copy=True)
    for name, array in arrays.items():
        setattr(matrix, name, array)
    return matrix


def change_entry(array: Any, place: int, value: int) -> Any:
    array = array.copy()
    array[place] = value
    return array


def malformed() -> dict[str, Any]:
    result: dict[str, Any] = {}
    for kind in ("csr", "csc"):
        valid = sparse.csr_matrix(X).asformat(kind)
        size = X.shape[1] if kind == "csr" else X.shape[0]
        result |= {
            f"{kind}: number too large": replace_arrays(kind, indices=change_entry(valid.indices, 3, size)),
            f"{kind}: number far too large": replace_arrays(
                kind, indices=change_entry(valid.indices, 3, 2**31 - 1)
            ),
            f"{kind}: negative number": replace_arrays(kind, indices=change_entry(valid.indices, 3, -1)),
            f"{kind}: offsets fall": replace_arrays(kind, indptr=change_entry(valid.indptr, 3, 10**6)),
            f"{kind}: negative offset": replace_arrays(kind, indptr=change_entry(valid.indptr, 3, -5)),
            f"{kind}: first offset": replace_arrays(kind, indptr=change_entry(valid.indptr, 0, 1)),
            f"{kind}: last offset": replace_arrays(kind, indptr=change_entry(valid.indptr, -1, 10**9)),
            f"{kind}: few offsets": replace_arrays(kind, indptr=valid.indptr[:-1]),
            f"{kind}: no offsets": replace_arrays(kind, indptr=valid.indptr[:0]),
            f"{kind}: many offsets": replace_arrays(kind, indptr=np.append(valid.indptr, valid.indptr[-1])),
            f"{kind}: few values": replace_arrays(kind, data=valid.data[:-1]),
            f"{kind}: no values": replace_arrays(kind, data=valid.data[:0]),
            f"{kind}: few numbers": replace_arrays(kind, indices=valid.indices[:-1]),
            f"{kind}: numbers of floats": replace_arrays(kind, indices=valid.indices.astype(float)),
            f"{kind}: offsets of floats": replace_arrays(kind, indptr=valid.indptr.astype(float)),
        }
    coo = sparse.coo_matrix(X)
    for name in ("row", "col"):
        valid = getattr(coo, name)
        result |= {
            f"coo: {name} too large": replace_arrays("coo", **{name: change_entry(valid, 3, 10**6)}),
            f"coo: negative {name}": replace_arrays("coo", **{name: change_entry(valid, 3, -1)}),
            f"coo: few {name}s": replace_arrays("coo", **{name: valid[:-1]}),
        }
    result["coo: few values"] = replace_arrays("coo", data=coo.data[:-1])
    bsr = sparse.bsr_matrix(X, blocksize=(2, 2))
    result["bsr: number too large"] = sparse.bsr_matrix(X, blocksize=(2, 2))
    result["bsr: number too large"].indices = change_entry(bsr.indices, 3, 4)
    result["bsr: last offset"] = sparse.bsr_matrix(X, blocksize=(2, 2))
    result["bsr: last offset"].indptr = change_entry(bsr.indptr, -1, 10**6)
    lil = sparse.lil_matrix(X)
    lil.rows[3] = [*lil.rows[3], 5]
    result["lil: lists of different lengths"] = lil
    lil = sparse.lil_matrix(X)
    lil.rows[3] = [10**6 for _ in lil.rows[3]]
    result["lil: number too large"] = lil
    return result


MALFORMED = malformed()


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_sparse_matrices(case):
    matrix = MALFORMED[case]
    fitted = PolySVC(random_state=0).fit(X, y)
    fast = compile(fitted)
    calls = [
        *(lambda learner=learner: learner().fit(matrix, y) for learner in ROW_LEARNERS),
        lambda: fitted.decision_function(matrix),
        lambda: fitted.predict(matrix),
        lambda: fast.decision_function(matrix),
        lambda: fast.predict(matrix),
        lambda: compile(fitted, sample=matrix),
        lambda: write_svmlight("/dev/null", matrix, y),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="sparse matrix"):
            call()


def test_all_valid_sparse_formats_are_accepted():
    expected = PolySVC(random_state=0).fit(X, y)
    for kind in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        for make in (sparse.csr_matrix, sparse.csr_array):
            matrix = make(X).asformat(kind)
            result = PolySVC(random_state=0).fit(matrix, y)
            np.testing.assert_array_equal(result.decision_function(matrix), expected.decision_function(X))
            np.testing.assert_array_equal(compile(result).predict(matrix), expected.predict(X))


# --- Files and threads --------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
def test_saved_bytes_do_not_depend_on_the_number_of_threads(learner, tmp_path):
    inputs, labels = examples(learner)
    fixed = {"random_state": 0} if "random_state" in learner().get_params() else {}
    for jobs in (1, 3, 10**9):
        learner(n_jobs=jobs, **fixed).fit(inputs, labels).save(tmp_path / f"{jobs}.uk")
    contents = {path.read_bytes() for path in tmp_path.iterdir()}
    assert len(contents) == 1
    assert b"n_jobs" not in contents.pop()


@pytest.mark.parametrize(
    "parameters",
    [{"class_weight": {"items": [[1]]}}, {"C": {"items": [5]}}, {"C": {"items": [[{"items": []}, 2]]}}],
)
def test_parameters_that_are_damaged(tmp_path, parameters):
    PolySVC(random_state=0).fit(X, y).save(tmp_path / "a.uk")
    kind, arrays, settings = container.read(tmp_path / "a.uk")
    settings["origin"]["parameters"] = parameters
    container.write(tmp_path / "b.uk", kind, arrays, settings)
    load(tmp_path / "b.uk")
    with pytest.raises(FormatError, match="the parameters of the estimator are damaged"):
        PolySVC.load(tmp_path / "b.uk")
    settings["origin"]["parameters"] = {"n_jobs": "many", "verbose": [1], "C": 3.0}
    container.write(tmp_path / "b.uk", kind, arrays, settings)
    loaded = PolySVC.load(tmp_path / "b.uk")
    assert (loaded.n_jobs, loaded.verbose, loaded.C) == (None, 0, 3.0)


# --- Parsers and trees --------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1_000_000, 2**62])
@pytest.mark.parametrize(
    ("parser", "text"), [(ArcEagerParser, treebank), (Chunker, chunks), (BunsetsuParser, bunsetsu)]
)
def test_parsers_without_frequent_features_are_refused(tmp_path, parser, text, count):
    (tmp_path / "text").write_text(text(20, 0))
    with pytest.raises(ValueError, match=f"no feature occurs {count} times in 20 sentences: give more"):
        parser(min_count=count).fit(tmp_path / "text")
    with pytest.raises(ValueError, match="'min_count' parameter"):
        parser(min_count=2**63).fit(tmp_path / "text")


def test_a_syntax_tree_that_contains_itself():
    tree = ast.parse("f(x)\ng(x)")
    shared = ast.parse("h(y)").body[0]
    tree.body.extend([shared, shared])  # shared is not a cycle
    TreeSVC().fit([tree, ast.parse("a + b")] * 2, [0, 1, 0, 1])
    tree.body[0].value.args[0] = tree
    with pytest.raises(ValueError, match="the tree contains itself, below a node"):
        TreeSVC().fit([tree, ast.parse("a + b")] * 2, [0, 1, 0, 1])


# --- Numbers of other types ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["M8[s]", "m8[s]", complex])
@pytest.mark.parametrize("learner", ROW_LEARNERS)
def test_complex_numbers_and_dates_are_refused(learner, kind):
    """As a number, a missing date would be -9.2e18."""
    fitted = learner().fit(X, y)
    rows = np.zeros((60, 8), kind)
    calls = (learner().fit, score(fitted), compile(fitted).decision_function)
    for call in calls:
        with pytest.raises(ValueError, match=r"Complex data not supported|Dates and times are not numbers"):
            call(rows, y) if call == calls[0] else call(rows)


@pytest.mark.parametrize("learner", ROW_LEARNERS)
def test_layouts_and_types_of_numbers(learner):
    fitted = learner().fit(X, y)
    fast = compile(fitted)
    expected = score(fitted)(X)
    for rows in (
        X.astype(object),
        X.astype(">f8"),
        X.astype(np.longdouble),
        X.astype(np.float16),
        X > 0,
        X.tolist(),
        np.asfortranarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
        X[::-1, ::-1].copy()[::-1, ::-1],
        np.frombuffer(X.tobytes()).reshape(X.shape),  # which is read-only
    ):
        np.testing.assert_array_equal(score(fitted)(rows), expected)
        np.testing.assert_array_equal(fast.decision_function(rows), fast.decision_function(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("tol", [1e-15, 1e-300, np.float32(1.0)])
@pytest.mark.parametrize("learner", LEARNERS)
def test_gaps_below_rounding_errors_end_training(learner, tol):
    """Solvers end although rounding errors keep the gap above the tolerance."""
    fitted = learner(tol=tol, max_iter=30).fit(*examples(learner))
    assert 0 <= fitted.gap_ <= 1
