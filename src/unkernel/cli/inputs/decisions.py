"""Explain parsers for ``unkernel explain`` and ``unkernel inspect``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from unkernel.cli.inputs.file_contents import detect_sentences, read_beginning
from unkernel.cli.inputs.model_kinds import ROWS_NOT_PARSERS, refuse_options
from unkernel.cli.inputs.parsers import describe_parser, open_explainable, open_parser
from unkernel.cli.inputs.sentences import Input, find_task
from unkernel.cli.terminal.progress import Display
from unkernel.data import read_chunks
from unkernel.data.files import read_text
from unkernel.data.text.chunks import ChunkSentence
from unkernel.measures.number_format import format_count
from unkernel.models import container
from unkernel.parsing import ChunkModel, ExplainedDecision, TextParserModel
from unkernel.parsing.chunks.model import mark_tag_column
from unkernel.parsing.parser_model import ParserModel

_INCOMPLETE_NOTE = (
    "conjunctions of rare features or of small weight are missing: the tables do not contain them"
)


# --- One sentence -------------------------------------------------------------------------------------


def explain_sentence(path: Path, data: str, row: int, top: int, *, quiet: bool) -> dict[str, Any]:
    """Explain every decision on a sentence of a file; return the explanations for JSON."""
    with Display(quiet=quiet) as display:
        parser = open_explainable(path, "explain")
        corpus = _read(parser, data, display)
        if row >= len(corpus):
            raise ValueError(
                f"{data}: has {format_count(len(corpus), 'sentence')}, so there is no sentence {row:,}"
            )
        with display.show_work("explaining"):
            explained_decisions = _explain(path, parser, corpus[row : row + 1], top)
    sentence = corpus[row]
    text = " ".join(sentence.words) if isinstance(sentence, ChunkSentence) else str(sentence.text)
    decisions = [_to_json(decision) for decision in explained_decisions]
    return {"model": str(path), "data": data, "row": row, "text": text, "decisions": decisions}


def _read(parser: ParserModel | TextParserModel, data: str, display: Display) -> Any:
    """Read the sentences of a file; a parser of raw text also takes text, which its tokenizer splits."""
    if isinstance(parser, TextParserModel) and detect_sentences(read_beginning(data)) is None:
        return Input(data).read(lambda file: parser.tokenizer.tokenize(read_text(file)), display)
    if isinstance(parser, ChunkModel):  # the file may lack the column of tags
        columns = parser.columns
        return Input(data).read(
            lambda file: mark_tag_column(read_chunks(file, tagged=False)._text, columns), display
        )
    return Input(data).read(find_task(parser).read, display)


def _explain(
    path: Path, parser: ParserModel | TextParserModel, corpus: Any, top: int
) -> list[ExplainedDecision]:
    try:
        return parser.explain(corpus, top=top)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _to_json(decision: ExplainedDecision) -> dict[str, Any]:
    """Return a decision for JSON, without its sentence, and without features of the intercept and rest."""
    fields = dataclasses.asdict(decision)
    for name in ("intercept", "rest"):
        fields[name].pop("features")
    del fields["sentence"]
    return {"question": decision.question} | fields


# --- A whole parser -----------------------------------------------------------------------------------


def inspect_parser(path: Path, top: int, features: str | None, *, quiet: bool) -> dict[str, Any]:
    """Return a description of a parser for JSON and, with `top`, its heaviest conjunctions."""
    refuse_options(path, {"--features": features}, ROWS_NOT_PARSERS)
    parser = open_parser(path, "inspect")
    description: dict[str, Any] = {"file": str(path), "file_bytes": path.stat().st_size}
    description |= {"digests": container.has_digests(path)} | describe_parser(parser)
    if not top:
        return description
    parser = open_explainable(path, "inspect")
    complete = all(part.engine != "split" and part.exact for part in parser.parts_.values())
    heaviest = list_heaviest(parser, top, quiet=quiet)
    return description | {"top": heaviest, "top_note": None if complete else _INCOMPLETE_NOTE}


def list_heaviest(
    parser: ParserModel | TextParserModel, top: int, *, quiet: bool
) -> dict[str, list[dict[str, Any]]]:
    """Return the heaviest conjunctions for each kind of decision, for JSON."""
    if isinstance(parser, TextParserModel):
        parts = {"tagger": parser.tagger, "parser": parser.parser}
        return {
            f"{name}.{kind}": [weight | {"part": f"{name}.{weight['part']}"} for weight in heaviest]
            for name, model in parts.items()
            for kind, heaviest in list_heaviest(model, top, quiet=quiet).items()
        }
    with Display(quiet=quiet) as display, display.show_work("listing"):
        heaviest = parser.heaviest(top)
    by_kind: dict[str, list[dict[str, Any]]] = {part.partition(".")[0]: [] for part in parser.parts_}
    for weight in heaviest:
        by_kind[weight.part.partition(".")[0]].append(
            {
                "features": list(weight.features),
                "class": weight.for_class,
                "weight": weight.weight,
                "part": weight.part,
            }
        )
    return by_kind
