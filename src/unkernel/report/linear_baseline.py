"""Train a linear model on the same features as a baseline."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows

if TYPE_CHECKING:
    from unkernel.measures.predictions import ModelPredictions
    from unkernel.measures.rank_measures import RankMeasures


@dataclass(frozen=True, eq=False)
class LinearBaseline:
    """A linear baseline, given its training examples: an SVM with default parameters, or a RankSVM.

    A RankSVM is trained for rankings. Every column is divided by its largest absolute value.

    Attributes
    ----------
    rows : CsrRows
        Training rows, encoded for the classifier of the model.
    labels : (rows,) array
    groups : (rows,) array or None
        Queries, for rankings.
    """

    rows: CsrRows
    labels: NDArray[Any]
    groups: NDArray[Any] | None = None

    def find_correct(self, predictions: ModelPredictions) -> NDArray[np.bool_]:
        """Return, for each test example, whether the linear model classifies it correctly."""
        from unkernel.cutplane import CuttingPlaneSVC

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user cannot change the parameters of this model
            model = CuttingPlaneSVC().fit(self._scale(self.rows), self.labels)
        assert isinstance(predictions.inputs, CsrRows)
        predicted = model.predict(self._scale(predictions.inputs))
        labels = predictions.examples.labels
        if predicted.dtype.kind not in "biuf" or labels.dtype.kind not in "biuf":
            predicted, labels = predicted.astype(str), labels.astype(str)
        return np.asarray(predicted == labels)

    def measure_ranks(self, predictions: ModelPredictions) -> RankMeasures:
        """Return the measures of the linear model's ranking of the test examples."""
        from unkernel.cutplane import RankSVM
        from unkernel.measures.rank_measures import RankMeasures

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = RankSVM().fit(self._scale(self.rows), self.labels, qid=self.groups)
        assert isinstance(predictions.inputs, CsrRows)
        scores = model.decision_function(self._scale(predictions.inputs))
        return RankMeasures(replace(predictions, raw=np.asarray(scores, np.float64).reshape(-1, 1)))

    def _scale(self, rows: CsrRows) -> Any:
        """Return rows as a CSR matrix, divided by the largest absolute value of each training column."""
        from scipy import sparse

        width = max(self.rows.shape[1], rows.shape[1])
        largest = np.zeros(width)
        np.maximum.at(largest, self.rows.indices, np.abs(self.rows.data))
        largest[largest == 0] = 1.0
        data = rows.data / largest[rows.indices]
        return sparse.csr_matrix((data, rows.indices, rows.indptr), shape=(rows.shape[0], width))
