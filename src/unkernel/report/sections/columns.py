"""Importances of the columns of records: the loss of quality when a column's values are shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.engines import CompiledClassifier, RecordClassifier
from unkernel.measures.base import ModelMeasures
from unkernel.measures.predictions import ModelPredictions
from unkernel.records.files.columns import find_feature_columns
from unkernel.report.markup import Bar, Html, join_parts, paragraph, side_by_side, table
from unkernel.report.page import Section

_MAX_ROWS = 2000
_MAX_LISTED_COLUMNS = 40
_N_SHUFFLES = 5


def make_columns_section(measured_models: Sequence[ModelMeasures]) -> Section | None:
    """Return the permutation importances of the columns of models of records; None for other models."""
    tables = [_list_importances(model) for model in measured_models if _reads_columns(model)]
    if not tables:
        return None
    explanation = paragraph(
        "Permutation importance: the mean loss of the measure when the values of one column are shuffled "
        f"among the records, and its standard deviation over {_N_SHUFFLES} shuffles. Columns with the same "
        "information share their importance, so a small value does not mean that a column is useless."
    )
    return Section("Columns", join_parts([explanation, side_by_side(tables)]))


def compute_permutation_importances(measures: ModelMeasures) -> tuple[str, dict[str, NDArray[np.float64]]]:
    """Return the name of the first measure and, for each column, its loss in each shuffle."""
    predictions, generator = measures.predictions, np.random.default_rng(0)
    assert isinstance(predictions, ModelPredictions)
    classifier = predictions.classifier
    assert isinstance(classifier, RecordClassifier)
    predictions = _sample(predictions, generator)
    name, unshuffled = next(iter(type(measures)(predictions).values().items()))
    columns_of_features = find_feature_columns(classifier.plan)
    losses = {}
    for column in dict.fromkeys(name for name in columns_of_features if name is not None):
        is_of_column = np.array([name == column for name in columns_of_features])
        losses[column] = np.array(
            [
                unshuffled - _measure_shuffled(measures, predictions, is_of_column, generator)
                for _ in range(_N_SHUFFLES)
            ]
        )
    return name, losses


def _reads_columns(model: ModelMeasures) -> bool:
    predictions = model.predictions
    return (
        isinstance(predictions, ModelPredictions)
        and isinstance(predictions.classifier, RecordClassifier)
        and not predictions.classifier.plan.whole
    )


def _list_importances(model: ModelMeasures) -> Html:
    name, losses = compute_permutation_importances(model)
    means = {column: float(values.mean()) for column, values in losses.items()}
    order = sorted(means, key=lambda column: -means[column])[:_MAX_LISTED_COLUMNS]
    largest = max((abs(means[column]) for column in order), default=0.0) or 1.0
    rows = [
        [column, Bar(f"{means[column]:+.4f}", means[column] / largest), f"{losses[column].std():.4f}"]
        for column in order
    ]
    head = ["column", f"loss of {name}", "deviation"]
    omitted = f"; {len(losses) - len(rows):,} with less are not listed" if len(losses) > len(rows) else ""
    return table(head, rows, caption=f"{model.predictions.name}: importance of columns{omitted}")


def _sample(predictions: ModelPredictions, generator: np.random.Generator) -> ModelPredictions:
    count = len(predictions.examples)
    if count <= _MAX_ROWS:
        return predictions
    indices = np.sort(generator.choice(count, _MAX_ROWS, replace=False))
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
    """Return the first measure after a column's features are exchanged between records at random."""
    rows, inner = predictions.inputs, predictions.inner
    assert isinstance(rows, CsrRows)
    assert isinstance(inner, CompiledClassifier)
    row_of_entry, is_shuffled = rows.row_of_entry(), is_of_column[rows.indices]
    row_of_entry = np.where(is_shuffled, generator.permutation(rows.shape[0])[row_of_entry], row_of_entry)
    order = np.lexsort((rows.indices, row_of_entry))
    ends = np.concatenate([[0], np.cumsum(np.bincount(row_of_entry, minlength=rows.shape[0]))])
    shuffled = CsrRows.of(ends, rows.indices[order], rows.data[order], rows.shape[1])
    shuffled_predictions = replace(predictions, inputs=shuffled, raw=inner.score_csr(shuffled, 1))
    return next(iter(type(measures)(shuffled_predictions).values().values()))
