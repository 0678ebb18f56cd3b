"""Reports of parsers, chunkers, taggers and tokenizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from unkernel.measures.parser_measures import (
    BunsetsuMeasures,
    ChunkMeasures,
    ParserMeasures,
    TagMeasures,
    TextMeasures,
    TextTreeMeasures,
    TreeMeasures,
)
from unkernel.parsing import (
    ArcEagerModel,
    BunsetsuModel,
    ChunkModel,
    TaggerModel,
    TextParserModel,
    TokenizerModel,
)
from unkernel.parsing.arc_eager.model import read_comparable_trees, read_gold_trees, read_nonempty
from unkernel.parsing.bunsetsu.model import read_nonempty as bunsetsu_of
from unkernel.parsing.chunks.model import read_nonempty as chunks_of
from unkernel.parsing.parser_model import SavedModel
from unkernel.report.options import Choices
from unkernel.report.page import Report, Section
from unkernel.report.parser_summary import summarize_parser
from unkernel.report.sections import parse_errors
from unkernel.report.sections.quality import quality

Sections = Callable[[Sequence[Any], Choices], list[Section | None]]


def _of_trees(studied: Sequence[TreeMeasures], choices: Choices) -> list[Section | None]:
    drawn = parse_errors.draw_mistakes(studied, choices.n_shown) if choices.n_shown else None
    return [parse_errors.relations(studied), parse_errors.lengths(studied), drawn]


def _of_bunsetsu(studied: Sequence[BunsetsuMeasures], choices: Choices) -> list[Section | None]:
    drawn = parse_errors.draw_mistakes(studied, choices.n_shown) if choices.n_shown else None
    return [parse_errors.lengths(studied), drawn]


def _of_chunks(studied: Sequence[ChunkMeasures], _: Choices) -> list[Section | None]:
    return [parse_errors.chunks(studied)]


def _of_tags(studied: Sequence[TagMeasures], _: Choices) -> list[Section | None]:
    return [parse_errors.tags(studied)]


def _of_tokens(_: Sequence[TextMeasures], __: Choices) -> list[Section | None]:
    return []


def _of_text(studied: Sequence[TextTreeMeasures], _: Choices) -> list[Section | None]:
    has_trees = "las" in studied[0].result.measured
    return [parse_errors.relations(studied), parse_errors.lengths(studied)] if has_trees else []


# Of each kind of parsers: what reads its sentences, what measures it, and its own sections.
_KINDS: dict[type[SavedModel], tuple[Callable[[Any], Any], type[ParserMeasures], Sections]] = {
    ArcEagerModel: (read_gold_trees, TreeMeasures, _of_trees),
    BunsetsuModel: (bunsetsu_of, BunsetsuMeasures, _of_bunsetsu),
    ChunkModel: (chunks_of, ChunkMeasures, _of_chunks),
    TaggerModel: (read_nonempty, TagMeasures, _of_tags),
    TextParserModel: (read_comparable_trees, TextTreeMeasures, _of_text),
    TokenizerModel: (read_nonempty, TextMeasures, _of_tokens),
}


def report_of_parsers(
    parsers: Mapping[str, SavedModel],
    source: Any,
    choices: Choices,
    threads: int,
    options: Mapping[str, Any] | None = None,
) -> Report:
    """The report of one parser, or of several of a kind, on sentences with the right answers.

    Parameters
    ----------
    parsers : mapping of str to models
    source : path, open file or corpus
    choices : Choices
    threads : int
    options : mapping, default=None
        Of their ``evaluate``.
    """
    choices.check_no_costs("this is a parser")
    first = next(iter(parsers.values()))
    for name, other in parsers.items():
        if type(other) is not type(first):
            raise ValueError(
                f"{next(iter(parsers))} and {name} cannot be compared: one was made by {first.estimator}, "
                f"the other by {other.estimator}"
            )
    read, measured, sections = _KINDS[type(first)]
    corpus = read(source)
    make = partial(measured, gold=corpus, threads=threads, options=options or {})
    studied = [make(name, parser) for name, parser in parsers.items()]
    file = Path(corpus.name).name
    all_sections = [
        parse_errors.parsers(studied),
        parse_errors.sentences(studied, file),
        quality(studied),
        *sections(studied, choices),
        parse_errors.conjunctions(studied, choices.top) if choices.top else None,
        parse_errors.speed(studied),
    ]
    return Report(
        choices.title or f"{' and '.join(parsers)} on {file}",
        {one.name: one.measures for one in studied},
        [section for section in all_sections if section is not None],
        summary={one.name: summarize_parser(one) for one in studied},
    )
