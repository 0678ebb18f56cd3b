"""Search for the best model of a table: measure each family, along its path of C, on held-out records."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

from unkernel.selection.candidates import Family
from unkernel.selection.labels import LabelLearners, compute_label_loss
from unkernel.selection.targets import Task

BASELINES = {"classes": "majority", "numbers": "mean", "labels": "majority"}
_FOLDS = 5
_MAX_RECORDS_IN_FOLDS = 5_000  # if there are more records, a quarter of them is held out, only once
_MAX_RECORDS = 60_000  # if there are more records, the search uses a sample
_HELD_OUT_SHARE = 0.25
_SEARCH_TOL = 1e-2
_MAX_PAIRS = 5e7  # pairs of features in the rows of all folds: about ten seconds per value of C
_MIN_PATH = 3  # number of values of C before the end of a path can be estimated
_MIN_IMPROVEMENT = 1e-3  # relative; smaller differences are within the tolerance of the solvers


@dataclass(frozen=True)
class Trial:
    """The result of measuring a model on held-out records.

    Attributes
    ----------
    name : str
        The kind of model.
    C : float or None
        The weight of the loss in training; None for the majority prediction.
    loss : float
        Log loss of classes, mean log loss of several labels, or root mean squared error of numbers.
    seconds : float
        CPU time for all folds.
    family : Family, default=None
        The family that makes learners of this kind; None for the majority prediction.

    See Also
    --------
    TableEstimator : The estimator that compares models.

    Examples
    --------
    >>> from unkernel.selection import Trial
    >>> str(Trial("pairs, l1", C=2.0, loss=0.28, seconds=1.5))
    'pairs, l1, C = 2: 0.28 in 1.50 s'
    """

    name: str
    C: float | None
    loss: float
    seconds: float
    family: Family | None = None

    def __str__(self) -> str:
        C = "" if self.C is None else f", C = {self.C:g}"
        return f"{self.name}{C}: {self.loss:.5g} in {self.seconds:.2f} s"


Fold = tuple[NDArray[np.intp], NDArray[np.intp]]  # the indices of the training and the held-out records


@dataclass(frozen=True)
class EncodedTable:
    """Encoded records and their targets.

    Attributes
    ----------
    task : str
    divided, scaled : csr_matrix of shape (n_records, n_features)
        The records with numbers divided into intervals, and with numbers scaled.
    y : ndarray of shape (n_records,) or (n_records, n_labels)
    class_weight : dict, default=None
        Weight of each class, in training and in the loss; None means equal weights.
    """

    task: Task
    divided: Any
    scaled: Any
    y: NDArray[Any]
    class_weight: dict[Any, float] | None = None

    def weights_of(self, records: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the weights of some records."""
        if self.class_weight is None:
            return np.ones(len(records))
        return np.array([self.class_weight[label] for label in self.y[records].tolist()])

    def parameters_for(self, records: NDArray[np.intp]) -> dict[str, Any]:
        """Return the parameters with which a learner weighs the classes of some records."""
        if self.class_weight is None:
            return {}
        labels = np.unique(self.y[records]).tolist()
        return {"class_weight": {label: self.class_weight[label] for label in labels}}

    def rows_for(self, family: Family) -> Any:
        """Return the rows that the models of a family learn from."""
        return self.scaled if family.scales_numbers else self.divided


class Deadline:
    """The time limit of a search."""

    def __init__(self, seconds: float | None) -> None:
        self._end = math.inf if seconds is None else time.monotonic() + seconds
        self.has_ended = False  # whether the limit has prevented a model from being tried

    def allows(self, seconds: float) -> bool:
        """Return whether at least so many seconds are left."""
        is_allowed = time.monotonic() + seconds <= self._end
        self.has_ended = self.has_ended or not is_allowed
        return is_allowed


def search(
    table: EncodedTable,
    families: tuple[Family, ...],
    deadline: Deadline,
    *,
    seed: int,
    n_jobs: int | None,
    on_trial: Callable[[Trial], object],
) -> list[Trial]:
    """Measure the majority prediction and each family along its path; always measure the first family."""
    folds = make_folds(table, seed)
    trials = [measure_majority(table, folds)]
    on_trial(trials[0])
    for family in families:
        if not _is_affordable(table, family, folds):
            continue
        if len(trials) > 1 and not deadline.allows(0.0):
            break
        best_loss = min(trial.loss for trial in trials)
        losses: list[float] = []
        for trial in _follow_path(table, family, folds, deadline, n_jobs):
            trials.append(trial)
            on_trial(trial)
            losses.append(trial.loss)
            if not can_improve(losses, best_loss if len(folds) == 1 else math.inf):
                break
    return trials


def _is_affordable(table: EncodedTable, family: Family, folds: list[Fold]) -> bool:
    """Return whether training visits few enough pairs of features; l1 penalties make most visits needless."""
    parameters = family.parameters
    if parameters["degree"] == 1 or parameters.get("penalty") == "l1":
        return True
    rows = table.rows_for(family)
    features_per_row = np.diff(rows.indptr).astype(np.float64)
    pairs_per_row = np.mean(features_per_row**2) / 2
    return bool(sum(len(train) for train, _ in folds) * pairs_per_row <= _MAX_PAIRS)


