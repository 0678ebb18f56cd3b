"""Stand-ins for interpret's Explainable Boosting Machines, which compute their answers term by term.

They have the public attributes of a fitted machine, and need no package. ``tests/golden/interpret`` holds
the attributes of machines that interpret has trained, and interpret's answers; ``tests/golden/README.md``
says how they were made.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "interpret"
ATTRIBUTES = (
    "bins_", "term_features_", "term_scores_", "link_", "intercept_", "feature_bounds_", "feature_names_in_",
)  # fmt: skip


class _Machine(BaseEstimator):
    """The attributes of a machine; its scores are sums over terms, looked up one by one."""

    def __init__(self, attributes: Any = None) -> None:
        self.attributes = attributes
        vars(self).update(attributes or {})
        if attributes:
            self.n_features_in_ = len(self.bins_)

    def fit(self, X: Any, y: Any) -> Any:
        """Not available."""
        raise NotImplementedError

    def _scores(self, X: Any) -> Any:
        rows = X.astype(object).to_numpy() if hasattr(X, "to_numpy") else np.asarray(X, dtype=object)
        return np.array([self._score(row) for row in rows])

    def _score(self, row: Any) -> Any:
        score = np.array(self.intercept_, dtype=float).reshape(-1)
        for term, table in zip(self.term_features_, self.term_scores_, strict=True):
            place = []
            for column in term:
                levels = self.bins_[column]
                place.append(_bin(row[column], levels[min(len(term), len(levels)) - 1]))
            score = score + table[tuple(place)]
        return score


def _bin(value: Any, bins: Any) -> int:
    """Return the bin of a value: 0 if it is missing, the last if it is unknown."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return 0
    if not isinstance(bins, dict):
        return 1 + sum(1 for cut in bins if value >= cut)
    if not isinstance(value, str):
        value = str(int(value)) if float(value).is_integer() else str(float(value))
    return bins.get(value, max(bins.values(), default=0) + 1)


class ExplainableBoostingClassifier(ClassifierMixin, _Machine):
    """A stand-in for interpret's classifier."""

    def decision_function(self, X: Any) -> Any:
        """Return the scores."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Any:
        """Return the softmax of the scores."""
        scores = self._scores(X)
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Return the most probable class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class ExplainableBoostingRegressor(RegressorMixin, _Machine):
    """A stand-in for interpret's regressor."""

    def predict(self, X: Any) -> Any:
        """Return the scores."""
        return self._scores(X)[:, 0]


for _kind in (ExplainableBoostingClassifier, ExplainableBoostingRegressor):
    _kind.__module__ = "interpret.glassbox"  # by which machines are recognised


# --- Files -------------------------------------------------------------------------------------------------


def to_json(machine: Any, X: Any) -> dict[str, Any]:
    """Return the attributes of a machine, records, and the machine's own answers."""
    attributes = {name: _plain(getattr(machine, name)) for name in ATTRIBUTES}
    answers = {"predict": _plain(machine.predict(X))}
    if hasattr(machine, "classes_"):
        attributes["classes_"] = _plain(machine.classes_)
        answers |= {
            name: _plain(getattr(machine, name)(X)) for name in ("decision_function", "predict_proba")
        }
    records = {name: [_plain(value) for value in X[name].astype(object)] for name in X.columns}
    return {"attributes": attributes, "records": records, "answers": answers}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {"categories": value}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return None if isinstance(value, float) and np.isnan(value) else value


def read(name: str) -> tuple[Any, Any, dict[str, Any]]:
    """Return a machine, records, and the answers of interpret for them."""
    stored = json.loads((GOLDEN / name).read_text(encoding="utf-8"))
    attributes = stored["attributes"]
    attributes["bins_"] = [
        [level["categories"] if isinstance(level, dict) else np.array(level) for level in levels]
        for levels in attributes["bins_"]
    ]
    attributes["term_features_"] = [tuple(term) for term in attributes["term_features_"]]
    attributes["term_scores_"] = [np.array(table) for table in attributes["term_scores_"]]
    attributes["feature_bounds_"] = np.array(attributes["feature_bounds_"], dtype=float)
    is_classifier = "classes_" in attributes
    if is_classifier:
        attributes["classes_"] = np.array(attributes["classes_"])
    kind = ExplainableBoostingClassifier if is_classifier else ExplainableBoostingRegressor
    records = pd.DataFrame(
        {name: pd.Series(values, dtype=object) for name, values in stored["records"].items()}
    )
    return kind(attributes), records, {key: np.array(value) for key, value in stored["answers"].items()}


