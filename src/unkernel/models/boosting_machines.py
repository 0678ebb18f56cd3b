"""Make models of conjunctions from Explainable Boosting Machines of the package interpret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.decision import Decision, Softmax
from unkernel.models.feature_sets import make_set_model

_MAX_TERM_SIZE = 3
_CLASSIFIED = ("logit", "mlogit")  # links for which the probabilities are a softmax of the scores
_VALUED = "identity"  # link for which the score is the prediction


def from_boosting_machine(
    machine: Any, features: Mapping[tuple[int, int], NDArray[np.int64]], n_features: int
) -> ConjunctionModel:
    """Return the model of a fitted Explainable Boosting Machine.

    Parameters
    ----------
    machine : ExplainableBoostingClassifier or ExplainableBoostingRegressor
    features : mapping
        For each column and each number of columns in a term, the features of the column's bins: one feature
        per bin, or -1 for a bin that has none.
    n_features : int
        Number of features.

    Raises
    ------
    ValueError
        If the machine has an unsupported link, or a term of too many columns.
    """
    check_machine(machine)
    sets, weights = [], []
    for term, table in zip(machine.term_features_, machine.term_scores_, strict=True):
        bin_features = [features[column, len(term)] for column in term]
        term_sets, term_weights = _list_entries(term, bin_features, np.asarray(table, dtype=np.float64))
        sets.append(term_sets)
        weights.append(term_weights)
    is_classifier = machine.link_ in _CLASSIFIED
    return make_set_model(
        np.concatenate(sets),
        np.concatenate(weights),
        np.array(machine.intercept_, dtype=np.float64).reshape(-1),
        n_features,
        classes=np.asarray(machine.classes_) if is_classifier else np.empty(0, dtype=np.int64),
        origin={"format": "interpret", "estimator": type(machine).__name__},
        probability=Softmax() if is_classifier else None,
        ranking=None if is_classifier else Decision("regression", np.empty(0, dtype=np.int64)),
    )


def check_machine(machine: Any) -> None:
    """Raise a ``ValueError`` if a machine cannot be converted to a model of conjunctions."""
    name = type(machine).__name__
    if machine.link_ == "monoclassification":
        raise ValueError(f"the {name} was trained on one class: its answer is equal for all records")
    if machine.link_ not in (*_CLASSIFIED, _VALUED):
        raise ValueError(
            f"the {name} has the link {machine.link_!r}, and only 'logit', 'mlogit' and 'identity' can be "
            "compiled: train it with the objective 'log_loss', 'rmse' or another one with these links"
        )
    largest = max(map(len, machine.term_features_), default=0)
    if largest > _MAX_TERM_SIZE:
        raise ValueError(
            f"the {name} has a term of {largest} columns, and a model has conjunctions of at most "
            f"{_MAX_TERM_SIZE}: train it with interactions of fewer columns"
        )


def _list_entries(
    term: Any, bin_features: list[NDArray[np.int64]], table: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nonzero entries of a term's table: the set of features and the weights of each entry.

    For each column of the term, `bin_features` has the feature of each bin.
    """
    sizes = tuple(map(len, bin_features))
    if table.shape[: len(sizes)] != sizes:
        raise ValueError(
            f"the term of columns {', '.join(map(str, term))} has a table of shape {table.shape}, and its "
            f"bins make {sizes}: it is of another version of interpret"
        )
    weights = table.reshape(*sizes, -1)
    if not np.isfinite(weights).all():
        raise ValueError(f"the term of columns {', '.join(map(str, term))} has scores that are not finite")
    entries = np.nonzero(weights.any(axis=-1))
    members = [features[bins] for features, bins in zip(bin_features, entries, strict=True)]
    entry_sets = np.stack(members, axis=1)
    has_features = (entry_sets >= 0).all(axis=1)
    sets = np.full((int(has_features.sum()), _MAX_TERM_SIZE), -1, dtype=np.int64)
    sets[:, : len(sizes)] = -np.sort(-entry_sets[has_features], axis=1)
    return sets, weights[entries][has_features]
