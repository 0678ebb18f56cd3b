"""Common behaviour of all models."""

from __future__ import annotations

import numpy as np
import pytest

import unkernel
from unkernel.models import load_model
from unkernel.models.base import Model

X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
TREES = ["(S (NP dogs) (VP bark))", "(NP (NP cats) (PP of))", "(S (NP cats) (VP bark))"]


def models():
    yield unkernel.PolySVC(degree=2).fit(X, [1, 1, 0, 0]).to_model()
    yield unkernel.PolySVC(degree=2).fit(X, [0, 1, 2, 0]).to_model()
    yield unkernel.PolySVC(degree=2, storage="split").fit(X, [1, 1, 0, 0]).to_model()
    yield unkernel.CuttingPlaneSVC().fit(X, [1, 0, 1, 0]).to_model()
    yield unkernel.TreeSVC().fit(TREES, [1, 0, 1]).to_model()


@pytest.mark.parametrize("model", list(models()), ids=repr)
def test_common_attributes_of_all_models(model, tmp_path):
    assert isinstance(model, Model)
    assert model.intercept.shape == (model.n_scores,) == (model.decision.n_scores,)
    assert model.intercept.dtype == np.float64
    assert model.classes.tolist() == model.decision.classes.tolist()
    assert model.nbytes > 0
    assert repr(model).startswith(type(model).__name__)
    assert f"{len(model.classes)} classes" in repr(model)
    model.save(tmp_path / "m.uk")
    loaded = load_model(tmp_path / "m.uk")
    assert type(loaded) is type(model)
    assert loaded.kind == model.kind
    assert np.array_equal(loaded.intercept, model.intercept)
    assert repr(loaded) == repr(model)
    restored = type(model).from_container("again", *model.to_container())
    assert np.array_equal(restored.intercept, model.intercept)
