"""``compile``: the scores of every engine equal the scores of the model."""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import unkernel
from reference.kernels import EXACT, applicable, assert_scores, make_kernel_model, polynomial, rows_for
from reference.models import make_model
from reference.selection import parametrize_pairs
from unkernel import PolySVC, write_svmlight
from unkernel.engines.search import candidates
from unkernel.engines.search.options import parse_bytes
from unkernel.models.kernel import Kernel

RARE = (0.0, 0.005, 0.5, 1, 3, 1e9)
ONE_ROW = np.ones((1, 12))


@parametrize_pairs(real=[False, True], scores=[1, 3, 6], degree=[1, 2, 3, 4])
def test_every_exact_engine_gives_the_kernel_sum(degree, scores, real):
    model = make_kernel_model(degree, polynomial(degree), scores=scores, real=real)
    for engine in applicable(model):
        for rare in RARE if engine == "split" else RARE[:1]:
            fast = unkernel.compile(model, engine, rare=rare)
            assert (fast.engine, fast.exact) == (engine, True)
            for X in (rows_for(model), rows_for(model, real=True)):
                assert_scores(fast.decision_function(X), model, X)


@given(
    model=st.builds(
        make_kernel_model,
        st.integers(0, 2**32),
        st.builds(
            polynomial,
            st.integers(1, 4),
            st.sampled_from([0.01, 0.5, 1.0, 3.0]),
            st.sampled_from([0.0, 0.5, 1.0, 10.0]),
        ),
        vectors=st.sampled_from([1, 2, 63, 64, 65, 600]),
        features=st.integers(1, 40),
        share=st.sampled_from([0.02, 0.3, 1.0]),
        scores=st.sampled_from([1, 3]),
        real=st.booleans(),
    ),
    seed=st.integers(0, 2**32),
    rare=st.sampled_from(RARE),
)
def test_generated_models(model, seed, rare):
    rows = [rows_for(model, seed, count=5), rows_for(model, seed, real=True, count=5)]
    for engine in applicable(model):
        fast = unkernel.compile(model, engine, rare=rare, memory="50M")
        for X in rows:
            assert_scores(fast.decision_function(sparse.csr_matrix(X)), model, X)


@pytest.mark.parametrize(
    ("gamma", "coef0"), [(1.0, -0.5), (-1.0, 0.5), (1.0, -1.0), (-0.5, -0.2), (0.0, 1.0)]
)
@pytest.mark.parametrize("degree", [2, 3, 4])
def test_kernels_that_are_not_positive_definite(degree, gamma, coef0):
    """D_1 is 0 for (x'z - 1/2)^2: single features change the scores of real rows, but not of binary rows."""
    model = make_kernel_model(3, polynomial(degree, gamma, coef0))
    for engine in applicable(model):
        if engine == "split" and min(gamma, coef0) < 0:
            with pytest.raises(ValueError, match="coef0 are not negative; use engine="):
                unkernel.compile(model, engine, rare=5)
            continue
        fast = unkernel.compile(model, engine, rare=5)
        for X in (rows_for(model), rows_for(model, real=True)):
            assert_scores(fast.decision_function(X), model, X)


@pytest.mark.parametrize("coef0", [-0.5 + 1e-9, -0.5 + 1e-6])
def test_kernels_with_nearly_zero_weights_of_single_features(coef0):
    model = make_kernel_model(3, polynomial(2, 1.0, coef0))
    for engine in set(applicable(model)) - {"split"}:
        X = rows_for(model, real=True)
        assert_scores(unkernel.compile(model, engine).decision_function(X), model, X)


OTHER_KERNELS = [
    Kernel("rbf", gamma=0.3),
    Kernel("rbf", gamma=0.0),
    Kernel("sigmoid", gamma=0.1, coef0=-0.3),
    polynomial(5),
    polynomial(7, 0.1, -1.0),
]