# --- Generated machines ------------------------------------------------------------------------------------

_CATEGORIES = ["a", "b", "", "é", "1", "2.5", "1.0", "True", "nan", "-3"]


@st.composite
def machines(draw: Any) -> tuple[Any, Any]:
    """Draw a machine with random tables, and records for it."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n_columns = draw(st.integers(1, 4))
    bins = [_draw_bins(draw, rng) for _ in range(n_columns)]
    terms = draw(
        st.lists(
            st.sets(st.integers(0, n_columns - 1), min_size=1, max_size=3).map(sorted).map(tuple),
            min_size=1,
            max_size=6,
            unique=True,
        )
    )
    scores = draw(st.sampled_from([1, 1, 3]))
    is_regression = scores == 1 and draw(st.booleans())
    tables = [_make_table(rng, bins, term, scores) for term in terms]
    attributes = {
        "bins_": bins,
        "term_features_": terms,
        "term_scores_": tables,
        "link_": "identity" if is_regression else "logit" if scores == 1 else "mlogit",
        "intercept_": float(rng.normal()) if is_regression else rng.normal(size=scores),
        "feature_bounds_": np.array([[-8.0, 9.0] for _ in bins]),
        "feature_names_in_": [f"column {place}" for place in range(n_columns)],
    }
    if not is_regression:
        attributes["classes_"] = np.array(["maybe", "no", "yes"][: max(2, scores)])
    kind = ExplainableBoostingRegressor if is_regression else ExplainableBoostingClassifier
    records = pd.DataFrame(
        {
            name: pd.Series([_draw_value(rng, levels[0]) for _ in range(25)], dtype=object)
            for name, levels in zip(attributes["feature_names_in_"], bins, strict=True)
        }
    )
    return kind(attributes), records


def _draw_bins(draw: Any, rng: np.random.Generator) -> list[Any]:
    """Draw the bins of a column, perhaps with coarser ones for larger terms."""
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(_CATEGORIES), min_size=1, max_size=6, unique=True))
        fine = {name: number + 1 for number, name in enumerate(names)}
        return [fine, {name: (number + 1) // 2 for name, number in fine.items()}][: draw(st.integers(1, 2))]
    sizes = draw(st.sampled_from([[0], [1], [6], [7, 3], [5, 2, 0], [80, 4]]))
    scale = draw(st.sampled_from([1.0, 0.5, 0.37]))
    return [np.unique(np.round(rng.normal(size=size) * 9) * scale) for size in sizes]


def _make_table(rng: np.random.Generator, bins: Any, term: Any, scores: int) -> Any:
    levels = [bins[column][min(len(term), len(bins[column])) - 1] for column in term]
    sizes = [(max(level.values()) if isinstance(level, dict) else len(level) + 1) + 2 for level in levels]
    table = rng.normal(size=[*sizes, *([scores] if scores > 1 else [])])
    for place in product(*map(range, sizes)):
        if rng.random() < 0.2:
            table[place] = 0.0
    return table


def _draw_value(rng: np.random.Generator, bins: Any) -> Any:
    if rng.random() < 0.15:
        return None if rng.random() < 0.5 else np.nan
    if isinstance(bins, dict):
        return [*bins, *_CATEGORIES, 1, 2.5, -3.0, 7, "unseen"][rng.integers(len(bins) + 15)]
    return float([*bins, *bins, 0.0, 0.3, -50.0, 50.0][rng.integers(2 * len(bins) + 4)])
