"""What unkernel does, in half a minute: ``make demo``, or ``python examples/demo.py [FOLDER]``.

Runs the examples beside this file, each of which also runs alone. Everything is measured while you wait, on
generated data and on data that come with Python and scikit-learn. Writes a picture and some files to try the
command line on into FOLDER, by default build/demo.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from rich.console import Console

import classify_code
import dense_rows
import few_weights
import linear_and_ranking
import parse_sentences
import sparse_rows
from example_data import Rows
from unkernel import write_svmlight
from unkernel.parsing import ArcEagerParser

FOLDER = Path("build/demo")
PICTURE = "sparse_rows.svg"


def main(folder: Path = FOLDER) -> None:
    """All parts, one screen each, the home ground first."""
    console = Console()
    folder.mkdir(parents=True, exist_ok=True)
    _heading(console, 1, "Sparse rows with many support vectors: what unkernel is made for")
    rows = sparse_rows.show(console, folder / PICTURE)
    _heading(console, 2, "Parsing: conjunctions of words and tags decide")
    parser = parse_sentences.show(console)
    _heading(console, 3, "Few weights: small models of the rows of part 1")
    few_weights.show(console, rows)
    _heading(console, 4, "Single features: linear SVMs and rankings")
    linear_and_ranking.show(console)
    _heading(console, 5, "Trees: which package of the standard library is a function from?")
    classify_code.show(console)
    _heading(console, 6, "Where not to use it")
    dense_rows.show(console)
    write_files(folder, rows, parser)
    _heading(console, 7, "Try next")
    console.print(f"picture of part 1: {folder / PICTURE}", highlight=False, soft_wrap=True)
    for command in commands(folder):
        console.print(f"  {_program()} {command}", highlight=False, markup=False, soft_wrap=True)


def _heading(console: Console, number: int, words: str) -> None:
    if number > 1:
        console.print()
    console.rule(f"[bold]{number}. {words}", align="left")


def write_files(folder: Path, rows: Rows, parser: ArcEagerParser) -> None:
    """The rows of part 1 and the parser of part 2, for the commands."""
    write_svmlight(folder / "train.svm", rows.train, rows.train_labels)
    write_svmlight(folder / "test.svm", rows.test, rows.test_labels)
    parser.save(folder / "parser.uk")
    parse_sentences.grammar(3, seed=2).write(folder / "sentences.conllu")


def commands(folder: Path) -> list[str]:
    """Three commands on these files: train, ask why, parse."""
    return [
        f"train poly {folder}/train.svm -o {folder}/model.uk --gamma 0.1 --test {folder}/test.svm",
        f"explain {folder}/model.uk {folder}/test.svm",
        f"parse {folder}/parser.uk {folder}/sentences.conllu --draw",
    ]


def _program() -> str:
    """The command as it can be typed: with the path of this environment where it is not on the PATH."""
    if shutil.which("unkernel"):
        return "unkernel"
    return os.path.relpath(Path(sys.executable).parent / "unkernel")


if __name__ == "__main__":
    try:
        main(*map(Path, sys.argv[1:2]))
    except KeyboardInterrupt:
        sys.exit(130)
