"""The most confident mistakes of models, with explanations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unkernel.measures.number_format import format_percent, format_signed, many
from unkernel.measures.predictions import Answered
from unkernel.report.explanation_tables import explanation_table
from unkernel.report.markup import Html, element, join_parts, paragraph, side_by_side, table
from unkernel.report.page import Section
from unkernel.report.tree_drawing import draw_tree

_TOP = 6  # conjunctions per mistake


def mistakes(answers: Sequence[Answered], most: int) -> Section:
    """Show some mistakes of each model."""
    return Section("Mistakes", join_parts(_list_mistakes(one, most, len(answers) > 1) for one in answers))


def worst(answers: Answered, most: int) -> list[int]:
    """Return the wrong predictions with the largest margins, the worst first."""
    wrong = np.flatnonzero(answers.chosen != answers.right)
    order = np.argsort(-answers.margins[wrong], kind="stable")[:most]
    found: list[int] = wrong[order].tolist()
    return found


def _list_mistakes(answers: Answered, most: int, several: bool) -> Html:
    wrong = int(np.count_nonzero(answers.chosen != answers.right))
    chosen = worst(answers, most)
    unit = answers.examples.unit
    words = f"{many(wrong, 'wrong answer')} of {many(len(answers.examples), unit)}"
    if chosen:
        words += f"; the {len(chosen)} most confident are below. {unit.capitalize()}s count from 0."
    parts = [element("h3", answers.name)] if several else []
    return join_parts([*parts, paragraph(words), *(_describe_mistake(answers, one) for one in chosen)])


def _describe_mistake(answers: Answered, example: int) -> Html:
    said, right = (answers.classes[int(codes[example])] for codes in (answers.chosen, answers.right))
    which = f"{answers.examples.unit.capitalize()} {example:,}"
    title = f"{which}: predicted {said}, true class {right}{_describe_confidence(answers, example)}"
    parts = [
        part for part in (_show_mistake(answers, example), _explain(answers, example)) if part is not None
    ]
    return element("article", element("h4", title), side_by_side(parts))


def _describe_confidence(answers: Answered, example: int) -> str:
    if answers.probabilities is None:
        return f" (ahead by {format_signed(answers.margins[example])})"
    return f" (with {format_percent(answers.probabilities[example, answers.chosen[example]], 1)})"


def _explain(answers: Answered, example: int) -> Html:
    try:
        return explanation_table(answers.explain(example, _TOP))
    except ValueError as reason:
        return paragraph(f"This answer cannot be explained: {reason}.", note=True)


def _show_mistake(answers: Answered, example: int) -> Html | None:
    if answers.examples.shown is None:
        return None
    found = answers.examples.shown(example)
    if isinstance(found, Mapping):
        rows = [[name, "(missing)" if _is_missing(value) else value] for name, value in found.items()]
        return table(
            ["column", "value"], rows, caption=f"{answers.examples.unit.capitalize()} {example:,}", texts=[1]
        )
    picture = draw_tree(found)
    return paragraph(element("code", found)) if picture is None else element("div", picture, class_="drawn")


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
