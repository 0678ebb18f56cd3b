"""Compute permutation importances: the loss of quality when the values of a column are shuffled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.engines import CompiledClassifier, RecordClassifier
from unkernel.measures.base import ModelMeasures
from unkernel.measures.class_measures import ClassMeasures
from unkernel.measures.predictions import Examples, ModelPredictions, predict_examples
from unkernel.measures.value_measures import ValueMeasures
from unkernel.records.files.columns import find_feature_columns

Losses = tuple[str, dict[str, NDArray[np.float64]]]


def measure_permutation_losses(
    classifier: RecordClassifier,
    rows: CsrRows,
    y: ArrayLike,
    qid: ArrayLike | None,
    *,
    n_repeats: int,
    max_records: int,
) -> Losses:
    """Return the name of the first measure and, for each column, its loss in each shuffle.

    Parameters
    ----------
    classifier : RecordClassifier
    rows : CsrRows
        The encoded records.
    y : array-like of shape (n_records,)
        The correct labels or values.
    qid : array-like of shape (n_records,) or None
        Groups, for rankings.
    n_repeats : int
        Number of shuffles of each column.
    max_records : int
        Largest number of records to use.
    """
    groups = None if qid is None else np.asarray(qid)
    labels = np.asarray(y)
    if classifier.decision.outputs:
        raise ValueError("losses are measured for one target, and the model has several; give no y")
    if labels.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {labels.shape} instead")
    examples = Examples(labels, unit="record", groups=groups)
    predictions = predict_examples("the model", classifier, rows, examples)
    return compute_permutation_losses(
        _choose_measures(predictions), n_repeats=n_repeats, max_records=max_records
    )


def _choose_measures(predictions: ModelPredictions) -> ModelMeasures:
    if predictions.is_ranking:
        from unkernel.measures.rank_measures import RankMeasures  # imports scikit-learn

        return RankMeasures(predictions)
    return ClassMeasures(predictions) if predictions.classes else ValueMeasures(predictions)


def compute_permutation_losses(measures: ModelMeasures, *, n_repeats: int, max_records: int) -> Losses:
    """Return the name of the first measure and, for each column, its loss in each shuffle."""
    predictions, generator = measures.predictions, np.random.default_rng(0)
    assert isinstance(predictions, ModelPredictions)
    classifier = predictions.classifier
    assert isinstance(classifier, RecordClassifier)
    predictions = _sample(predictions, generator, max_records)
    name, unshuffled = next(iter(type(measures)(predictions).values().items()))
    columns_of_features = find_feature_columns(classifier.plan)
    losses = {}
    for column in dict.fromkeys(name for name in columns_of_features if name is not None):
        is_of_column = np.array([name == column for name in columns_of_features])
        losses[column] = np.array(
            [
                unshuffled - _measure_shuffled(measures, predictions, is_of_column, generator)
                for _ in range(n_repeats)
            ]
        )
    return name, losses


def _sample(
    predictions: ModelPredictions, generator: np.random.Generator, max_records: int
) -> ModelPredictions:
    """Return the predictions for a random sample of at most `max_records` records."""
    count = len(predictions.examples)
    if count <= max_records:
        return predictions
    indices = np.sort(generator.choice(count, max_records, replace=False))
    examples, inputs = predictions.examples, predictions.inputs
    assert isinstance(inputs, CsrRows)
    groups = None if examples.groups is None else examples.groups[indices]
    sampled = replace(examples, labels=examples.labels[indices], groups=groups)
    return replace(predictions, examples=sampled, inputs=inputs[indices], raw=predictions.raw[indices])


def _measure_shuffled(
    measures: ModelMeasures,
    predictions: ModelPredictions,
    is_of_column: NDArray[np.bool_],
    generator: np.random.Generator,
) -> float:
    """Return the first measure after the features of a column have been shuffled among the records."""
    rows, inner = predictions.inputs, predictions.inner
    assert isinstance(rows, CsrRows)
    assert isinstance(inner, CompiledClassifier)
    # Move the entries of the column to other rows, then sort all entries by row and feature.
    row_of_entry, is_shuffled = rows.row_of_entry(), is_of_column[rows.indices]
    row_of_entry = np.where(is_shuffled, generator.permutation(rows.shape[0])[row_of_entry], row_of_entry)
    order = np.lexsort((rows.indices, row_of_entry))
    ends = np.concatenate([[0], np.cumsum(np.bincount(row_of_entry, minlength=rows.shape[0]))])
    shuffled = CsrRows.of(ends, rows.indices[order], rows.data[order], rows.shape[1])
    shuffled_predictions = replace(predictions, inputs=shuffled, raw=inner.score_csr(shuffled, 1))
    return next(iter(type(measures)(shuffled_predictions).values().values()))
