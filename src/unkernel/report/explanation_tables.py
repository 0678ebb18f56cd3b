"""Show explanations and large weights as tables with bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unkernel.engines.explain.explanation import AND, Explanation, Heavy
from unkernel.engines.explain.fragments import TreeExplanation
from unkernel.engines.explain.importances import Importances
from unkernel.measures.number_format import format_signed
from unkernel.report.markup import Bar, Html, table

_MAX_LISTED_TERMS = 25
_NO_BAR = 0.0  # share of a cell without a bar


def make_explanation_table(explanation: Explanation | TreeExplanation) -> Html:
    """Return a table of the contributions to a score, with bars; the last rows are the rest and the sum."""
    return (
        _tabulate_tree(explanation)
        if isinstance(explanation, TreeExplanation)
        else _tabulate_row(explanation)
    )


def _tabulate_row(explanation: Explanation) -> Html:
    get_numbers = explanation.comparison.numbers
    parts: list[tuple[str, tuple[float, ...]]] = [
        (AND.join(part.names), get_numbers(part.value)) for part in explanation.contributions
    ]
    n_others = explanation.n_conjunctions - len(explanation.contributions)
    parts.append(("intercept", get_numbers(explanation.intercept)))
    if n_others:
        parts.append((f"{n_others:,} others", get_numbers(explanation.rest)))
    return _tabulate_sums(parts, get_numbers(explanation.score), explanation.for_class, explanation.against)


def _tabulate_tree(explanation: TreeExplanation) -> Html:
    parts = [(fragment.text, (fragment.value,)) for fragment in explanation.fragments]
    parts += [("intercept", (explanation.intercept,)), ("all others", (explanation.rest,))]
    return _tabulate_sums(parts, (explanation.score,), explanation.for_class, explanation.against)


def _tabulate_sums(
    parts: Sequence[tuple[str, tuple[float, ...]]], total: tuple[float, ...], for_class: Any, against: Any
) -> Html:
    """Return a table of parts and their total; each has one number, or one for each compared class."""
    longest = max((abs(value) for _, values in parts for value in values), default=0.0)
    rows: list[list[Any]] = [[label, *make_bars(values, longest)] for label, values in parts]
    rows.append(["score", *(format_signed(value) for value in total)])
    if len(total) > 1:
        head = ["", f"for {for_class}", f"for {against}"]
    else:
        head = ["", "score" if for_class is None else f"for {for_class}"]
    caption = "Contributions"
    if against is not None:
        caption += f": {for_class} against {against}"
    return table(head, rows, caption=caption, marked=[len(parts)])


def make_importance_table(importances: Importances, caption: str) -> Html:
    """Return a table of the shares of columns and pairs of columns, with their losses if known."""
    head = ["columns", "share of variance"]
    if importances.measure is not None:
        head += [f"loss of {importances.measure}", "deviation"]
    largest = float(np.abs(importances.shares).max(initial=0.0)) or 1.0
    rows = []
    for names, share in zip(
        importances.columns[:_MAX_LISTED_TERMS], importances.shares.tolist(), strict=False
    ):
        row: list[Any] = [AND.join(names), Bar(f"{100 * share:.1f} %", share / largest)]
        if importances.measure is not None:
            losses = importances.losses.get(names[0]) if len(names) == 1 else None
            row += ["", ""] if losses is None else [f"{losses.mean():+.4f}", f"{losses.std():.4f}"]
        rows.append(row)
    n_hidden = len(importances.columns) - len(rows)
    note = f"; {n_hidden:,} with less are not listed" if n_hidden > 0 else ""
    return table(head, rows, caption=f"{caption}{note}")


def make_bars(values: Sequence[float], longest: float) -> list[Bar]:
    """Return numbers with bars behind them."""
    return [Bar(format_signed(value), value / longest if longest else _NO_BAR) for value in values]


def make_weight_table(weights: Sequence[Heavy], caption: str) -> Html:
    """Return a table of large weights, with the classes that they support."""
    longest = max((abs(weight.weight) for weight in weights), default=0.0)
    rows = [
        [weight.label, _name_supported_class(weight), *make_bars([weight.weight], longest)]
        for weight in weights
    ]
    return table(["", "speaks for", "weight"], rows, caption=caption, texts=[1])


def _name_supported_class(weight: Heavy) -> str:
    if weight.for_class is None:
        return "a larger score" if weight.weight > 0 else "a smaller score"
    label = str(weight.for_class) if weight.weight > 0 else f"not {weight.for_class}"
    return label if weight.against is None else f"{label} over {weight.against}"
