"""Write the first lines of reports on parsers, chunkers and taggers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.measures.number_format import format_percent
from unkernel.measures.parser_measures import (
    BunsetsuMeasures,
    ChunkMeasures,
    HeadMeasures,
    TagMeasures,
    TextTreeMeasures,
    TreeMeasures,
)
from unkernel.report.summary import (
    compare_accuracy,
    describe_group,
    find_weakest_group,
    summarize_quality,
)

_LONG_DISTANCE = 6  # in bunsetsu; longer distances form one group


def summarize_parser(measures: Any) -> list[str]:
    """Return sentences about the quality of a parser, chunker or tagger, a baseline, and its weaknesses."""
    lines = [summarize_quality(measures, [])]
    if isinstance(measures, TagMeasures):
        gold, predicted = measures.list_values(measures.columns[0])
        values, codes = np.unique(gold, return_inverse=True)
        most_frequent = values[np.bincount(codes).argmax()]
        lines.append(
            compare_accuracy(
                f"Always predicting {most_frequent}, the most frequent tag,",
                gold == predicted,
                gold == most_frequent,
            )
        )
        lines.append(_describe_weakest("tag", values, codes, gold != predicted))
    elif isinstance(measures, HeadMeasures):
        is_dependency = measures.lengths > 0  # a root has no head
        most_frequent_distance = np.bincount(measures.lengths[is_dependency], minlength=2)[1:].argmax() + 1
        is_most_frequent = measures.lengths[is_dependency] == most_frequent_distance
        share = float(is_most_frequent.mean()) if is_dependency.any() else 0.0
        lines.append(
            f"The most frequent distance of a head is {most_frequent_distance}: "
            f"{format_percent(share, 1)} of the heads are that far."
        )
    if isinstance(measures, TreeMeasures) or (
        isinstance(measures, TextTreeMeasures) and "las" in measures.result.measured
    ):
        values, codes = np.unique(measures.relations[0], return_inverse=True)
        lines.append(_describe_weakest("relation", values, codes, ~measures.correct))
    elif isinstance(measures, BunsetsuMeasures):
        distances = np.minimum(measures.lengths, _LONG_DISTANCE)
        names = np.array(["none", *map(str, range(1, _LONG_DISTANCE)), f"{_LONG_DISTANCE} or more"])
        lines.append(_describe_weakest("distance", names, distances, ~measures.correct))
    elif isinstance(measures, ChunkMeasures):
        types = {name: counts for name, counts in measures.result.per_type.items() if counts.right}
        if types:
            name, worst = min(types.items(), key=lambda pair: pair[1].f1)
            lines.append(f"Fails most on chunks of type {name or '(no type)'}: F1 {worst.f1:.2f} %.")
    return lines


def _describe_weakest(noun: str, names: NDArray[Any], groups: NDArray[Any], wrong: NDArray[np.bool_]) -> str:
    """Return a sentence about the group of words, such as a tag, with the largest share of mistakes."""
    weakest = find_weakest_group(groups, wrong)
    if weakest is None:
        return "No mistake in these sentences."
    is_member = groups == weakest
    return (
        describe_group(
            f"Fails most on {noun} {names[weakest]}",
            int(wrong[is_member].sum()),
            int(is_member.sum()),
            "words",
        )
        + "."
    )
