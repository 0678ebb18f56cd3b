"""Correct and wrong predictions of parsers, chunkers and taggers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.engines.explain.explanation import Heavy
from unkernel.measures.intervals import wilson
from unkernel.measures.number_format import format_percent, many, number, share, size
from unkernel.measures.parser_measures import (
    ChunkMeasures,
    HeadMeasures,
    ParserMeasures,
    TagMeasures,
    TextTreeMeasures,
    TreeMeasures,
)
from unkernel.report.explanation_tables import heavy_table
from unkernel.report.figures import COLOURS, draw_shares, drawing, legend, picture
from unkernel.report.markup import (
    Bar,
    Html,
    element,
    facts,
    figure,
    join_parts,
    paragraph,
    side_by_side,
    table,
)
from unkernel.report.model_summary import parser_facts
from unkernel.report.page import Section
from unkernel.report.sections.about import describe_models

_ENDLESS = 10**9
_LENGTHS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 8), (9, 12), (13, 20), (21, _ENDLESS))
_MOST_ROWS = 40
_LONGEST_DRAWN = 30  # words


# --- All parsers ------------------------------------------------------------------------------------


def parsers(studied: Sequence[ParserMeasures]) -> Section:
    """Describe the parsers."""
    return describe_models({one.name: parser_facts(one.parser) for one in studied})


def sentences(studied: Sequence[ParserMeasures], name: str) -> Section:
    """Describe the data."""
    gold = studied[0].gold
    rows = [("from", [name]), ("sentences", [f"{len(gold):,}"])]
    unit = "bunsetsu" if hasattr(gold, "n_bunsetsu") else "words"
    count = gold.n_bunsetsu if hasattr(gold, "n_bunsetsu") else gold.n_words
    rows += [(unit, [f"{count:,}"]), (f"{unit} per sentence, mean", [number(count / max(len(gold), 1))])]
    return Section("Data", facts([""], rows, caption="The test data"))


def speed(studied: Sequence[ParserMeasures]) -> Section:
    """Show time and memory."""
    rows = []
    for one in studied:
        rate = getattr(one.result, "words_per_second", getattr(one.result, "tokens_per_second", None))
        words = f"{number(rate, 3)} words" if rate is not None else ""
        sentences_too = getattr(one.result, "sentences_per_second", None)
        if not words and sentences_too is not None:
            words = f"{number(sentences_too, 3)} sentences"
        rows.append([one.name, size(one.parser.nbytes), words])
    note = paragraph("By the CPU time of all threads, without reading.", note=True)
    head = ["model", "memory", "per second of CPU time"]
    return Section("Time and memory", join_parts([table(head, rows, caption="Time and memory"), note]))


def conjunctions(studied: Sequence[ParserMeasures], top: int) -> Section | None:
    """List the largest weights for each kind of decision."""
    parts: list[Html] = []
    for one in studied:
        heaviest = getattr(one.parser, "heaviest", None)
        by_kind: dict[str, list[Heavy]] = {}
        for heavy in heaviest(top) if heaviest is not None else []:
            by_kind.setdefault(heavy.part.partition(".")[0], []).append(heavy)
        parts += [heavy_table(found, f"{one.name}: decisions on {kind}") for kind, found in by_kind.items()]
    return Section("Heaviest conjunctions", side_by_side(parts)) if parts else None


# --- Heads --------------------------------------------------------------------------------------------


def lengths(studied: Sequence[HeadMeasures | TextTreeMeasures]) -> Section:
    """Show how many heads are correct, by distance."""
    groups = [group for group in _LENGTHS if _is_within(studied[0], group).any()]
    rows: list[list[Any]] = []
    with drawing() as axes:
        for one, colour in zip(studied, COLOURS, strict=False):
            hits = [_count_hits(one, group) for group in groups]
            shares = [(part / whole, *wilson(part, whole)) for part, whole in hits]
            draw_shares(axes, range(len(groups)), shares, colour, one.name)
            which = f"{one.name}, " if len(studied) > 1 else ""
            rows += [
                [which + _format_distance(group), f"{whole:,}", share(part, whole)]
                for group, (part, whole) in zip(groups, hits, strict=True)
            ]
        axes.set(xlabel="distance of the right head", ylabel="share of right heads")
        axes.set_xticks(range(len(groups)), [_format_distance(group) for group in groups])
        if len(studied) > 1:
            legend(axes, loc="lower left")
        shown = figure(
            picture(axes, "Share of right heads by their distance; the table has the numbers"),
            "Right heads by their distance, with Wilson's 95 % intervals.",
        )
    head = ["distance", "dependencies", "right, 95 % interval"]
    return Section("Distance", side_by_side([shown, table(head, rows, caption="Right heads by distance")]))


def _is_within(one: HeadMeasures | TextTreeMeasures, group: tuple[int, int]) -> NDArray[np.bool_]:
    return np.asarray((one.lengths >= group[0]) & (one.lengths <= group[1]))


def _count_hits(one: HeadMeasures | TextTreeMeasures, group: tuple[int, int]) -> tuple[int, int]:
    own = one.right_heads[_is_within(one, group)]
    return int(own.sum()), len(own)


def _format_distance(group: tuple[int, int]) -> str:
    low, high = group
    if low == high:
        return str(low)
    return f"{low}–{high}" if high < _ENDLESS else f"{low}+"


def relations(studied: Sequence[TreeMeasures | TextTreeMeasures]) -> Section:
    """Show the quality of each relation, and which relations are confused."""
    parts = []
    for one in studied:
        right, found = one.relations
        listed = _list_by_value(one.name, "relation", right, one.given_relations, one.right)
        parts.append(side_by_side([listed, _count_confusions(one.name, right, found)]))
    return Section("Relations", join_parts(parts))


def _list_by_value(
    name: str, what: str, right: NDArray[Any], answers: NDArray[Any], correct: NDArray[np.bool_]
) -> Html:
    """Return precision and recall of each value of a column."""
    there, given, hits = (Counter(one.tolist()) for one in (right, answers, right[correct]))
    rows = []
    for value, count in there.most_common(_MOST_ROWS):
        precision = format_percent(hits[value] / given[value]) if given[value] else "–"
        low, high = wilson(hits[value], count)
        recall = Bar(
            f"{format_percent(hits[value] / count)} ({100 * low:.1f}–{100 * high:.1f})", hits[value] / count
        )
        rows.append([value, f"{count:,}", precision, recall])
    return table([what, "words", "precision", "recall, 95 % interval"], rows, caption=f"{name}: each {what}")


def _count_confusions(name: str, right: NDArray[Any], found: NDArray[Any]) -> Html:
    wrong = np.flatnonzero(right != found)
    pairs = Counter(zip(right[wrong].tolist(), found[wrong].tolist(), strict=True))
    total = Counter(right.tolist())
    rows = [
        [one, other, f"{count:,}", format_percent(count / total[one])]
        for (one, other), count in pairs.most_common(_MOST_ROWS // 2)
    ]
    if not rows:
        return paragraph(f"{name}: no value is confused with another.")
    caption = f"{name}: the most frequent confusions"
    return table(["right", "found", "words", "share"], rows, caption=caption, texts=[1])


def draw_mistakes(studied: Sequence[HeadMeasures], most: int) -> Section:
    """Show sentences with many mistakes, with the correct and the predicted structure."""
    parts = []
    for one in studied:
        for place in _find_worst(one, most):
            title = f"{one.name}, sentence {place:,}: {many(int(one.mistakes[place]), 'mistake')}"
            right, found = (
                figure(element("div", Html(bank[place].to_svg()), class_="drawn"), words)
                for bank, words in ((one.gold, "right"), (one.parsed, "found"))
            )
            parts.append(element("article", element("h3", title), right, found))
    words = f"Sentences of at most {_LONGEST_DRAWN} words with the most mistakes. Sentences count from 0."
    if not parts:
        words = f"There is no mistake in sentences of at most {_LONGEST_DRAWN} words."
    return Section("Mistakes", join_parts([paragraph(words), *parts]))


def _find_worst(one: HeadMeasures, most: int) -> list[int]:
    sizes = np.diff(one.offsets)
    wrong = np.where((sizes <= _LONGEST_DRAWN) & (one.mistakes > 0), one.mistakes, 0)
    order = np.argsort(-wrong, kind="stable")[:most]
    found: list[int] = order[wrong[order] > 0].tolist()
    return found


# --- Chunks and tags ----------------------------------------------------------------------------------


def chunks(studied: Sequence[ChunkMeasures]) -> Section:
    """Show the quality of each type of chunk."""
    parts = []
    for one in studied:
        found = sorted(one.result.per_type.items(), key=lambda pair: -pair[1].right)
        rows = [
            [
                name or "(no type)",
                f"{counts.right:,}",
                f"{counts.found:,}",
                share(counts.correct, counts.found),
                share(counts.correct, counts.right),
                Bar(f"{counts.f1:.2f} %", counts.f1 / 100),
            ]
            for name, counts in found
        ]
        head = ["type", "right", "found", "precision", "recall", "F1"]
        parts.append(table(head, rows, caption=f"{one.name}: each type, with Wilson's 95 % intervals"))
    return Section("Types", join_parts(parts))


def tags(studied: Sequence[TagMeasures]) -> Section:
    """Show the quality of each tag, and which tags are confused, column by column."""
    parts = []
    for one in studied:
        for column in one.columns:
            right, found = one.texts(column)
            name = f"{one.name}, {column}"
            listed = _list_by_value(name, "value", right, found, right == found)
            parts.append(side_by_side([listed, _count_confusions(name, right, found)]))
    return Section("Tags", join_parts(parts))
