"""Errors about memory name the table and its size, and give advice."""

from __future__ import annotations

import numpy as np
import pytest

from unkernel import PolyLogisticRegression, PolySVC, TreeSVC
from unkernel.data import memory
from unkernel.poly import _base


@pytest.fixture
def with_20_megabytes(monkeypatch):
    """Set the free memory that the package sees to 20 MB."""
    monkeypatch.setattr(_base, "available_bytes", lambda: 20_000_000)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("estimator", [PolySVC, PolyLogisticRegression])
def test_rows_times_classes(with_20_megabytes, estimator, degree):
    rows = 2500
    X = np.array([[(k >> bit) & 1 for bit in range(12)] for k in range(rows)], float)
    options = {"penalty": "l2"} if estimator is PolyLogisticRegression else {}
    with pytest.raises(
        MemoryError, match=r"rows times 2500 classes need about .*B and 20.0 MB are available"
    ):
        estimator(degree=degree, **options).fit(X, np.arange(rows))


def test_weights_of_many_features(with_20_megabytes):
    X = np.eye(600, 20_000)
    with pytest.raises(MemoryError, match="the weights of all features and classes need about"):
        PolySVC(degree=1).fit(np.hstack([X, np.random.default_rng(0).random((600, 3000))]), np.arange(600))


def test_condensed_rows_that_are_dense(with_20_megabytes):
    X = np.random.default_rng(0).random((50, 1000))
    with pytest.raises(MemoryError, match=r'storage="condensed" needs about .* and 20\.0 MB are'):
        PolySVC(degree=2, storage="condensed").fit(X, np.arange(50) % 2)


def test_limits_of_the_process_count(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 40, 1 << 40))
    assert 0 < memory._count_process_bytes() < 1 << 40
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1, 1))
    assert memory.available_bytes() == 1
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert memory._count_process_bytes() == 0


def flat(labels):
    return "(S " + " ".join(f"({label} w)" for label in labels) + ")"


def test_partial_trees_of_many_children():
    """Memory grows with the children of a node, and with the pairs of children of the same label."""
    trees = [flat(f"a{k}" for k in range(2000)), flat("abc"), "(S (b w))"]
    assert np.isfinite(TreeSVC("ptk", normalize=False).fit(trees, [0, 1, 1]).decision_function(trees)).all()
    wide_tree = flat("a" for _ in range(3000))
    with pytest.raises(MemoryError, match="3000 and 3000 children have more than 8388608 pairs of children"):
        TreeSVC("ptk", normalize=False).fit([wide_tree, flat("ab")], [0, 1])
