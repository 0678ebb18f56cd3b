"""Build reports on parsers, chunkers, taggers and tokenizers."""

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
from unkernel.parsing.bunsetsu.model import read_nonempty as read_bunsetsu
from unkernel.parsing.chunks.model import read_nonempty as read_chunks
from unkernel.parsing.parser_model import SavedModel
from unkernel.report.options import Choices
from unkernel.report.page import Report, Section
from unkernel.report.parser_summary import summarize_parser
from unkernel.report.sections import parse_errors
from unkernel.report.sections.quality import make_quality_section


def _list_specific_sections(measured_models: Sequence[Any], choices: Choices) -> list[Section | None]:
    """Return the sections that are specific to this kind of parser; tokenizers have none."""
    model = measured_models[0]
    if isinstance(model, ChunkMeasures):
        return [parse_errors.make_types_section(measured_models)]
    if isinstance(model, TagMeasures):
        return [parse_errors.make_tags_section(measured_models)]
    has_heads = isinstance(model, HeadMeasures)
    has_trees = isinstance(model, TextTreeMeasures) and "las" in model.result.measured
    return [
        parse_errors.make_relations_section(measured_models)
        if has_trees or isinstance(model, TreeMeasures)
        else None,
        parse_errors.make_distance_section(measured_models) if has_trees or has_heads else None,
        parse_errors.make_mistakes_section(measured_models, choices.n_shown)
        if has_heads and choices.n_shown
        else None,
    ]


# For each class of parsers: the function that reads annotated sentences, and the class of measures.
_KINDS: dict[type[SavedModel], tuple[Callable[[Any], Any], type[ParserMeasures]]] = {
    ArcEagerModel: (read_gold_trees, TreeMeasures),
    BunsetsuModel: (read_bunsetsu, BunsetsuMeasures),
    ChunkModel: (read_chunks, ChunkMeasures),
    TaggerModel: (read_nonempty, TagMeasures),
    TextParserModel: (read_comparable_trees, TextTreeMeasures),
    TokenizerModel: (read_nonempty, TextMeasures),
}


def make_parser_report(
    parsers: Mapping[str, SavedModel],
    source: Any,
    choices: Choices,
    threads: int,
    options: Mapping[str, Any] | None = None,
) -> Report:
    """Make a report on one parser, or on several of the same kind, from annotated sentences.

    Parameters
    ----------
    parsers : mapping of str to models
    source : path, open file or corpus
    choices : Choices
    threads : int
    options : mapping, default=None
        Options of ``evaluate``.
    """
    choices.check_no_costs("this is a parser")
    first_parser = next(iter(parsers.values()))
    for name, other in parsers.items():
        if type(other) is not type(first_parser):
            raise ValueError(
                f"{next(iter(parsers))} and {name} cannot be compared: one was made by "
                f"{first_parser.estimator}, the other by {other.estimator}"
            )
    read_corpus, measures_type = _KINDS[type(first_parser)]
    corpus = read_corpus(source)
    make_measures = partial(measures_type, gold=corpus, threads=threads, options=options or {})
    measured_models = [make_measures(name, parser) for name, parser in parsers.items()]
    file = Path(corpus.name).name
    all_sections = [
        parse_errors.make_models_section(measured_models),
        parse_errors.make_data_section(measured_models, file),
        make_quality_section(measured_models),
        *_list_specific_sections(measured_models, choices),
        parse_errors.make_weights_section(measured_models, choices.top) if choices.top else None,
        parse_errors.make_speed_section(measured_models),
    ]
    return Report(
        choices.title or f"{' and '.join(parsers)} on {file}",
        {model.name: model.measures for model in measured_models},
        [section for section in all_sections if section is not None],
        summary={model.name: summarize_parser(model) for model in measured_models},
    )
