"""What parsers decide by, for ``unkernel explain`` and ``unkernel inspect --top``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from rich.text import Text

from unkernel.cli.inputs.parsers import Parser, open_parser
from unkernel.cli.inputs.sentences import Input, task_of
from unkernel.cli.render.console import many, on_one_line, print_facts, print_json, results
from unkernel.cli.render.progress import Display
from unkernel.cli.render.tables import new_table, print_table
from unkernel.data import read_chunks
from unkernel.data.text.chunks import ChunkSentence
from unkernel.engines import CompiledClassifier, compile
from unkernel.engines.tables import CONJUNCTIONS
from unkernel.parsing import Chunker, ExplainedDecision
from unkernel.parsing.chunks.estimator import to_answer

_JOINT = " & "


def check_options_of_rows(path: Path, given: dict[str, Any]) -> None:
    """Options that say nothing to a parser."""
    for option, value in given.items():
        if value is not None:
            raise ValueError(f"{path}: {option} is for models of rows or trees, and this is a parser")


# --- One sentence -------------------------------------------------------------------------------------


def explain_sentence(path: Path, data: str, row: int, top: int, *, json: bool) -> None:
    """Every decision on a sentence of a file."""
    with Display(quiet=json) as display:
        parser = open_parser(path)
        corpus = _read(parser, data, display)
        if row > len(corpus):
            raise ValueError(f"{data}: has {many(len(corpus), 'sentence')}, so there is no sentence {row:,}")
        with display.working("explaining"):
            found = _explained(path, parser, corpus[row - 1 : row], top)
    sentence = corpus[row - 1]
    text = " ".join(sentence.words) if isinstance(sentence, ChunkSentence) else str(sentence.text)
    if json:
        decisions = [_to_json(one) for one in found]
        print_json({"model": str(path), "data": data, "row": row, "text": text, "decisions": decisions})
        return
    facts = {"text": on_one_line(text), "decisions": many(len(found), "decision")}
    print_facts(f"{data}, sentence {row:,}", facts)
    for one in found:
        _print(one)


def _read(parser: Parser, data: str, display: Display) -> Any:
    if isinstance(parser, Chunker):  # whose texts may have no tags
        columns = parser._fitted.columns
        return Input(data).read(
            lambda file: to_answer(read_chunks(file, tagged=False)._text, columns), display
        )
    return Input(data).read(task_of(parser).read, display)


def _explained(path: Path, parser: Parser, corpus: Any, top: int) -> list[ExplainedDecision]:
    try:
        return parser.explain(corpus, top=top)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _to_json(one: ExplainedDecision) -> dict[str, Any]:
    fields = dataclasses.asdict(one)
    for name in ("constant", "rest"):
        fields[name].pop("features")
    return {name: value for name, value in fields.items() if name != "sentence"}


def _print(one: ExplainedDecision) -> None:
    table = new_table()
    for name in (one.chosen, *([one.runner_up] if one.runner_up else [])):
        table.add_column(Text(on_one_line(name)), justify="right", no_wrap=True)
    table.add_column("features")

    def add(values: tuple[float, float], words: str, style: str = "") -> None:
        cells = [f"{value:+.6g}" for value in values[: 1 + bool(one.runner_up)]]
        table.add_row(*cells, Text(on_one_line(words)), style=style)

    add((one.constant.chosen, one.constant.runner_up), "(constant)", "dim")
    for part in one.evidence:
        add((part.chosen, part.runner_up), _JOINT.join(part.features))
    if others := one.n_conjunctions - len(one.evidence):
        add((one.rest.chosen, one.rest.runner_up), f"({many(others, 'other')})", "dim")
    add((one.scores[one.chosen], one.scores.get(one.runner_up, 0.0)), "(score)", "bold")
    barred = f"; not possible: {', '.join(one.barred)}" if one.barred else ""
    print_table(on_one_line(f"{one.kind} of {one.question}: {one.chosen}{barred}"), table)


# --- A whole parser -----------------------------------------------------------------------------------


def heaviest_of_parser(parser: Parser, top: int, *, quiet: bool) -> dict[str, list[dict[str, Any]]]:
    """For each kind of decisions, the conjunctions of the largest weights in any of its parts."""
    found: dict[str, list[dict[str, Any]]] = {}
    names: dict[str, Any] = {}
    with Display(quiet=quiet) as display, display.trying("listing") as watch:
        for part, classifier in parser.parts_.items():
            watch(part)
            kind = part.partition(".")[0]
            names.setdefault(kind, parser.feature_names(part))
            classes = parser.class_names(part)
            found.setdefault(kind, []).extend(_heaviest(part, classifier, top, classes, names[kind]))
    return {
        kind: sorted(entries, key=lambda entry: -abs(entry["weight"]))[:top]
        for kind, entries in found.items()
    }


def _heaviest(
    part: str, classifier: CompiledClassifier, top: int, classes: list[str], name: Any
) -> list[dict[str, Any]]:
    if classifier._tables.layout != CONJUNCTIONS:
        expanded = compile(classifier.model, "expanded", measure=False)
        assert isinstance(expanded, CompiledClassifier)
        classifier = expanded
    listing = classifier.heaviest(top)
    entries = []
    for padded, weights in zip(listing["columns"].tolist(), listing["weights"].tolist(), strict=True):
        by_class = [-weights[0], weights[0]] if len(weights) == 1 else weights
        place = max(range(len(by_class)), key=lambda k: (abs(by_class[k]), by_class[k]))
        entries.append(
            {
                "features": [name(column) for column in sorted(c for c in padded if c >= 0)],
                "class": classes[place],
                "weight": by_class[place],
                "part": part,
            }
        )
    return entries


def print_heaviest(found: dict[str, list[dict[str, Any]]], *, complete: bool) -> None:
    """A table for each kind of decisions."""
    for kind, entries in found.items():
        table = new_table()
        table.add_column("features")
        table.add_column("weight", justify="right", no_wrap=True)
        table.add_column("class", no_wrap=True)
        table.add_column("part", no_wrap=True)
        for entry in entries:
            words = Text(on_one_line(_JOINT.join(entry["features"])))
            table.add_row(words, f"{entry['weight']:+.6g}", Text(on_one_line(entry["class"])), entry["part"])
        print_table(f"heaviest conjunctions of {kind}", table)
    if not complete:
        missing = "conjunctions of rare features, or of small weight, are not in the tables, and not listed"
        results().print(Text(f"  {missing}", style="dim"))
