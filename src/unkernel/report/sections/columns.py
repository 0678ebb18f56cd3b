"""Importances of the columns of records, and the contributions of values of the most important columns."""

from __future__ import annotations

from collections.abc import Sequence

from unkernel.data.rows.csr import CsrRows
from unkernel.engines import RecordClassifier
from unkernel.engines.explain.explanation import AND
from unkernel.engines.explain.importances import (
    Importances,
    check_importances,
    compute_importances,
    encode_records,
)
from unkernel.measures.base import ModelMeasures
from unkernel.measures.permutation import compute_permutation_losses
from unkernel.measures.predictions import ModelPredictions
from unkernel.report.explanation_tables import make_importance_table
from unkernel.report.markup import Bar, Html, figure, join_parts, paragraph, side_by_side, table
from unkernel.report.page import Section

_MAX_ROWS = 2000
_MAX_LISTED_COLUMNS = 40
_N_SHUFFLES = 5
_N_DRAWN_COLUMNS, _N_DRAWN_PAIRS = 6, 2
_MIN_DRAWN_SHARE = 0.005


def make_columns_section(measured_models: Sequence[ModelMeasures]) -> Section | None:
    """Return a section with the importances of columns; None for models that do not take records."""
    tables = [_list_importances(model) for model in measured_models if _reads_columns(model)]
    if not tables:
        return None
    explanation = paragraph(
        "Permutation importance: the mean loss of the measure when the values of one column are shuffled "
        f"among the records, and its standard deviation over {_N_SHUFFLES} shuffles. Columns with the same "
        "information share their importance, so a small value does not mean that a column is useless."
    )
    shares = [_show_shares(model) for model in measured_models if _reads_columns(model)]
    return Section("Columns", join_parts([explanation, side_by_side(tables), *shares]))


def _reads_columns(model: ModelMeasures) -> bool:
    predictions = model.predictions
    return (
        isinstance(predictions, ModelPredictions)
        and isinstance(predictions.classifier, RecordClassifier)
        and not predictions.classifier.plan.whole
    )


def _show_shares(model: ModelMeasures) -> Html:
    """Return the shares of columns in the variance of the score, and draw the most important terms."""
    predictions = model.predictions
    assert isinstance(predictions, ModelPredictions)
    classifier, rows = predictions.classifier, predictions.inputs
    assert isinstance(classifier, RecordClassifier)
    assert isinstance(rows, CsrRows)
    encoding = encode_records(classifier.plan, None, rows, _MAX_ROWS)
    try:
        check_importances(classifier.plan, classifier.decision)
        importances = compute_importances(
            classifier.classifier.model, classifier.decision, encoding, None, {}
        )
    except ValueError as reason:
        return paragraph(f"{predictions.name}: {reason}.", note=True)
    explanation = paragraph(
        "The score is a sum of terms, one per column and pair of columns: what a conjunction says about one "
        "of its columns alone counts for that column. The share of a term is its covariance with the score, "
        "divided by the variance of the score. The drawings show the terms by the values of their columns; "
        "grey bars show how many records have a value."
    )
    listed = make_importance_table(importances, f"{predictions.name}: share of the variance of the score")
    return join_parts([explanation, listed, side_by_side(_draw_shapes(importances))])


def _draw_shapes(importances: Importances) -> list[Html]:
    """Draw the most important columns and pairs of columns as curves, categories or heat maps."""
    drawings = []
    for size, count in ((1, _N_DRAWN_COLUMNS), (2, _N_DRAWN_PAIRS)):
        terms = [
            names
            for names, share in zip(importances.columns, importances.shares.tolist(), strict=True)
            if len(names) == size and share >= _MIN_DRAWN_SHARE
        ]
        for names in terms[:count]:
            try:
                shape = importances.shape(*names)
            except ValueError:  # there are no drawings of texts, dates and too many pairs of values
                continue
            drawings.append(figure(Html(shape.to_svg()), AND.join(names)))
    return drawings


def _list_importances(model: ModelMeasures) -> Html:
    """Return a table of permutation importances, the largest first."""
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
