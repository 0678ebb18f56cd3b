"""Importances of the columns of records: the loss of quality when a column's values are shuffled."""

from __future__ import annotations

from collections.abc import Sequence

from unkernel.engines import RecordClassifier
from unkernel.measures.base import ModelMeasures
from unkernel.measures.permutation import compute_permutation_losses
from unkernel.measures.predictions import ModelPredictions
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


def _reads_columns(model: ModelMeasures) -> bool:
    predictions = model.predictions
    return (
        isinstance(predictions, ModelPredictions)
        and isinstance(predictions.classifier, RecordClassifier)
        and not predictions.classifier.plan.whole
    )


def _list_importances(model: ModelMeasures) -> Html:
    name, losses = compute_permutation_losses(model, n_repeats=_N_SHUFFLES, max_records=_MAX_ROWS)
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
