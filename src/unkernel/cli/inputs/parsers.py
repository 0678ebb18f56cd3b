"""Read the files of parsers, and describe parsers and the results of their evaluation."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from unkernel import load
from unkernel.cli.inputs.file_contents import explain_wrong_file
from unkernel.cli.inputs.model_kinds import describe_parser_file, list_commands
from unkernel.cli.options.error_wording import name_options_in_errors
from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
from unkernel.engines.tables.compiled_tables import CONJUNCTIONS
from unkernel.errors import FormatError
from unkernel.models import KernelModel
from unkernel.parsing import ArcEagerModel, ChunkModel, TextParserModel
from unkernel.parsing.parser_model import ParserModel, SavedModel
from unkernel.parsing.text.result import TITLES, TextResult

_LIFTED = "↑"  # marks the relations of lifted arcs, which never appear in results
Parser = SavedModel
_SPEEDS = ("sentences_per_second", "words_per_second")
_SCORES = ("f1", "precision", "recall")


def open_parser(path: Path, command: str, beam: int | None = None) -> Parser:
    """Read a parser and set its beam; raise ``FormatError`` if the file is not a parser."""
    parser = _load_parser(path, command)
    if beam is None:
        return parser
    if not isinstance(parser, ArcEagerModel | TextParserModel):
        raise ValueError(
            f"--beam is for parsers of dependency trees and raw text, and this is a {parser.noun}"
        )
    with name_options_in_errors():
        return parser.with_beam(beam)


def _load_parser(path: Path, command: str) -> Parser:
    with explain_wrong_file(path, command):
        loaded = load(path)
    if isinstance(loaded, Parser):
        return loaded
    description = describe_parser_file(path)
    if description is not None:  # the file contains word clusters
        raise FormatError(os.fspath(path), 0, 0, f"{description}, not a parser: {list_commands(path)}")
    description = f"a model of {_name_example_kind(loaded)}"
    raise FormatError(os.fspath(path), 0, 0, f"{description}, not a parser: unkernel predict takes it")


def _name_example_kind(model: Any) -> str:
    if isinstance(model, RecordClassifier):
        return "records"
    return "trees" if isinstance(model, TreeClassifier) else "rows"


def open_explainable(path: Path, command: str) -> ParserModel | TextParserModel:
    """Read a parser; raise ``FormatError`` if its decisions cannot be explained."""
    parser = open_parser(path, command)
    if isinstance(parser, ParserModel | TextParserModel):
        return parser
    raise FormatError(os.fspath(path), 0, 0, f"a {parser.noun}, whose decisions cannot be explained")


def describe_parser(parser: Parser) -> dict[str, Any]:
    """Return a description of a parser for JSON; its parts are the classifiers that it consists of."""
    return {
        "kind": parser.kind,
        "parser": parser.estimator,
        "parameters": parser.parameters,
        "features": parser.n_features_,
        "answers": _list_labels(parser),
        "parts": [_describe_part(name, part) for name, part in parser.parts_.items()],
        "compiled_bytes": parser.nbytes,
    }


def _list_labels(parser: Parser) -> list[str] | None:
    """Return the relations or the types of chunks that a parser predicts; None if it predicts neither."""
    if isinstance(parser, TextParserModel):
        return _list_labels(parser.parser)
    if isinstance(parser, ArcEagerModel):
        return sorted(name for name in parser.labels_ if _LIFTED not in name)
    return parser.types_ if isinstance(parser, ChunkModel) else None


def _describe_part(name: str, part: CompiledClassifier) -> dict[str, Any]:
    """Return a description of one classifier of a parser for JSON."""
    tables, counts = part._tables, []
    if tables.layout == CONJUNCTIONS:
        counts = part.heaviest_conjunctions(0)["counts"][1 : tables.parameters["degree"] + 1]
    return {
        "name": name,
        "engine": part.engine,
        "classes": len(part.classes_),
        "conjunctions": sum(counts) if counts else None,
        "conjunctions_by_order": counts,
        "support_vectors": part.model.n_support if isinstance(part.model, KernelModel) else None,
        "bytes": part.nbytes,
    }


def describe_result(result: Any) -> dict[str, Any]:
    """Return all measures of a parser's ``evaluate``, for JSON."""
    if isinstance(result, TextResult):
        result = dataclasses.replace(result, answer=None)  # the answer is a treebank, too long for JSON
    description = dataclasses.asdict(result)
    description |= {name: getattr(result, name) for name in _SPEEDS if hasattr(result, name)}
    if isinstance(result, TextResult):
        scores = result.scores()  # of TITLES, only those that the test file allows to measure
        description = {
            name: value for name, value in description.items() if name not in TITLES or name in scores
        }
        del description["measured"], description["answer"]
        for name, score in scores.items():
            description[name] = {key: getattr(score, key) for key in _SCORES} | description[name]
    if "per_type" in description:
        description["per_type"] = {
            name: {key: getattr(score, key) for key in _SCORES} | dataclasses.asdict(score)
            for name, score in result.per_type.items()
        }
    return description