@parametrize_pairs(scores=[1, 3], real=[False, True], kernel=[*OTHER_KERNELS])
def test_other_kernels(kernel, real, scores):
    model = make_kernel_model(2, kernel, real=real, scores=scores, vectors=70)
    assert applicable(model) == (["inverted"] if real else ["inverted", "bitsliced"])
    for engine in ("auto", *applicable(model)):
        fast = unkernel.compile(model, engine)
        assert fast.engine in ("inverted", "bitsliced")
        for X in (rows_for(model), rows_for(model, real=True)):
            assert_scores(fast.decision_function(X), model, X)
    for engine in ("expanded", "split"):
        with pytest.raises(ValueError, match="needs a polynomial kernel of degree 1 to 4"):
            unkernel.compile(model, engine)


@pytest.mark.parametrize("kernel", [Kernel("linear"), polynomial(1, 0.5, 2.0), polynomial(0)])
@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("scores", [1, 6])
def test_kernels_that_are_linear(kernel, real, scores):
    model = make_kernel_model(2, kernel, real=real, scores=scores)
    for engine in ("auto", "expanded"):
        fast = unkernel.compile(model, engine)
        assert fast.engine == "expanded" and fast.model is model
        for X in (rows_for(model), rows_for(model, real=True)):
            assert_scores(fast.decision_function(X), model, X)


def test_rows_of_more_features_than_a_byte_can_count():
    """The bitsliced engine uses other code for counts above 255."""
    for kernel in (polynomial(2, 0.01), Kernel("rbf", gamma=0.01)):
        model = make_kernel_model(1, kernel, features=400, share=0.8)
        X = np.zeros((5, 400))
        for row, count in enumerate([254, 255, 256, 257, 400]):
            X[row, :count] = 1.0
        for engine in applicable(model, ("inverted", "bitsliced")):
            assert_scores(unkernel.compile(model, engine).decision_function(X), model, X)


def test_columns_that_are_far_apart():
    distant_columns = np.array([0, 7, 10**6, 10**12, 2**40, 2**61])
    narrow = make_kernel_model(features=len(distant_columns))
    vectors = narrow.support_vectors
    wide = sparse.csr_matrix(
        (vectors.data, distant_columns[vectors.indices], vectors.indptr.astype(np.int64)),
        shape=(40, 2**61 + 1),
    )
    model = dataclasses.replace(narrow, vectors=wide, n_features=2**61 + 1)
    for engine in ("auto", *EXACT):
        fast = unkernel.compile(model, engine, rare=20, memory="10M")
        for columns in ([0, 2, 5], [1, 3, 4], []):
            row = np.zeros((1, len(distant_columns)))
            row[0, columns] = 1.0
            assert_scores([fast.score_one(distant_columns[columns].tolist())], narrow, row)


def test_stored_zeros_do_not_change_scores():
    model = make_kernel_model()
    X = sparse.csr_matrix(rows_for(model))
    X.data[::3] = 0.0
    for engine in applicable(model):
        assert_scores(unkernel.compile(model, engine).decision_function(X), model, X)


@pytest.mark.parametrize("vectors", [0, 1])
def test_models_of_no_or_one_support_vector(vectors):
    full = make_kernel_model(vectors=3)
    model = dataclasses.replace(
        full, vectors=full.support_vectors[:vectors], coefficients=full.coefficients[:vectors]
    )
    for engine in ("auto", *EXACT):
        X = rows_for(model)
        assert_scores(unkernel.compile(model, engine).decision_function(X), model, X)


def test_support_vectors_without_features():
    full = make_kernel_model()
    model = dataclasses.replace(full, vectors=sparse.csr_matrix(full.support_vectors.shape))
    for engine in ("auto", *EXACT):
        X = rows_for(model)
        assert_scores(unkernel.compile(model, engine).decision_function(X), model, X)