def can_improve(losses: list[float], best_loss: float) -> bool:
    """Return whether the next loss of a path may be lower than all before it and than `best_loss`.

    Losses along a path first fall, by ever smaller steps, and then rise. The steps are extrapolated as a
    geometric series, whose limit follows from the last two steps.
    """
    if len(losses) > 1 and losses[-1] > losses[-2] * (1 - _MIN_IMPROVEMENT):
        return False
    if len(losses) < _MIN_PATH:
        return True
    step_before, step = losses[-3] - losses[-2], losses[-2] - losses[-1]
    if not 0 < step < step_before:
        return True
    limit = losses[-1] - step**2 / (step_before - step)
    return limit < best_loss


def make_folds(table: EncodedTable, seed: int) -> list[Fold]:
    """Return the training and held-out rows of each fold: five folds for few records, one for many."""
    y, n_records = table.y, len(table.y)
    n_folds = min(_FOLDS, n_records)
    stratify = table.task == "classes" and np.unique(y, return_counts=True)[1].min() >= n_folds
    if n_records <= _MAX_RECORDS_IN_FOLDS:
        kind: Any = StratifiedKFold if stratify else KFold
        splitter = kind(n_folds, shuffle=True, random_state=seed)
    else:
        kind = StratifiedShuffleSplit if stratify else ShuffleSplit
        size = min(n_records, _MAX_RECORDS)
        held_out = round(_HELD_OUT_SHARE * size)
        splitter = kind(1, test_size=held_out, train_size=size - held_out, random_state=seed)
    return list(splitter.split(np.zeros(n_records), y))


def _follow_path(
    table: EncodedTable, family: Family, folds: list[Fold], deadline: Deadline, n_jobs: int | None
) -> Iterator[Trial]:
    """Measure a family for one C after the other; yield each trial, until too little time is left."""
    learners = []
    for train, _ in folds:
        make_learner = partial(
            family.make,
            C=family.Cs[0],
            warm_start=True,
            tol=_SEARCH_TOL,
            n_jobs=n_jobs,
            random_state=0,
            **table.parameters_for(train),
        )
        is_single = table.task != "labels"
        learners.append(make_learner() if is_single else LabelLearners(make_learner, table.y.shape[1]))
    rows = table.rows_for(family)
    seconds = 0.0
    for C in family.Cs:
        if seconds and not deadline.allows(seconds):
            return
        cpu_start, start = time.process_time(), time.monotonic()
        losses = []
        for learner, (train, held_out) in zip(learners, folds, strict=True):
            fit(learner.set_params(C=C), rows[train], table.y[train])
            losses.append(_measure(table, learner, rows, held_out))
        loss = _average(losses, table, folds)
        seconds = 2 * (time.monotonic() - start)  # allows for the next C, which takes longer
        yield Trial(family.name, C, loss, time.process_time() - cpu_start, family)


def scale_cost(trial: Trial, n_records: int) -> float:
    """Return ``C`` for all records; the best penalty grows with the square root of their number."""
    assert trial.C is not None
    return trial.C * math.sqrt(min(1.0, _MAX_RECORDS / n_records))


def fit(learner: Any, rows: Any, y: NDArray[Any]) -> None:
    """Fit a learner; a regression learns differences from the mean, because its constant is penalised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The number of unique classes")
        warnings.filterwarnings("ignore", "Label .* is present in all training examples")
        if hasattr(learner, "predict_proba"):
            learner.fit(rows, y)
            return
        mean = float(np.mean(y))
        learner.fit(rows, y - mean)
    learner._set_model(replace(learner.model_, intercept=learner.model_.intercept + mean))


def _measure(table: EncodedTable, learner: Any, rows: Any, held_out: NDArray[np.intp]) -> float:
    """Return the loss of a fitted learner on held-out records."""
    y = table.y[held_out]
    if table.task == "numbers":
        return float(np.sqrt(np.mean((learner.predict(rows[held_out]) - y) ** 2)))
    probabilities = learner.predict_proba(rows[held_out])
    if table.task == "labels":
        return compute_label_loss(y, probabilities)
    return _log_loss(learner.classes_, probabilities, y, table.weights_of(held_out))


def _average(losses: list[float], table: EncodedTable, folds: list[Fold]) -> float:
    """Return the mean of the losses of all folds, by the weights of their held-out records."""
    totals = [table.weights_of(held_out).sum() for _, held_out in folds]
    return float(np.average(losses, weights=totals))


def measure_majority(table: EncodedTable, folds: list[Fold]) -> Trial:
    """Measure the loss of always predicting the shares of the classes, or the mean."""
    losses = []
    for train, held_out in folds:
        y, targets = table.y[train], table.y[held_out]
        if table.task == "numbers":
            losses.append(float(np.sqrt(np.mean((targets - y.mean()) ** 2))))
        elif table.task == "labels":
            losses.append(compute_label_loss(targets, np.tile(y.mean(axis=0), (len(targets), 1))))
        else:
            classes, codes = np.unique(y, return_inverse=True)
            totals = np.bincount(codes, weights=table.weights_of(train))
            probabilities = np.tile(totals / totals.sum(), (len(targets), 1))
            losses.append(_log_loss(classes, probabilities, targets, table.weights_of(held_out)))
    return Trial(BASELINES[table.task], None, _average(losses, table, folds), 0.0)


def _log_loss(
    classes: NDArray[Any],
    probabilities: NDArray[np.float64],
    y: NDArray[Any],
    weights: NDArray[np.float64],
) -> float:
    """Return the mean log loss; classes missing in training get the smallest positive probability."""
    columns = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    of_target = probabilities[np.arange(len(y)), columns]
    known = classes[columns] == y
    losses = -np.log(np.where(known, of_target, 0.0).clip(min=np.finfo(float).eps))
    return float(np.average(losses, weights=weights))
