"""Explanations and weights of classifiers of rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from unkernel.engines.estimator import CompiledEstimator
from unkernel.engines.explain.linear_weights import LinearWeights
from unkernel.engines.tables.compiled_tables import CONJUNCTIONS, Tables
from unkernel.models import ConjunctionModel, KernelModel, LinearModel

if TYPE_CHECKING:
    from unkernel.engines.explain.explanation import Explanation, Heavy


class ExplainableClassifier(LinearWeights, CompiledEstimator):
    """Base of the classifier of rows: explains scores and lists weights."""

    tables: Tables | None

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether the scores are exactly those of the model."""

    @property
    @abstractmethod
    def _tables(self) -> Tables:
        """Tables that can list conjunctions."""

    @property
    @abstractmethod
    def _validated_model(self) -> KernelModel | LinearModel | ConjunctionModel:
        """The model, fully checked."""

    @abstractmethod
    def _check_names(self, X: Any) -> None:
        """Check that a table, or one of its rows, has the column names of training, in the same order."""

    def _get_linear_model(self) -> Any:
        return self._validated_model

    def explain(self, row: Any, top: int | None = 10, *, of: Any = None, names: Any = None) -> Explanation:
        """Explain the score of one row by its features and conjunctions.

        Parameters
        ----------
        row : list of int, dict of int to float, or array or sparse matrix of shape (1, n_features)
            The row. A list of integers names the columns that are 1, a dict maps columns to values.
        top : int or None, default=10
            How many contributions to list, largest first; None lists all.
        of : label, default=None
            The class whose score to explain. None explains the score of ``classes_[1]`` if there are two
            classes, and compares the predicted class with the runner-up if there are more.
        names : sequence or mapping, default=None
            Names of the columns; by default those that the model holds.

        Returns
        -------
        Explanation
            The contributions; with ``rest`` and ``intercept`` they add up to the score.

        Raises
        ------
        ValueError
            If the engine is ``"pruned"``, whose scores are approximate.
        """
        if not self.exact:
            raise ValueError(
                "a pruned classifier answers approximately, so its contributions would not add up; explain "
                "with the exact model: unkernel.compile(fast.model)"
            )
        from unkernel.engines.explain.explanation import explain

        self._check_names(row)
        return explain(self._validated_model, row, top, of=of, names=names)

    def heaviest(self, top: int = 10) -> list[Heavy]:
        """List the features and conjunctions with the largest weights.

        Parameters
        ----------
        top : int, default=10
            How many to list, over all classes, largest absolute weight first.

        Returns
        -------
        list of Heavy
            Each with the names of its features, its weight and the class that it supports. For models of
            support vectors, conjunctions that are not in the tables (those of rare features for ``"split"``,
            those with small weights for ``"pruned"``) are not listed.
        """
        from unkernel.engines.explain.explanation import list_heaviest

        from_tables = isinstance(self.model, KernelModel) or not self.exact
        return list_heaviest(self._validated_model, self.tables if from_tables else None, top)

    def heaviest_conjunctions(self, top: int) -> dict[str, Any]:
        """Return the conjunctions with the largest weights in the tables, as arrays.

        Engines without conjunctions return none; rare features that were not expanded are left out.

        Parameters
        ----------
        top : int
            How many to return.

        Returns
        -------
        dict
            ``counts`` of conjunctions by size, and ``columns`` and ``weights`` of the largest.
        """
        if self._tables.layout != CONJUNCTIONS:
            return {"counts": [0] * 5, "columns": np.empty((0, 4), np.int64), "weights": np.empty((0, 1))}
        return self._tables.heaviest_conjunctions(top)