# --- The choice --------------------------------------------------------------------------------------


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("sample", [None, "matrix", "sparse", "path"])
def test_auto_chooses_an_exact_engine(real, sample, tmp_path):
    model = make_kernel_model(real=real, vectors=100)
    X = rows_for(model, real=real)
    rows = {"matrix": X, "sparse": sparse.csc_array(X), "path": tmp_path / "rows.svm"}.get(sample)
    if sample == "path":
        write_svmlight(rows, sparse.csr_matrix(X), np.zeros(len(X)))
    messages = []
    fast = unkernel.compile(model, sample=rows, on_progress=messages.append)
    assert fast.exact and fast.engine in applicable(model)
    assert_scores(fast.decision_function(X), model, X)
    assert len(messages) == len(fast.candidates) > 1
    (chosen,) = [candidate for candidate in fast.candidates if candidate.chosen]
    assert chosen is fast.chosen and chosen.engine == fast.engine
    built = [candidate for candidate in fast.candidates if candidate.nbytes > 0]
    assert chosen.microseconds == min(candidate.microseconds for candidate in built) > 0
    assert {candidate.engine for candidate in built} == set(applicable(model))


def test_auto_respects_the_memory_limit():
    model = make_kernel_model(vectors=300, features=60, kernel=polynomial(3))
    unlimited = unkernel.compile(model, sample=rows_for(model))
    smallest = min(c.nbytes for c in unlimited.candidates if c.nbytes > 0)
    largest = max(c.nbytes for c in unlimited.candidates)
    assert largest > 2 * smallest
    bounded = unkernel.compile(model, memory=2 * smallest)
    assert all(c.nbytes <= 2 * smallest for c in bounded.candidates if c.microseconds >= 0)
    assert any(c.note and c.microseconds < 0 for c in bounded.candidates)
    X = rows_for(model)
    assert_scores(bounded.decision_function(X), model, X)


@pytest.mark.parametrize("engine", ["auto", *EXACT])
def test_memory_too_small_for_any_engine_is_refused(engine):
    with pytest.raises(MemoryError, match=r"no engine fits into 10 bytes .*; raise memory"):
        unkernel.compile(make_kernel_model(), engine, memory=10)


@pytest.mark.parametrize("model", [make_model(), make_kernel_model(kernel=Kernel("linear"))])
def test_weight_tables_beyond_the_memory_limit_are_refused(model):
    with pytest.raises(MemoryError, match=r"the smallest that was tried takes [0-9,]+ bytes"):
        unkernel.compile(model, memory=10)


def test_a_table_for_columns_is_part_of_the_memory():
    """The table that maps columns up to 10^6 to ranks takes 4 MB."""
    narrow = make_kernel_model()
    vectors = narrow.support_vectors
    columns = vectors.indices.astype(np.int64) * 80_000
    wide = sparse.csr_matrix((vectors.data, columns, vectors.indptr.astype(np.int64)), shape=(40, 960_000))
    model = dataclasses.replace(narrow, vectors=wide, n_features=960_000)
    with contextlib.suppress(MemoryError):
        assert unkernel.compile(model, memory="1M").nbytes <= 1_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [("200M", 2e8), ("1.5G", 1.5e9), ("10 kb", 1e4), ("1000000", 1e6), (" .5T ", 5e11), ("7B", 7), ("3.", 3)],
)
def test_sizes_can_be_given_as_text(text, expected):
    assert parse_bytes(text) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    "text", ["1e3", "-1", "", "0", "0M", "M", "1MM", "1 2", "1,5G", "inf", "nan", "١", "9" * 400]
)
def test_texts_that_are_not_sizes_are_refused(text):
    with pytest.raises(ValueError, match="memory must be bytes, such as 200M"):
        unkernel.compile(make_kernel_model(), memory=text)


