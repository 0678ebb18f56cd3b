"""Train machines with interpret, and write their attributes and answers to tests/golden/interpret.

PYTHONPATH=tests python -m reference.golden_machines    # with interpret-core, as tests/golden/README.md says
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd

from reference.boosting_machines import GOLDEN, to_json

_QUICK = {"outer_bags": 1, "n_jobs": 1, "max_rounds": 60, "max_bins": 12, "max_interaction_bins": 4}
KINDS = ["continuous", "continuous", "nominal", "nominal", "nominal", "continuous"]


def people(rows: int, seed: int, *, unseen: bool = False) -> Any:
    """Return records with missing values and, if asked for, categories that training has not seen."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows).astype(float),
            "income": np.round(rng.normal(size=rows) * 10, 2),
            "job": rng.choice(["clerk", "pilot", "künstler", *["unseen", ""] * unseen], rows),
            "grade": rng.integers(0, 6 if unseen else 3, rows),
            "flag": rng.random(rows) < 0.5,
            "unused": 1.0,
        }
    )
    X.loc[::11, "income"] = np.nan
    X.loc[::17, "age"] = np.nan
    X["job"] = X["job"].astype(object).where(np.arange(rows) % 13 > 0, None)
    return X


def targets(X: Any) -> dict[str, Any]:
    """Return targets of several kinds."""
    older, richer = X.age.fillna(50) > 40, X.income.fillna(0) > 0
    yes = (older ^ richer) | (X.job == "clerk")
    return {
        "binary": np.where(yes, "yes", "no"),
        "multiclass": np.where(yes, X.grade, 2),
        "values": 3.0 * yes + X.income.fillna(4.5) * (X.grade == 1) + X.age.fillna(30) / 10,
    }


def machines() -> dict[str, Any]:
    """Return trained machines by name."""
    from interpret.glassbox import ExplainableBoostingClassifier as Classifier
    from interpret.glassbox import ExplainableBoostingRegressor as Regressor

    X = people(400, 0)
    y = targets(X)
    kinds = {"feature_types": KINDS}
    return {
        "binary": Classifier(interactions=4, **kinds, **_QUICK).fit(X, y["binary"]),
        "found kinds": Classifier(interactions=2, **_QUICK).fit(X, y["binary"]),
        "multiclass": Classifier(interactions=2, **kinds, **_QUICK).fit(X, y["multiclass"]),
        "regression": Regressor(interactions=3, **kinds, **_QUICK).fit(X, y["values"]),
        "pairs only": Classifier(exclude="mains", interactions=[(0, 2), (1, 3)], **kinds, **_QUICK).fit(
            X, y["binary"]
        ),
        "three columns": Regressor(interactions=[(0, 1, 3), (2, 4)], **kinds, **_QUICK).fit(X, y["values"]),
    }


def main() -> None:
    """Write the files."""
    warnings.simplefilter("ignore")
    GOLDEN.mkdir(exist_ok=True)
    for name, machine in machines().items():
        text = json.dumps(to_json(machine, people(40, 1, unseen=True)), ensure_ascii=False)
        (GOLDEN / f"{name.replace(' ', '-')}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
