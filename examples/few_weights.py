"""The part of the demo on sparse models: accuracy against the number of weights, along a path of C."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from unkernel.models import ConjunctionModel
from unkernel.poly import PolyLogisticRegression, PolySVC

_PATH_OF_C = (0.02, 0.05, 0.2, 1.0)


@dataclass(frozen=True)
class SparseFit:
    """A model, and how many of its weights are not 0."""

    name: str
    C: float
    training_seconds: float
    conjunctions: int
    accuracy: float


def sparse_fits(rows: Any, gamma: float) -> Iterator[SparseFit]:
    """An SVM that keeps all conjunctions, then two learners with an l1 penalty, the smallest models first."""
    shared: dict[str, Any] = {"degree": 2, "gamma": gamma, "random_state": 0}
    learners = {
        "PolySVC": (PolySVC(**shared), (1.0,)),
        "PolySVC, l1": (
            PolySVC(penalty="l1", loss="squared_hinge", warm_start=True, **shared),
            _PATH_OF_C,
        ),
        "PolyLogisticRegression, l1": (
            PolyLogisticRegression(penalty="l1", warm_start=True, **shared),
            _PATH_OF_C,
        ),
    }
    for name, (learner, costs) in learners.items():
        for C in costs:
            began = time.perf_counter()
            learner.set_params(C=C).fit(rows.train, rows.train_labels)
            seconds = time.perf_counter() - began
            right = float(np.mean(learner.predict(rows.test) == rows.test_labels))
            model = learner.to_model()
            assert isinstance(model, ConjunctionModel)
            yield SparseFit(name, C, seconds, model.n_conjunctions, right)


def show(console: Console, rows: Any, gamma: float) -> None:
    """A table of all fits."""
    table = Table(
        title="sparse models of the conjunctions above", title_justify="left", title_style="bold",
        box=SIMPLE_HEAD, show_edge=False,
    )  # fmt: skip
    table.padding = (0, 1, 0, 0)
    for heading in ("", "C", "training", "conjunctions", "correct"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    last = ""
    for fit in sparse_fits(rows, gamma):
        table.add_row(
            "" if fit.name == last else fit.name,
            f"{fit.C:g}",
            f"{fit.training_seconds:.2f} s",
            f"{fit.conjunctions:,}",
            f"{100 * fit.accuracy:.2f} %",
        )
        last = fit.name
    console.print(table)
    console.print(
        "With an l1 penalty most weights are 0, and only conjunctions that may matter are stored; the "
        "optimum is that over all of them. Each fit starts from the one above it.",
        style="dim",
        highlight=False,
    )