@pytest.mark.parametrize("memory", [0, -1, True, float("nan")])
def test_numbers_that_are_not_sizes_are_refused(memory):
    with pytest.raises(ValueError, match="memory must be a number of bytes above 0"):
        unkernel.compile(make_kernel_model(), memory=memory)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"engine": "fast"}, "engine must be one of auto, inverted"),
        ({"engine": None}, "engine must be one of"),
        ({"engine": "Expanded"}, "got 'Expanded'"),
        ({"engine": "pruned"}, "needs a threshold above 0"),
        ({"threshold": 0.1}, "the exact engines have none"),
        ({"engine": "split", "threshold": 0.1}, "the exact engines have none"),
        *[({"engine": "pruned", "threshold": t}, "threshold") for t in (0, -1.0, np.nan, np.inf, "1", True)],
        *[
            ({"engine": "split", "rare": rare}, "rare must be")
            for rare in (-1, np.nan, np.inf, True, "1", None)
        ],
        ({"sample": np.empty((0, 12))}, "no rows to measure on"),
        ({"sample": [[np.nan] * 12]}, "NaN"),
        ({"sample": [1.0, 2.0]}, "2D"),
    ],
)
def test_options_that_are_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        unkernel.compile(make_kernel_model(), **options)


def test_a_sample_of_another_width_is_refused_where_the_width_is_known():
    with pytest.raises(ValueError, match="X has 5 features, but the model was trained on 12"):
        unkernel.compile(make_kernel_model(fixed_width=True), sample=np.ones((2, 5)))
    assert unkernel.compile(make_kernel_model(), sample=np.ones((2, 5))).exact


def test_missing_sample_files_are_refused():
    with pytest.raises(FileNotFoundError):
        unkernel.compile(make_kernel_model(), sample="no such file")


@pytest.mark.parametrize("engine", ["bitsliced", "split", "pruned"])
def test_engines_that_need_binary_support_vectors(engine):
    threshold = 0.1 if engine == "pruned" else None
    with pytest.raises(ValueError, match=r"needs support vectors whose values are all 1.*use engine="):
        unkernel.compile(make_kernel_model(real=True), engine, threshold=threshold)


@pytest.mark.parametrize("engine", ["inverted", "bitsliced", "split"])
def test_models_of_weights_have_no_support_vectors(engine):
    with pytest.raises(ValueError, match="use engine='auto'"):
        unkernel.compile(make_model(), engine)


def test_a_precomputed_kernel_is_refused():
    with pytest.raises(ValueError, match="precomputed kernel cannot be compiled"):
        unkernel.compile(make_kernel_model(kernel=Kernel("precomputed")))


# --- Pruning -----------------------------------------------------------------------------------------


def compile_pruned(model, threshold, **options):
    return unkernel.compile(model, "pruned", threshold=threshold, **options)


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("scores", [1, 3])
def test_tiny_thresholds_prune_no_conjunction(degree, scores):
    model = make_kernel_model(1, polynomial(degree), scores=scores)
    X = rows_for(model)
    assert_scores(compile_pruned(model, 1e-300).decision_function(X), model, X)


def test_a_larger_threshold_keeps_fewer_conjunctions():
    model = make_kernel_model(1, polynomial(3), vectors=100)
    counts = [
        sum(compile_pruned(model, t).heaviest_conjunctions(0)["counts"])
        for t in (1e-300, 0.1, 1.0, 10.0, 1e9)
    ]
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == len(counts) and counts[-1] == 0


def test_pruned_conjunctions_are_those_below_the_threshold():
    """The threshold of positive weights is scaled by the share of positive support vectors."""
    model = make_kernel_model(1, polynomial(2), vectors=100)
    all_conjunctions = unkernel.compile(model, "expanded").heaviest_conjunctions(10**6)
    share = (model.coefficients > 0).mean()
    weights = all_conjunctions["weights"][:, 0]
    is_kept = np.where(weights > 0, weights >= 2.0 * share, -weights >= 2.0 * (1 - share))
    conjunctions = compile_pruned(model, 2.0).heaviest_conjunctions(10**6)
    assert 0 < is_kept.sum() < len(is_kept)
    assert np.array_equal(conjunctions["columns"], all_conjunctions["columns"][is_kept])
    np.testing.assert_allclose(conjunctions["weights"], all_conjunctions["weights"][is_kept], rtol=1e-12)


