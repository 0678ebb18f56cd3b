"""Linear SVMs and rankings: two solvers beside LIBLINEAR's, and an order of patients.

    python examples/linear_and_ranking.py

The solvers stop when the solution is proven to be within ``tol`` of the optimum. ``LinearSVC`` has no such
stop rule: it is run with smaller and smaller ``tol`` until its objective is as good as ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import LinearSVC

from example_data import Rows, binary_rows
from example_output import print_note, print_table, timed
from unkernel import CuttingPlaneSVC, RankSVM

C = 0.1
GAP = 1e-3
_LIBLINEAR_TOLERANCES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)


@dataclass(frozen=True)
class LinearFit:
    """A linear SVM or an order; `objective` is None where the problem is another one."""

    name: str
    ours: bool
    training_seconds: float
    objective: float | None
    gap: float
    accuracy: float | None
    roc_area: float


def linear_fits(rows: Rows) -> list[LinearFit]:
    """Both solvers, LinearSVC to the same objective, and RankSVM."""
    fits = []
    bound = 0.0
    for solver in ("cutting_plane", "dual"):
        svc = CuttingPlaneSVC(C=C, tol=GAP, solver=solver, random_state=0)
        _, seconds = timed(svc.fit, rows.train, rows.train_labels)
        bound = max(bound, svc.objective_ * (1 - svc.gap_))
        name = f"CuttingPlaneSVC, {solver}"
        fits.append(LinearFit(name, True, seconds, svc.objective_, svc.gap_, *_quality(svc, rows)))
    fits.append(_liblinear_fit(rows, bound))
    ranker = RankSVM(C=C, tol=GAP)
    _, seconds = timed(ranker.fit, rows.train, rows.train_labels)
    fits.append(LinearFit("RankSVM", True, seconds, None, ranker.gap_, None, _roc_area(ranker, rows)))
    return fits


def _liblinear_fit(rows: Rows, bound: float) -> LinearFit:
    for tol in _LIBLINEAR_TOLERANCES:
        svc = LinearSVC(C=C, loss="hinge", tol=tol, max_iter=10_000, random_state=0)
        _, seconds = timed(svc.fit, rows.train, rows.train_labels)
        objective = _hinge_objective(svc, rows)
        gap = (objective - bound) / objective
        if gap <= GAP:
            break
    return LinearFit("LinearSVC", False, seconds, objective, gap, *_quality(svc, rows))


def _hinge_objective(svc: LinearSVC, rows: Rows) -> float:
    signs = np.where(rows.train_labels == svc.classes_[1], 1.0, -1.0)
    losses = np.maximum(1.0 - signs * svc.decision_function(rows.train), 0.0)
    return float((np.sum(svc.coef_**2) + np.sum(svc.intercept_**2)) / 2 + svc.C * losses.sum())


def _quality(classifier: Any, rows: Rows) -> tuple[float, float]:
    return float(classifier.score(rows.test, rows.test_labels)), _roc_area(classifier, rows)


def _roc_area(learner: Any, rows: Rows) -> float:
    return float(roc_auc_score(rows.test_labels, learner.decision_function(rows.test)))


def diabetes_order() -> tuple[int, float, float]:
    """The number of training pairs; the share of test pairs in order by RankSVM, and by a regression."""
    X, y = load_diabetes(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(X, y, test_size=0.3, random_state=0)
    pairs = int((train_labels[:, None] > train_labels[None, :]).sum())
    ranker = GridSearchCV(RankSVM(), {"C": [0.1, 1.0, 10.0, 100.0]}, cv=5).fit(train, train_labels)
    regression = RidgeCV(alphas=[0.01, 0.1, 1.0, 10.0]).fit(train, train_labels)
    predicted = regression.predict(test)
    return pairs, float(ranker.score(test, test_labels)), _ordered_share(predicted, test_labels)


def _ordered_share(scores: NDArray[Any], labels: NDArray[Any]) -> float:
    higher, lower = np.nonzero(labels[:, None] > labels[None, :])
    return float(np.mean((np.sign(scores[higher] - scores[lower]) + 1) / 2))


def show(console: Console, rows: Rows | None = None) -> None:
    """A table, and a ranking."""
    rows = binary_rows(train=20_000, test=10_000) if rows is None else rows
    print_table(
        console,
        rows.shape,
        ("", "training", "objective", "gap", "correct", "ROC area"),
        ((fit.ours, _cells(fit)) for fit in linear_fits(rows)),
    )
    pairs, ours, theirs = diabetes_order()
    print_note(
        console,
        f"The first three solve the same problem, with the hinge loss and C = {C:g}, to within {GAP:.1%} of "
        "the optimum. RankSVM orders the rows of one class above those of the other.\n"
        f"Ranking the patients of scikit-learn's diabetes data, {pairs:,} training pairs: RankSVM puts "
        f"{ours:.1%} of the test pairs in order, ridge regression {theirs:.1%}; C and alpha are chosen by "
        "cross-validation.",
    )


def _cells(fit: LinearFit) -> tuple[str, ...]:
    return (
        fit.name,
        f"{fit.training_seconds:.2f} s",
        "" if fit.objective is None else f"{fit.objective:,.1f}",
        f"{fit.gap:.1e}",
        "" if fit.accuracy is None else f"{fit.accuracy:.1%}",
        f"{fit.roc_area:.4f}",
    )


if __name__ == "__main__":
    show(Console())
