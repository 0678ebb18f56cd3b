"""Correct and wrong predictions of parsers, chunkers and taggers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.engines.explain.explanation import Heavy
from unkernel.measures.intervals import compute_wilson_interval
from unkernel.measures.number_format import (
    format_bytes,
    format_count,
    format_number,
    format_percent,
    format_share,
)
from unkernel.measures.parser_measures import (
    ChunkMeasures,
    HeadMeasures,
    ParserMeasures,
    TagMeasures,
    TextTreeMeasures,
    TreeMeasures,
)
from unkernel.report.explanation_tables import make_weight_table
from unkernel.report.figures import COLOURS, add_legend, draw_shares, open_axes, render_svg
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
from unkernel.report.model_summary import describe_parser
from unkernel.report.page import Section
from unkernel.report.sections.about import make_facts_section

_NO_LIMIT = 10**9
_DISTANCE_GROUPS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 8), (9, 12), (13, 20), (21, _NO_LIMIT))
_MAX_ROWS = 40
_MAX_DRAWN_WORDS = 30


# --- All parsers ------------------------------------------------------------------------------------


def make_models_section(measured_models: Sequence[ParserMeasures]) -> Section:
    """Describe the parsers."""
    return make_facts_section({model.name: describe_parser(model.parser) for model in measured_models})


def make_data_section(measured_models: Sequence[ParserMeasures], name: str) -> Section:
    """Describe the test data."""
    gold = measured_models[0].gold
    rows = [("from", [name]), ("sentences", [f"{len(gold):,}"])]
    unit = "bunsetsu" if hasattr(gold, "n_bunsetsu") else "words"
    count = gold.n_bunsetsu if hasattr(gold, "n_bunsetsu") else gold.n_words
    rows += [
        (unit, [f"{count:,}"]),
        (f"{unit} per sentence, mean", [format_number(count / max(len(gold), 1))]),
    ]
    return Section("Data", facts([""], rows, caption="The test data"))


def make_speed_section(measured_models: Sequence[ParserMeasures]) -> Section:
    """Show the speed and the memory of each parser."""
    rows = []
    for model in measured_models:
        rate = getattr(model.result, "words_per_second", getattr(model.result, "tokens_per_second", None))
        speed = f"{format_number(rate, 3)} words" if rate is not None else ""
        sentence_rate = getattr(model.result, "sentences_per_second", None)
        if not speed and sentence_rate is not None:
            speed = f"{format_number(sentence_rate, 3)} sentences"
        rows.append([model.name, format_bytes(model.parser.nbytes), speed])
    note = paragraph("By the CPU time of all threads, without reading.", note=True)
    head = ["model", "memory", "per second of CPU time"]
    return Section("Time and memory", join_parts([table(head, rows, caption="Time and memory"), note]))


def make_weights_section(measured_models: Sequence[ParserMeasures], top: int) -> Section | None:
    """List the largest weights for each kind of decision."""
    parts: list[Html] = []
    for model in measured_models:
        heaviest = getattr(model.parser, "heaviest", None)
        by_kind: dict[str, list[Heavy]] = {}
        for heavy in heaviest(top) if heaviest is not None else []:
            by_kind.setdefault(heavy.part.partition(".")[0], []).append(heavy)
        parts += [
            make_weight_table(weights, f"{model.name}: decisions on {kind}")
            for kind, weights in by_kind.items()
        ]
    return Section("Heaviest conjunctions", side_by_side(parts)) if parts else None


# --- Heads --------------------------------------------------------------------------------------------


def make_distance_section(measured_models: Sequence[HeadMeasures | TextTreeMeasures]) -> Section:
    """Show the share of correct heads, by distance."""
    groups = [group for group in _DISTANCE_GROUPS if _is_within(measured_models[0], group).any()]
    rows: list[list[Any]] = []
    with open_axes() as axes:
        for model, colour in zip(measured_models, COLOURS, strict=False):
            counts = [_count_correct(model, group) for group in groups]
            shares = [
                (correct / count, *compute_wilson_interval(correct, count)) for correct, count in counts
            ]
            draw_shares(axes, range(len(groups)), shares, colour, model.name)
            prefix = f"{model.name}, " if len(measured_models) > 1 else ""
            rows += [
                [prefix + _format_distance(group), f"{count:,}", format_share(correct, count)]
                for group, (correct, count) in zip(groups, counts, strict=True)
            ]
        axes.set(xlabel="distance of the right head", ylabel="share of right heads")
        axes.set_xticks(range(len(groups)), [_format_distance(group) for group in groups])
        if len(measured_models) > 1:
            add_legend(axes, loc="lower left")
        chart = figure(
            render_svg(axes, "Share of right heads by their distance; the table has the numbers"),
            "Right heads by their distance, with Wilson's 95 % intervals.",
        )
    head = ["distance", "dependencies", "right, 95 % interval"]
    return Section("Distance", side_by_side([chart, table(head, rows, caption="Right heads by distance")]))


def _is_within(model: HeadMeasures | TextTreeMeasures, group: tuple[int, int]) -> NDArray[np.bool_]:
    return np.asarray((model.lengths >= group[0]) & (model.lengths <= group[1]))


def _count_correct(model: HeadMeasures | TextTreeMeasures, group: tuple[int, int]) -> tuple[int, int]:
    correct = model.correct_heads[_is_within(model, group)]
    return int(correct.sum()), len(correct)


def _format_distance(group: tuple[int, int]) -> str:
    low, high = group
    if low == high:
        return str(low)
    return f"{low}–{high}" if high < _NO_LIMIT else f"{low}+"


def make_relations_section(measured_models: Sequence[TreeMeasures | TextTreeMeasures]) -> Section:
    """Show the quality of each relation, and the most frequent confusions."""
    parts = []
    for model in measured_models:
        gold, predicted = model.relations
        by_relation = _make_value_table(
            model.name, "relation", gold, model.predicted_relations, model.correct
        )
        parts.append(side_by_side([by_relation, _make_confusion_table(model.name, gold, predicted)]))
    return Section("Relations", join_parts(parts))


def _make_value_table(
    name: str, noun: str, gold: NDArray[Any], predicted: NDArray[Any], correct: NDArray[np.bool_]
) -> Html:
    """Return a table of the precision and recall of each value of a column."""
    gold_counts, predicted_counts, hits = (
        Counter(values.tolist()) for values in (gold, predicted, gold[correct])
    )
    rows = []
    for value, count in gold_counts.most_common(_MAX_ROWS):
        precision = format_percent(hits[value] / predicted_counts[value]) if predicted_counts[value] else "–"
        low, high = compute_wilson_interval(hits[value], count)
        recall = Bar(
            f"{format_percent(hits[value] / count)} ({100 * low:.1f}–{100 * high:.1f})", hits[value] / count
        )
        rows.append([value, f"{count:,}", precision, recall])
    return table([noun, "words", "precision", "recall, 95 % interval"], rows, caption=f"{name}: each {noun}")


def _make_confusion_table(name: str, gold: NDArray[Any], predicted: NDArray[Any]) -> Html:
    """Return a table of the most frequent pairs of a correct value and a wrong prediction."""
    wrong = np.flatnonzero(gold != predicted)
    pairs = Counter(zip(gold[wrong].tolist(), predicted[wrong].tolist(), strict=True))
    total = Counter(gold.tolist())
    rows = [
        [gold_value, predicted_value, f"{count:,}", format_percent(count / total[gold_value])]
        for (gold_value, predicted_value), count in pairs.most_common(_MAX_ROWS // 2)
    ]
    if not rows:
        return paragraph(f"{name}: no value is confused with another.")
    caption = f"{name}: the most frequent confusions"
    return table(["right", "found", "words", "share"], rows, caption=caption, texts=[1])


def make_mistakes_section(measured_models: Sequence[HeadMeasures], n_shown: int) -> Section:
    """Show sentences with many mistakes, with the correct and the predicted structure."""
    parts = []
    for model in measured_models:
        for sentence in _find_worst(model, n_shown):
            count = format_count(int(model.mistakes[sentence]), "mistake")
            title = f"{model.name}, sentence {sentence:,}: {count}"
            gold, predicted = (
                figure(element("div", Html(treebank[sentence].to_svg()), class_="drawn"), caption)
                for treebank, caption in ((model.gold, "right"), (model.parsed, "found"))
            )
            parts.append(element("article", element("h3", title), gold, predicted))
    description = (
        f"Sentences of at most {_MAX_DRAWN_WORDS} words with the most mistakes. Sentences count from 0."
    )
    if not parts:
        description = f"There is no mistake in sentences of at most {_MAX_DRAWN_WORDS} words."
    return Section("Mistakes", join_parts([paragraph(description), *parts]))


def _find_worst(model: HeadMeasures, n_shown: int) -> list[int]:
    """Return the indices of the sentences with most mistakes that are short enough to draw."""
    sizes = np.diff(model.offsets)
    wrong = np.where((sizes <= _MAX_DRAWN_WORDS) & (model.mistakes > 0), model.mistakes, 0)
    order = np.argsort(-wrong, kind="stable")[:n_shown]
    worst: list[int] = order[wrong[order] > 0].tolist()
    return worst


# --- Chunks and tags ----------------------------------------------------------------------------------


def make_types_section(measured_models: Sequence[ChunkMeasures]) -> Section:
    """Show the quality of each type of chunk."""
    parts = []
    for model in measured_models:
        types = sorted(model.result.per_type.items(), key=lambda pair: -pair[1].right)
        rows = [
            [
                name or "(no type)",
                f"{counts.right:,}",
                f"{counts.found:,}",
                format_share(counts.correct, counts.found),
                format_share(counts.correct, counts.right),
                Bar(f"{counts.f1:.2f} %", counts.f1 / 100),
            ]
            for name, counts in types
        ]
        head = ["type", "right", "found", "precision", "recall", "F1"]
        parts.append(table(head, rows, caption=f"{model.name}: each type, with Wilson's 95 % intervals"))
    return Section("Types", join_parts(parts))


def make_tags_section(measured_models: Sequence[TagMeasures]) -> Section:
    """Show the quality of each tag, and the most frequent confusions, for each column."""
    parts = []
    for model in measured_models:
        for column in model.columns:
            gold, predicted = model.list_values(column)
            name = f"{model.name}, {column}"
            by_tag = _make_value_table(name, "value", gold, predicted, gold == predicted)
            parts.append(side_by_side([by_tag, _make_confusion_table(name, gold, predicted)]))
    return Section("Tags", join_parts(parts))
