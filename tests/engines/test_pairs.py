"""Linear one-vs-one machines of many classes: coefficients without zeros, and their engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC

import unkernel
from unkernel.engines.tables import builders
from unkernel.models import pair_coefficients as module
from unkernel.models.decision import expand_pairs
from unkernel.models.pair_coefficients import PairCoefficients


@pytest.fixture
def machine_and_rows(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Return a machine of 12 classes whose coefficients are stored without zeros, and rows."""
    monkeypatch.setattr(module, "DENSE_BYTES", 0)
    generator = np.random.default_rng(0)
    X = sparse.random(240, 60, 0.1, format="csr", random_state=0)
    X = sparse.hstack([generator.random((240, 1)) + 0.5, X])  # all classes have the first feature
    y = np.array([f"c{k:02}" for k in generator.integers(0, 12, 240)])
    return SVC(kernel="linear", C=10.0).fit(X.tocsr(), y), X.tocsr()


def test_coefficients_stand_for_the_whole_matrix() -> None:
    generator = np.random.default_rng(1)
    counts = [3, 0, 2, 4]
    values = generator.normal(size=(9, 3))
    pairs = PairCoefficients(values, counts)
    matrix_ = expand_pairs(values, counts)
    assert pairs.shape == matrix_.shape
    np.testing.assert_array_equal(np.asarray(pairs), matrix_)
    matrix = generator.normal(size=(5, 9))
    np.testing.assert_allclose(matrix @ pairs, matrix @ matrix_, atol=1e-12)
    with pytest.raises(ValueError, match="do not fit"):
        PairCoefficients(values, [3, 2, 4])


@pytest.mark.parametrize("share", [0.0, 0.75, 2.0])  # all, some or no features with one weight per pair
def test_scores_equal_the_kernel_sum(
    machine_and_rows: tuple[Any, Any], share: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    svc, X = machine_and_rows
    monkeypatch.setattr(builders, "_WHOLE_PAIRS_SHARE", share)
    fast = unkernel.compile(svc)
    assert fast.tables.layout == "pairs"
    scores = fast.score_csr(fast._check_rows(X), 1)
    np.testing.assert_allclose(scores, fast.model.scores(X), atol=1e-9)
    np.testing.assert_allclose(fast.decision_function(X), svc.decision_function(X), atol=1e-9)
    assert (fast.predict(X) == svc.predict(X)).all()
    fast.save(tmp_path / "m.uk")
    reloaded = unkernel.load(tmp_path / "m.uk")
    np.testing.assert_array_equal(reloaded.decision_function(X), fast.decision_function(X))
    assert isinstance(reloaded.model.coefficients, PairCoefficients)


@pytest.mark.parametrize("break_ties", [False, True])
def test_records_are_classified_natively(machine_and_rows: tuple[Any, Any], break_ties: bool) -> None:
    svc, X = machine_and_rows
    rows = X.toarray()
    labels = np.array(svc.predict(X))
    pipeline = make_pipeline(MaxAbsScaler(), SVC(kernel="linear", break_ties=break_ties)).fit(rows, labels)
    fast = unkernel.compile(pipeline)
    assert [fast.predict_one(row) for row in rows.tolist()] == pipeline.predict(rows).tolist()


def test_rows_are_explained_and_heaviest_features_listed(machine_and_rows: tuple[Any, Any]) -> None:
    svc, X = machine_and_rows
    fast = unkernel.compile(svc)
    explained = fast.explain(X[0], top=None)
    np.testing.assert_allclose(explained.score, fast.model.scores(X[0])[0], atol=1e-9)
    assert len(fast.heaviest(5)) == 5
