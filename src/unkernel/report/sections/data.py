"""Facts about the test examples: their number, their classes, and their size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unkernel.data.rows.csr import CsrRows
from unkernel.engines import RecordClassifier
from unkernel.measures.number_format import format_number, format_percent
from unkernel.measures.predictions import ModelPredictions
from unkernel.records.files.columns import count_column_features, infer_column_kinds
from unkernel.report.markup import Bar, Html, facts, fold_details, join_parts, table
from unkernel.report.page import Section

_MAX_CLASSES = 40


def make_data_section(predictions: Sequence[ModelPredictions]) -> Section:
    """Describe the test examples."""
    first = predictions[0]
    examples = first.examples
    rows = [("from", [examples.name])] if examples.name else []
    rows.append((f"{examples.unit}s", [f"{len(examples):,}"]))
    if examples.groups is not None:
        rows.append(("groups", [f"{len(np.unique(examples.groups)):,}"]))
    sizes = [_compute_mean_size(model) for model in predictions]
    if sizes[0]:
        rows += [(f"features per {examples.unit}, mean", [sizes[0]])]
    parts = [facts([""], rows, caption="The test data")]
    if len(first.classes) and not first.is_ranking:
        parts.append(_list_classes(first))
    if isinstance(first.classifier, RecordClassifier) and not first.classifier.plan.whole:
        parts.append(_list_columns(first.classifier))
    return Section("Data", join_parts(parts))


def _compute_mean_size(predictions: ModelPredictions) -> str:
    rows = predictions.inputs
    return format_number(rows.nnz / rows.shape[0]) if isinstance(rows, CsrRows) else ""


def _list_classes(predictions: ModelPredictions) -> Html:
    counts = np.bincount(predictions.gold, minlength=len(predictions.classes))
    order = np.argsort(-counts, kind="stable")[:_MAX_CLASSES].tolist()
    rows = [
        [
            predictions.classes[code],
            f"{counts[code]:,}",
            Bar(format_percent(counts[code] / counts.sum()), counts[code] / counts.max()),
        ]
        for code in order
    ]
    n_omitted = len(predictions.classes) - len(rows)
    caption = "Classes" + (f" ({n_omitted:,} classes with fewer are not listed)" if n_omitted else "")
    return table(["class", f"{predictions.examples.unit}s", "share"], rows, caption=caption)


def _list_columns(classifier: RecordClassifier) -> Html:
    kinds, counts = infer_column_kinds(classifier.plan), count_column_features(classifier.plan)
    rows = [[name, kinds[name], f"{counts[name]:,}"] for name in kinds]
    columns = table(["column", "kind", "features"], rows, caption="Columns that the model reads", texts=[1])
    return fold_details(f"The {len(rows):,} columns that the model reads", columns)
