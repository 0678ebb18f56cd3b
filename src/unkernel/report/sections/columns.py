"""Importances of the columns of records: the loss of quality when a column's values are shuffled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.engines import CompiledClassifier, RecordClassifier
from unkernel.measures.base import Measured
from unkernel.measures.predictions import Answered
from unkernel.records.files.columns import owners_of_features
from unkernel.report.markup import Bar, Html, join_parts, paragraph, side_by_side, table
from unkernel.report.page import Section

_MAX_ROWS = 2000
_MAX_LISTED_COLUMNS = 40
_SHUFFLES = 5


def columns(studied: Sequence[Measured]) -> Section | None:
    """Return the permutation importances of the columns of models of records; None for other models."""
    tables = [_list_importances(one) for one in studied if _reads_columns(one)]
    if not tables:
        return None
    words = paragraph(
        "Permutation importance: the mean loss of the measure when the values of one column are shuffled "
        f"among the records, and its standard deviation over {_SHUFFLES} shuffles. Columns with the same "
        "information share their importance, so a small value does not mean that a column is useless."
    )
    return Section("Columns", join_parts([words, side_by_side(tables)]))


def permutation_importances(measured: Measured) -> tuple[str, dict[str, NDArray[np.float64]]]:
    """Return the name of the first measure and, by column, its loss in each shuffle of the column."""
    answers, generator = measured.answers, np.random.default_rng(0)
    assert isinstance(answers, Answered)
    classifier = answers.classifier
    assert isinstance(classifier, RecordClassifier)
    answers = _sample(answers, generator)
    name, best = next(iter(type(measured)(answers).values().items()))
    owners = owners_of_features(classifier.plan)
    losses = {}
    for column in dict.fromkeys(owner for owner in owners if owner is not None):
        own = np.array([owner == column for owner in owners])
        losses[column] = np.array(
            [best - _measure_shuffled(measured, answers, own, generator) for _ in range(_SHUFFLES)]
        )
    return name, losses


def _reads_columns(one: Measured) -> bool:
    answers = one.answers
    return (
        isinstance(answers, Answered)
        and isinstance(answers.classifier, RecordClassifier)
        and not answers.classifier.plan.whole
    )


def _list_importances(one: Measured) -> Html:
    name, losses = permutation_importances(one)
    order = sorted(losses, key=lambda column: -losses[column].mean())[:_MAX_LISTED_COLUMNS]
    largest = max((abs(losses[column].mean()) for column in order), default=0.0) or 1.0
    rows = [
        [column, Bar(f"{mean:+.4f}", mean / largest), f"{losses[column].std():.4f}"]
        for column in order
        for mean in [float(losses[column].mean())]
    ]
    head = ["column", f"loss of {name}", "deviation"]
    more = f"; {len(losses) - len(rows):,} with less are not listed" if len(losses) > len(rows) else ""
    return table(head, rows, caption=f"{one.answers.name}: importance of columns{more}")


def _sample(answers: Answered, generator: np.random.Generator) -> Answered:
    count = len(answers.examples)
    if count <= _MAX_ROWS:
        return answers
    chosen = np.sort(generator.choice(count, _MAX_ROWS, replace=False))
    examples, asked = answers.examples, answers.asked
    assert isinstance(asked, CsrRows)
    groups = None if examples.groups is None else examples.groups[chosen]
    few = replace(examples, labels=examples.labels[chosen], groups=groups)
    return replace(answers, examples=few, asked=asked[chosen], raw=answers.raw[chosen])


def _measure_shuffled(
    measured: Measured, answers: Answered, own: NDArray[np.bool_], generator: np.random.Generator
) -> float:
    """Return the measure if the features of a column come from other records."""
    rows, inner = answers.asked, answers.inner
    assert isinstance(rows, CsrRows)
    assert isinstance(inner, CompiledClassifier)
    places, moved = rows.row_of_entry(), own[rows.indices]
    places = np.where(moved, generator.permutation(rows.shape[0])[places], places)
    order = np.lexsort((rows.indices, places))
    ends = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=rows.shape[0]))])
    shuffled = CsrRows.of(ends, rows.indices[order], rows.data[order], rows.shape[1])
    again = replace(answers, asked=shuffled, raw=inner.score_csr(shuffled, 1))
    return next(iter(type(measured)(again).values().values()))
