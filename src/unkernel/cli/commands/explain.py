"""``unkernel explain``: which conjunctions made a row's score, or which fragments a tree's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from unkernel.cli.inputs.files import class_labels, label_words
from unkernel.cli.inputs.models import Opened, OpenedTrees, first_index, open_model, score_names, strongest
from unkernel.cli.inputs.names import read_names, shown
from unkernel.cli.inputs.parsers import is_parser
from unkernel.cli.inputs.rows import expect_rows, read_asked
from unkernel.cli.inputs.trees import check_rows_only, read_for
from unkernel.cli.options import shared as options
from unkernel.cli.render.console import many, on_one_line, print_facts, print_json
from unkernel.cli.render.decisions import check_options_of_rows, explain_sentence
from unkernel.cli.render.progress import Display
from unkernel.cli.render.tables import new_table, print_table
from unkernel.data import SvmlightData
from unkernel.engines import CompiledClassifier, Explanation, Fragment
from unkernel.models import ConjunctionModel, KernelModel, TreeModel

_MOST_COLUMNS = 6  # of scores, side by side
_TOP, _TOP_OF_DECISIONS = 10, 3
Numbers = float | list[float]


def explain(
    model: options.AnyModelFile,
    data: options.ExplainedFile,
    *,
    row: options.Row = 1,
    top: options.TopOfRow = None,
    of: options.OfClass = None,
    features: options.Features = None,
    zero_based: options.ZeroBasedLikeModel = None,
    json: options.Json = False,
) -> None:
    """Explain the score of a row: what each conjunction of its features adds.

    The constant, the contributions that are listed, and the rest add up to
    the score, exactly. For linear models and polynomial kernels up to
    degree 4; and for models of trees, of which the fragments are listed that
    have the largest part in the score of a tree. Of a parser, every decision
    on a sentence is explained: the winner and the runner-up, and what made
    the difference.

    \b
    [dim]$[/dim] unkernel explain model.uk rows.svm
    [dim]$[/dim] unkernel explain model.uk rows.svm --row 17 --top 20 --features names.txt
    [dim]$[/dim] unkernel explain trees.uk questions.dat --row 17 --of DESC
    [dim]$[/dim] unkernel explain libsvm.model rows.svm --json | jq .contributions[0]
    [dim]$[/dim] unkernel explain parser.uk test.conllu --row 3 --top 5
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    if is_parser(model):
        check_options_of_rows(model, {"--of": of, "--features": features, "--zero-based": zero_based})
        explain_sentence(model, data, row, _TOP_OF_DECISIONS if top is None else top, json=json)
        return
    top = _TOP if top is None else top
    opened = open_model(model)
    if isinstance(opened, OpenedTrees):
        _check_for_trees(opened, features, zero_based)
        found_in_tree = _explain_tree(opened, data, row, top, of, quiet=json)
        if json:
            print_json(found_in_tree)
        else:
            _print_tree(found_in_tree)
        return
    if of is not None:
        raise ValueError("--of is for models of trees; all scores of a row are shown")
    expect_rows(opened, data)
    names = read_names(features, first_index(opened.model))
    with Display(quiet=json) as display:
        rows = read_asked(opened, data, display, zero_based)
        if row > rows.X.shape[0]:
            raise ValueError(f"{data}: has {many(rows.X.shape[0], 'row')}, so there is no row {row:,}")
        with display.working("explaining"):
            found = _explain(opened, rows, row, top)
    result = _describe(opened, found, rows, row, names)
    result = {"model": str(model), "data": data} | result
    if json:
        print_json(result)
    else:
        _print(result, opened)


def _check_for_trees(opened: OpenedTrees, features: str | None, zero_based: bool | None) -> None:
    check_rows_only([], zero_based)
    if features is not None:
        raise ValueError(f"{opened.path}: --features names the features of rows, and this model is of trees")


def _explain_tree(
    opened: OpenedTrees, data: str, row: int, top: int, of: str | None, *, quiet: bool
) -> dict[str, Any]:
    with Display(quiet=quiet) as display:
        examples = read_for(opened.model, opened.path, data, display)
        if row > examples.count:
            raise ValueError(f"{data}: has {many(examples.count, 'tree')}, so there is no tree {row:,}")
        with display.working("explaining"), _named(opened.path):
            tree = examples.data.X[row - 1 : row]
            found = opened.classifier.explain(tree, max(top, 1), of=_class_called(opened.model, of))
            answer = opened.classifier.predict(tree, n_jobs=1).tolist()[0]
    listed = found.fragments[:top]
    labels = examples.data.y
    return {
        "model": str(opened.path),
        "data": data,
        "row": row,
        "label": None if labels is None else class_labels(labels[row - 1 : row]).tolist()[0],
        "prediction": answer,
        "of": found.of if isinstance(found.of, str) else np.asarray(found.of).tolist(),
        "score": found.score,
        "constant": found.constant,
        "contributions": [_fragment_to_json(fragment) for fragment in listed],
        "rest": found.rest + sum(fragment.value for fragment in found.fragments[top:]),
        "complete": found.complete,
    }