def test_pruned_classifiers_are_marked_as_approximate():
    model = make_kernel_model(1, vectors=100)
    X = rows_for(model, count=50)
    fast = compile_pruned(model, 3.0, sample=X)
    assert not fast.exact and fast.engine == "pruned" and "approximate" in repr(fast)
    assert "approximate" not in repr(unkernel.compile(model))
    exact = model.decision.choose(model.scores(X))
    agreed = 100 * np.mean(fast.predict(X) == exact)
    assert agreed < 100
    assert fast.chosen.note.startswith(f"{agreed:.2f} % of 50 sample labels")


@pytest.mark.filterwarnings("error")
def test_pruning_a_model_of_no_support_vectors():
    full = make_kernel_model()
    model = dataclasses.replace(full, vectors=full.support_vectors[:0], coefficients=full.coefficients[:0])
    assert "nan" not in compile_pruned(model, 0.1).chosen.note


# --- Sources -----------------------------------------------------------------------------------------


@parametrize_pairs(binary=[True, False], labels=[[0, 1], ["a", "b", "c"]], degree=[1, 2, 3])
def test_a_poly_svc(degree, labels, binary):
    rng = np.random.default_rng(degree)
    X = (rng.random((80, 10)) < 0.4).astype(float)
    X = X if binary else X * rng.normal(size=X.shape)
    svc = PolySVC(degree, random_state=0, tol=1e-2).fit(X, np.array(labels)[rng.integers(0, len(labels), 80)])
    for source in (svc, svc.to_model(), unkernel.compile(svc)):
        for options in ({}, {"sample": X}, {"engine": "expanded", "memory": "2M"}):
            fast = unkernel.compile(source, **options)
            np.testing.assert_allclose(
                fast.decision_function(X), svc.decision_function(X), rtol=1e-10, atol=1e-12
            )
            assert np.array_equal(fast.predict(X), svc.predict(X))


def test_objects_that_are_not_models_are_refused(tmp_path):
    (tmp_path / "text").write_text("hello\n")
    with pytest.raises(unkernel.FormatError):
        unkernel.compile(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        unkernel.compile(tmp_path / "nothing")
    with pytest.raises(ValueError, match="is not supported"):
        unkernel.compile(__import__("sklearn.tree").tree.DecisionTreeClassifier().fit([[0], [1]], [0, 1]))
    with pytest.raises(Exception, match="not fitted"):
        unkernel.compile(__import__("sklearn.svm").svm.SVC())


@pytest.mark.parametrize("kind", ["kernel", "linear", "conjunctions"])
def test_uk_files_as_sources(kind, tmp_path):
    source = make_kernel_model(fixed_width=True)
    if kind == "linear":
        source = make_kernel_model(kernel=Kernel("linear"), fixed_width=True)
    if kind == "conjunctions":
        source = make_model()
    X = rows_for(source, extra_columns=0)
    expected = unkernel.compile(source, "expanded").decision_function(X)
    source.save(tmp_path / "model.uk")
    fast = unkernel.compile(tmp_path / "model.uk", "expanded")
    assert np.array_equal(fast.decision_function(X), expected)
    fast.save(tmp_path / "fast.uk")
    recompiled = unkernel.compile(str(tmp_path / "fast.uk"), "expanded")
    assert np.array_equal(recompiled.decision_function(X), expected)
    assert type(recompiled.to_model()) is type(source)


def test_measurements_count_the_time_of_all_threads(monkeypatch):
    """The processor time of all threads counts, because rows are also scored on other threads."""
    now = [0.0]

    class SlowEngine:
        def score(self, rows, threads):
            now[0] += 0.001 * rows.shape[0]

    monkeypatch.setattr(candidates.time, "process_time", lambda: now[0])
    assert candidates.measure(SlowEngine(), np.zeros((100, 2))) == pytest.approx(1000.0)
