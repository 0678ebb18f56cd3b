"""The core checks the options and feature maps that Python passes to it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from unkernel._core import FeatureMap, arrange, expand, int16_pair_engine
from unkernel.data.rows.csr import CsrRows
from unkernel.engines.tables.builders import HeadLayout, Limits
from unkernel.engines.tables.compiled_tables import ConjunctionWeights

MAP = FeatureMap(degree=2, kind="kernel", gamma=1.0, coef0=1.0)
HEAD = HeadLayout(fused=0, ranks=2, by_frequency=False, grouped=0, most_sums=0.0)
LIMITS = Limits(rare_below=0, threshold=0.0, most_bytes=np.inf)
VECTORS = CsrRows.of([0, 1, 3], [0, 0, 1], [1.0, 1.0, 1.0], 2)
WEIGHTS = ConjunctionWeights.from_arrays(
    np.arange(2), np.arange(1, 3, dtype=np.uint64), np.ones((2, 1)), np.zeros(1), 2
)


def call_expand(vectors=VECTORS, coefficients=(1.0, -1.0), intercept=(0.5,), head=HEAD, limits=LIMITS):
    return expand(
        vectors,
        coefficients=np.array(coefficients),
        intercept=np.array(intercept),
        feature_map=MAP,
        sets=True,
        head=head,
        limits=limits,
        threads=1,
    )


def call_arrange(weights=WEIGHTS, sample=VECTORS):
    return arrange(weights, feature_map=MAP, sets=True, head=HEAD, sample=sample, threads=1)


def test_valid_inputs_are_accepted():
    assert call_expand()["constants"].tolist() == [0.5]
    assert call_arrange()["constants"].tolist() == [0.0]


@pytest.mark.parametrize("kind", ["", "Kernel", "rbf"])
def test_feature_maps_of_unknown_kinds_are_refused(kind):
    with pytest.raises(ValueError, match="'kernel' or 'plain'"):
        FeatureMap(degree=2, kind=kind, gamma=1.0, coef0=1.0)


@pytest.mark.parametrize("change", [{"degree": 2.5}, {"gamma": "1"}, {"coef0": None}, {"kind": 1}])
def test_parameters_of_a_map_of_other_types(change):
    with pytest.raises(TypeError):
        FeatureMap(**{"degree": 2, "kind": "kernel", "gamma": 1.0, "coef0": 1.0, **change})


@pytest.mark.parametrize(
    "name, value",
    [
        ("fused", -1),
        ("fused", 2**32),
        ("fused", 1.5),
        ("ranks", -1),
        ("ranks", 2**64),
        ("by_frequency", 1),
        ("by_frequency", None),
        ("grouped", "2"),
        ("most_sums", None),
        ("most_sums", "1"),
    ],
)
def test_options_of_other_types(name, value):
    with pytest.raises(TypeError, match=f"option '{name}' must be"):
        call_expand(head=replace(HEAD, **{name: value}))


@pytest.mark.parametrize("name", ["rare_below", "threshold", "most_bytes"])
def test_an_option_that_is_missing(name):
    limits = SimpleNamespace(**{key: value for key, value in vars(LIMITS).items() if key != name})
    with pytest.raises(AttributeError, match=name):
        call_expand(limits=limits)


@pytest.mark.parametrize(
    "vectors, message",
    [
        (CsrRows.of([0, 1, 3], [0, 0, 2], np.ones(3), 2), "outside the matrix"),
        (CsrRows.of([0, 1, 3], [0, 0, -1], np.ones(3), 2), "outside the matrix"),
        (CsrRows(np.array([0, 1, 3]), np.array([0, 0, 1]), np.ones(3), (2, 2)), "32 bits"),
        (CsrRows.of([0, 1, 2], [0, 0, 1], np.ones(3), 2), "index pointer"),
        (CsrRows.of([0, 1], [0], np.ones(1), 2), "differ in number"),
    ],
)
def test_support_vectors_that_do_not_fit(vectors, message):
    with pytest.raises(ValueError, match=message):
        call_expand(vectors)


@pytest.mark.parametrize("intercept", [(), (1.0, 2.0)])
def test_another_number_of_scores(intercept):
    with pytest.raises(ValueError, match="differ in number"):
        call_expand(intercept=intercept)


@pytest.mark.parametrize("name", ["columns", "keys", "weights", "intercept"])
@pytest.mark.parametrize("make", [call_arrange, lambda w: int16_pair_engine(w, feature_map=MAP, sets=True)])
def test_weights_that_are_no_arrays(name, make):
    with pytest.raises(TypeError, match=f"option '{name}' must be"):
        make(replace(WEIGHTS, **{name: "abc"}))
    with pytest.raises(TypeError, match=f"option '{name}' must be"):
        make(replace(WEIGHTS, **{name: np.ones((2, 2))}))


def test_samples_with_64_bit_indices_are_refused():
    sample = sparse.csr_matrix(np.eye(2))
    sample.indices, sample.indptr = sample.indices.astype(np.int64), sample.indptr.astype(np.int64)
    with pytest.raises(ValueError, match="32 bits"):
        call_arrange(sample=sample)
