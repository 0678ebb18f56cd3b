"""Unusual names of files, and outputs that are not regular files: commands succeed, or print one line."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reference.parse_corpora import treebank
from unkernel import PolySVC, TreeSVC
from unkernel.cli import main
from unkernel.models import container

pytestmark = pytest.mark.hostile

ROWS = "1 1:1 2:1\n-1 3:1\n1 1:1\n-1 2:1 3:1\n" * 5


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rows.svm").write_text(ROWS)
    Path("text.conllu").write_text(treebank(6, 0))
    for kind, data in (("poly", "rows.svm"), ("parser", "text.conllu")):
        assert main(["train", kind, data, "-o", f"{kind}.uk", "-q"]) == 0
    return tmp_path


UNUSUAL_NAMES = {
    "not ASCII": "ünïcödé 模型",
    "a line break": "a\nb",
    "a terminal's escape": "a\x1b[31mb",
    "quotation marks": "a'b\"c",
    "a pattern": "a*b[1]?",
    "format directives": "%s%n{0}",
    "the direction of text": "a\u202eb",
    "a home folder": "~",
    "markup": "[bold]x",
    "nearly the longest name": "n" * 240,
    "bytes that are no UTF-8": os.fsdecode(b"caf\xe9"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
@pytest.mark.parametrize("name", UNUSUAL_NAMES.values(), ids=UNUSUAL_NAMES)
def test_files_with_odd_names_are_read_and_written(files, capfd, name):
    Path(f"{name}.svm").write_text(ROWS)
    out_of_core = ["--out-of-core", "--cache", f"{name}.rows", "--checkpoint", f"{name}.kept"]
    for command in (
        ["train", "poly", f"{name}.svm", "-o", f"{name}.uk", "--test", f"{name}.svm"],
        ["train", "linear", f"{name}.svm", "-o", f"{name}.uk", *out_of_core],
        ["train", "linear", f"{name}.svm", "-o", f"{name}.uk", *out_of_core],
        ["predict", f"{name}.uk", f"{name}.svm", "-o", f"{name}.out"],
        ["evaluate", f"{name}.uk", f"{name}.svm"],
        ["compile", f"{name}.uk", "-o", f"{name}2.uk", "--sample", f"{name}.svm", "--plot", f"{name}.svg"],
        ["inspect", f"{name}.uk"],
        ["verify", f"{name}.uk"],
        ["explain", f"{name}.uk", f"{name}.svm"],
        ["tune", "poly", f"{name}.svm", "--cv", "2", "--C", "1", "--plot", f"{name}-t.svg"],
        ["parse", "parser.uk", "text.conllu", "--svg", f"{name}.html", "-o", f"{name}.conllu"],
        ["parse", "parser.uk", "text.conllu", "--svg", f"{name} d", "-o", f"{name} 2.conllu"],
    ):
        assert main(command) == 0, (command, capfd.readouterr().err)
    out, err = capfd.readouterr()
    assert "\x1b[31m" not in out + err
    assert main(["inspect", f"{name}.missing"]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


OUTPUT_COMMANDS = [
    "train poly rows.svm -q --force -o",
    "predict poly.uk rows.svm --force -o",
    "compile poly.uk --force -o",
    "parse parser.uk text.conllu --force -o",
    "tune poly rows.svm --cv 2 --C 1 --force -o",
    "train linear rows.svm -o new.uk --out-of-core --cache",
    "train linear rows.svm -o new.uk --checkpoint",
]
ANSWER_COMMANDS = [
    output_command for output_command in OUTPUT_COMMANDS if output_command.startswith(("predict", "parse"))
]
NOT_REGULAR_FILES = ["folder", "dangling", "loop", "fifo", "missing/new", "rows.svm/x", "/proc/x"]


@pytest.mark.parametrize("command", ANSWER_COMMANDS)
def test_predictions_can_be_written_to_a_named_pipe(files, command):
    os.mkfifo("fifo")
    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(Path("fifo").read_bytes)
        assert main([*command.split(), "fifo"]) == 0
        piped = reading.result()
    assert main([*command.split(), "plain"]) == 0
    assert piped == Path("plain").read_bytes() != b""


@pytest.mark.parametrize(
    ("command", "name"),
    # Writing predictions to a pipe waits for a reader; the test above covers this.
    [
        pair
        for pair in product(OUTPUT_COMMANDS, NOT_REGULAR_FILES)
        if pair[0] not in ANSWER_COMMANDS or pair[1] != "fifo"
    ],
)
def test_outputs_that_are_not_regular_files_fail_in_one_line(files, capfd, command, name):
    """Commands print one line, or succeed: a dangling link may become a file, and a checkpoint a folder."""
    os.mkfifo("fifo")
    Path("folder").mkdir()
    Path("dangling").symlink_to("nowhere")
    Path("loop").symlink_to("loop")
    code = main([*command.split(), name])
    err = capfd.readouterr().err
    if code == 2:
        (line,) = [line for line in err.splitlines() if "error" in line]
        assert name in line
    else:
        assert code == 0
        assert name in ("dangling", "loop", "folder")  # --checkpoint takes a folder
    assert Path("rows.svm").read_text() == ROWS


def test_names_in_models_do_not_reach_a_terminal(files, capfd):
    """Names in a model of unknown origin are escaped."""
    rows = np.random.default_rng(0).integers(0, 2, (60, 4)).astype(float)
    labels = np.where(rows[:, 0] != rows[:, 1], "a\x1b[31mb\r\x07", "[bold]c")
    frame = pd.DataFrame(rows, columns=[f"f{i}\x1b]0;x\x07" for i in range(4)])
    PolySVC(random_state=0).fit(frame, labels).save("names.uk")
    trees = ["(S (A\x1b[31m x))", "(S (B y))"] * 30
    TreeSVC().fit(trees, labels).save("trees.uk")
    for model in ("names.uk", "trees.uk"):
        assert main(["inspect", model, "--top", "5"]) == 0
        out = capfd.readouterr().out
        assert "[bold]c" in out
        assert "\\x1b" in out
        assert all(word.isprintable() for word in out.split("\n"))


def test_pictures_of_unknown_formats_are_refused_and_create_nothing(files, capfd):
    assert main(["parse", "parser.uk", "text.conllu", "--svg", "a.png"]) == 2
    assert "a.png: pictures are SVG; name a folder, or a file that ends in" in capfd.readouterr().err
    assert not Path("a.png").exists()


def test_deeply_nested_settings_are_shown_or_refused(files, capfd):
    kind, arrays, settings = container.read("poly.uk")
    nested: list = []
    for _ in range(700):
        nested = [nested]
    for origin in ({"a": {"b": [{"c": None}]}}, {"learner": {"x": 1}, "gap": {}}, {"deep": nested}):
        container.write("nested.uk", kind, arrays, settings | {"origin": origin})
        for options in ([], ["--json"], ["--top", "3"]):
            code = main(["inspect", "nested.uk", *options])
            err = capfd.readouterr().err
            assert code == 0 or (code == 2 and err.endswith("nested too deeply\n"))
