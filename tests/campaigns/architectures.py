"""Write the scores of golden models, and of models trained from a seed, with all their bits.

    python tests/campaigns/architectures.py scores.json

`make test-other` runs this on two architectures and compares the files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import unkernel
from reference import golden_models

TREES = ["(S (A a) (B b))", "(S (B b) (A a))", "(S (A a) (A a))", "(T (B b) (S (A a)))"]


def stored_scores() -> Iterator[tuple[str, Any]]:
    """Yield the scores of every golden model file and of every foreign golden model."""
    inputs_of_model = {name: inputs for name, _, inputs in golden_models.make_models()}
    for path in sorted(golden_models.FILES.glob("*.uk")):
        inputs = inputs_of_model[path.stem.partition("-")[2]]
        yield path.stem, golden_models.open_model(path).decision_function(inputs)
    for path in sorted((golden_models.TESTS / "golden").glob("lib*.model")):
        rows = golden_models.rows("multi" if "multi" in path.name else "binary")
        compiled = unkernel.compile(unkernel.read_model(path), measure=False)
        yield path.stem, compiled.decision_function(rows.X)
        if "prob" in path.name and "svr" not in path.name:
            yield f"{path.stem}-probabilities", compiled.predict_proba(rows.X)


def binary_rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 300 rows of 40 binary features, with classes that depend on a conjunction."""
    rng = np.random.default_rng(seed)
    X = (rng.random((300, 40)) < 0.25).astype(float)
    return X, np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.random(300) > 0.3, 1, 0)


def trained_scores() -> Iterator[tuple[str, Any]]:
    """Yield the scores of estimators trained from a seed, on unseen rows."""
    X, y = binary_rows(0)
    unseen, _ = binary_rows(1)
    estimators = {
        "PolySVC": unkernel.PolySVC(C=0.1, random_state=0),
        "PolySVC-cubic": unkernel.PolySVC(3, C=0.1, random_state=0),
        "PolySVC-l1": unkernel.PolySVC(penalty="l1", loss="squared_hinge", random_state=0),
        "PolyLogisticRegression": unkernel.PolyLogisticRegression(random_state=0),
        "CuttingPlaneSVC": unkernel.CuttingPlaneSVC(),
        "RankSVM": unkernel.RankSVM(),
    }
    for name, estimator in estimators.items():
        yield name, estimator.fit(X, y).decision_function(unseen)
    yield "probabilities", estimators["PolyLogisticRegression"].predict_proba(unseen)
    for kernel in ("st", "sst", "ptk"):
        forest = TREES * 10
        machine = unkernel.TreeSVC(kernel, random_state=0).fit(forest, [0, 1, 0, 1] * 10)
        yield f"TreeSVC-{kernel}", machine.decision_function(TREES)


def express_in_bits(scores: Iterator[tuple[str, Any]]) -> dict[str, list[str]]:
    """Return scores as hexadecimal numbers, which keep every bit."""
    return {name: [float(score).hex() for score in np.ravel(values)] for name, values in scores}


if __name__ == "__main__":
    answers = {"stored": express_in_bits(stored_scores()), "trained": express_in_bits(trained_scores())}
    Path(sys.argv[1]).write_text(json.dumps(answers), encoding="utf-8")