def _class_called(model: TreeModel, label: str | None) -> Any:
    """The class that an option names; texts and numbers look alike there."""
    if label is None:
        return None
    for known in model.classes.tolist():
        if label == str(known):
            return known
    raise ValueError(f"--of must be one of {label_words(model.classes.tolist())}, got {label!r}")


def _fragment_to_json(fragment: Fragment) -> dict[str, Any]:
    return {
        "fragment": fragment.text,
        "tree": fragment.channel,
        "value": fragment.value,
        "weight": fragment.weight,
        "occurrences": fragment.occurrences,
    }


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Why a model cannot be explained, with its name."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _print_tree(result: dict[str, Any]) -> None:
    facts = {"prediction": str(result["prediction"]), "explained": f"the score of {result['of']}"}
    if result["label"] is not None:
        facts["label in the file"] = str(result["label"])
    if not result["complete"]:
        facts["note"] = "the search was given up: there may be fragments with a larger part"
    print_facts(f"{result['data']}, tree {result['row']:,}", facts)
    table = new_table()
    table.add_column("adds", justify="right", no_wrap=True)
    table.add_column("fragment")
    table.add_row(f"{result['constant']:+.6g}", "(constant)", style="dim")
    for part in result["contributions"]:
        table.add_row(f"{part['value']:+.6g}", Text(on_one_line(part["fragment"])))
    table.add_row(f"{result['rest']:+.6g}", "(all others)", style="dim")
    table.add_row(f"{result['score']:+.6g}", "(score)", style="bold")
    print_table("what adds up to it", table)


def _explain(opened: Opened, rows: SvmlightData, row: int, top: int) -> Explanation:
    # What is explained is the model, whichever engine answers for it.
    classifier = CompiledClassifier(opened.model)
    with _named(opened.path):
        chosen = rows.X[row - 1]  # a file's row says what it has, not how wide it is
        return classifier.explain(dict(zip(chosen.indices.tolist(), chosen.data.tolist(), strict=True)), top)


def _describe(
    opened: Opened, found: Explanation, rows: SvmlightData, row: int, names: dict[int, str]
) -> dict[str, Any]:
    decision, first = opened.model.decision, first_index(opened.model)
    answer = decision.choose(np.array([_listed(found.score)])).tolist()[0]
    return {
        "row": row,
        "label": class_labels(rows.y[row - 1 : row]).tolist()[0],
        "prediction": answer,
        "scores": score_names(decision),
        "score": found.score,
        "constant": found.constant,
        "contributions": [
            {
                "features": [column + first for column in part.features],
                "names": shown(part.features, names, first),
                "value": part.value,
            }
            for part in found.contributions
        ],
        "rest": found.rest,
        "conjunctions": found.n_conjunctions,
        "basis": "sets" if _are_sets(opened, rows.X[row - 1]) else "monomials",
        "exact": opened.classifier is None or opened.classifier.exact,
    }


def _are_sets(opened: Opened, row: Any) -> bool:
    """Whether a feature counts once in a conjunction, however often the kernel multiplies it."""
    if isinstance(opened.model, ConjunctionModel):
        return opened.model.sets
    return not isinstance(opened.model, KernelModel) or (opened.model.binary and bool((row.data == 1).all()))


def _listed(value: Numbers) -> list[float]:
    return value if isinstance(value, list) else [value]


def _print(result: dict[str, Any], opened: Opened) -> None:
    facts = {
        "prediction": str(result["prediction"]),
        "label in the file": str(result["label"]),
        "conjunctions": f"{result['conjunctions']:,} have a part in the score",
    }
    if not result["exact"]:
        facts["note"] = "explained is the exact model; this file is pruned and answers approximately"
    print_facts(f"{result['data']}, row {result['row']:,}", facts)
    _print_parts(result, opened)


def _print_parts(result: dict[str, Any], opened: Opened) -> None:
    joint = " ∧ " if result["basis"] == "sets" else " · "
    several = len(result["scores"]) > 1
    wide = several and len(result["scores"]) <= _MOST_COLUMNS
    table = new_table()
    for title in result["scores"] if wide else ["adds"]:
        table.add_column(Text(on_one_line(title)), justify="right", no_wrap=True)
    if several and not wide:
        table.add_column("most of all for", no_wrap=True)

    def add(value: Numbers, words: str, style: str = "") -> None:
        numbers = _listed(value)
        if several and not wide:
            number, spoken_for = strongest(opened.model.decision, numbers)
            cells: list[str | Text] = [f"{number:+.6g}", Text(on_one_line(spoken_for))]
        else:
            cells = [f"{number:+.6g}" for number in numbers]
        table.add_row(*cells, Text(on_one_line(words)), style=style)

    table.add_column("conjunction")
    add(result["constant"], "(constant)", "dim")
    for part in result["contributions"]:
        add(part["value"], joint.join(part["names"]))
    if others := result["conjunctions"] - len(result["contributions"]):
        add(result["rest"], f"({many(others, 'other')})", "dim")
    add(result["score"], "(score)", "bold")
    print_table("what adds up to it", table)
