"""Reports of parsers, chunkers, taggers and tokenizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from unkernel.measures.parser_measures import (
    BunsetsuMeasures,
    ChunkMeasures,
    HeadMeasures,
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


def _list_own_sections(studied: Sequence[Any], choices: Choices) -> list[Section | None]:
    """Return the sections specific to one kind of parser; tokenizers have none."""
    first = studied[0]
    if isinstance(first, ChunkMeasures):
        return [parse_errors.chunks(studied)]
    if isinstance(first, TagMeasures):
        return [parse_errors.tags(studied)]
    has_heads = isinstance(first, HeadMeasures)
    has_trees = isinstance(first, TextTreeMeasures) and "las" in first.result.measured
    return [
        parse_errors.relations(studied) if has_trees or isinstance(first, TreeMeasures) else None,
        parse_errors.lengths(studied) if has_trees or has_heads else None,
        parse_errors.draw_mistakes(studied, choices.n_shown) if has_heads and choices.n_shown else None,
    ]


# For each kind of parsers: the function that reads its sentences, and the class that measures it.
_KINDS: dict[type[SavedModel], tuple[Callable[[Any], Any], type[ParserMeasures]]] = {
    ArcEagerModel: (read_gold_trees, TreeMeasures),
    BunsetsuModel: (bunsetsu_of, BunsetsuMeasures),
    ChunkModel: (chunks_of, ChunkMeasures),
    TaggerModel: (read_nonempty, TagMeasures),
    TextParserModel: (read_comparable_trees, TextTreeMeasures),
    TokenizerModel: (read_nonempty, TextMeasures),
}


def report_of_parsers(
    parsers: Mapping[str, SavedModel],
    source: Any,
    choices: Choices,
    threads: int,
    options: Mapping[str, Any] | None = None,
) -> Report:
    """Return the report of one parser, or of several of the same kind, on annotated sentences.

    Parameters
    ----------
    parsers : mapping of str to models
    source : path, open file or corpus
    choices : Choices
    threads : int
    options : mapping, default=None
        Options of their ``evaluate``.
    """
    choices.check_no_costs("this is a parser")
    first = next(iter(parsers.values()))
    for name, other in parsers.items():
        if type(other) is not type(first):
            raise ValueError(
                f"{next(iter(parsers))} and {name} cannot be compared: one was made by {first.estimator}, "
                f"the other by {other.estimator}"
            )
    read, measured = _KINDS[type(first)]
    corpus = read(source)
    make = partial(measured, gold=corpus, threads=threads, options=options or {})
    studied = [make(name, parser) for name, parser in parsers.items()]
    file = Path(corpus.name).name
    all_sections = [
        parse_errors.parsers(studied),
        parse_errors.sentences(studied, file),
        quality(studied),
        *_list_own_sections(studied, choices),
        parse_errors.conjunctions(studied, choices.top) if choices.top else None,
        parse_errors.speed(studied),
    ]
    return Report(
        choices.title or f"{' and '.join(parsers)} on {file}",
        {one.name: one.measures for one in studied},
        [section for section in all_sections if section is not None],
        summary={one.name: summarize_parser(one) for one in studied},
    )
