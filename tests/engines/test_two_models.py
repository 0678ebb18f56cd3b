"""Files with two models: tables that give other scores than the model in the file."""

from __future__ import annotations

import numpy as np
import pytest

import unkernel
from reference.kernels import EXACT, applicable, make_kernel_model, make_pairs_model, polynomial
from reference.models import make_model
from unkernel import FormatError, load
from unkernel.models import LinearModel, container
from unkernel.models.kernel import Kernel

MODELS = {
    "sets": make_model(2, degree=3, classes=["a", "ü", "猫"]),
    "monomials": make_model(2, degree=2, sets=False),
    "degree 1": make_model(3, degree=1),
    "cubic": make_kernel_model(1, polynomial(3), vectors=60, features=20, scores=3, fixed_width=True),
    "wide": make_kernel_model(1, polynomial(2)),
    "real": make_kernel_model(2, polynomial(2), real=True),
    "rbf": make_kernel_model(2, Kernel("rbf", gamma=0.2), real=True),
    "sigmoid": make_kernel_model(2, Kernel("sigmoid", gamma=0.1, coef0=-0.5)),
    "linear kernel": make_kernel_model(2, Kernel("linear"), scores=6),
    "pairs": make_pairs_model(0, classes=4),
}
MODELS["linear"] = unkernel.compile(MODELS["linear kernel"]).to_model()
CASES = [
    (name, engine)
    for name, model in MODELS.items()
    for engine in (applicable(model, EXACT) if hasattr(model, "kernel") else ["expanded"])
]


@pytest.fixture(params=CASES, ids="-".join)
def path(request, tmp_path):
    name, engine = request.param
    unkernel.compile(MODELS[name], engine, rare=5, measure=False).save(tmp_path / "model.uk")
    return tmp_path / "model.uk"


def test_valid_files_pass_the_comparison(path):
    for _ in range(5):
        load(path, verify=True)


def test_tables_of_another_model_are_refused(path):
    """All weights of the engine, or of the model, are negated: each is valid alone."""
    kind, arrays, settings = container.read(path, mmap=False)
    for part in ("engine.", "model."):
        other = {
            name: -array if name.startswith(part) and array.dtype == np.float64 and is_weight(name) else array
            for name, array in arrays.items()
        }
        container.write(path, kind, other, settings)
        load(path)
        with pytest.raises(FormatError, match="the model beside them give different scores") as caught:
            load(path, verify=True)
        assert caught.value.file == str(path)


def is_weight(name):
    return not name.endswith(("norms", "values", "list_values"))


def test_a_single_changed_weight_of_a_linear_model_is_found(tmp_path):
    path = tmp_path / "model.uk"
    fast = unkernel.compile(MODELS["linear kernel"], measure=False)
    model = fast.to_model()
    linear = LinearModel(np.arange(1.0, 61.0).reshape(10, 6), model.intercept, model.decision, 10, True, {})
    unkernel.compile(linear, measure=False).save(path)
    kind, arrays, settings = container.read(path, mmap=False)
    assert kind == "compiled"
    arrays["model.weights"] = arrays["model.weights"].copy()
    arrays["model.weights"][7, 3] *= 1.0 + 1e-5
    container.write(path, kind, arrays, settings)
    with pytest.raises(FormatError, match="the model beside them give different scores"):
        load(path, verify=True)


def test_approximate_tables_are_not_compared(tmp_path):
    fast = unkernel.compile(MODELS["cubic"], "pruned", threshold=0.5)
    fast.save(tmp_path / "model.uk")
    assert not load(tmp_path / "model.uk", verify=True).exact
