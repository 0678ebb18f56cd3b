"""Every example in the README and in docs/ runs.

The ``python`` blocks of a page are run in order in one namespace, and the lines ``$ unkernel ...`` of
its ``console`` blocks between them, all in one temporary folder: a page makes the files that it uses. A
block that cannot run says so in a comment above it: ``<!-- not run: needs two hours -->``. A block
whose commands are shown to fail says ``<!-- fails with 2 -->``.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reference.patience import PATIENCE
from reference.small_grammar import grammar
from unkernel import cli

ROOT = Path(__file__).resolve().parents[2]
FIRST_PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES = [*FIRST_PAGES, *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(r"^(?P<indent>[ ]*)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```", re.M | re.S)
REMARK = re.compile(r"<!--\s*(?:(?P<skip>not run):[^>]+|fails with (?P<code>\d+))\s*-->\s*\Z")
# What only a shell understands. All else runs in this process, which is faster.
SHELL = re.compile(r"[|<>;&$`*]")


@dataclass(frozen=True)
class Block:
    """A fenced block that is to be run."""

    language: str
    code: str
    line: int
    exit_code: int = 0


def blocks(text: str) -> Iterator[Block]:
    for fence in FENCE.finditer(text):
        if fence["language"] not in ("python", "console"):
            continue
        remark = REMARK.search(text, 0, fence.start())
        if remark and remark["skip"]:
            continue
        first_line = text.count("\n", 0, fence.start("body"))
        code = textwrap.dedent(fence["body"])
        yield Block(fence["language"], code, first_line, int(remark["code"]) if remark else 0)


def pages_with_examples() -> list[Path]:
    return [page for page in PAGES if any(blocks(page.read_text(encoding="utf-8")))]


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> None:
    # As many empty lines in front as make a traceback name the line of the page.
    exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)


def commands(block: Block) -> Iterator[str]:
    r"""The lines ``$ unkernel ...``, with those that a ``\`` continues."""
    for line in block.code.replace("\\\n", " ").splitlines():
        if line.startswith("$ unkernel"):
            yield line.removeprefix("$ ")


def run_console(block: Block, page: Path, folder: Path) -> None:
    for command in commands(block):
        words = shlex.split(command, comments=True)
        in_process = not SHELL.search(command)
        code = cli.main(words[1:]) if in_process else run_in_shell(command, folder)
        if code != block.exit_code:
            pytest.fail(f"{page}:{block.line}: `{command}` ended with {code}")


def run_in_shell(command: str, folder: Path) -> int:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, timeout=PATIENCE, check=False)
    return done.returncode


def write_treebanks(folder: Path) -> None:
    """The treebanks that README.md takes for granted. All other pages make the files that they use."""
    grammar(40, seed=0).write(folder / "train.conllu")
    grammar(10, seed=1).write(folder / "dev.conllu")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[] if page in FIRST_PAGES else pytest.mark.docs)
        for page in pages_with_examples()
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page in FIRST_PAGES:
        write_treebanks(tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "python":
            run_python(block, page, namespace)
        else:
            run_console(block, page, tmp_path)


def test_blocks_are_found() -> None:
    text = textwrap.dedent(
        """\
        A page.

        ```python
        x = 1
        ```

        <!-- not run: it takes a day -->
        ```python
        x = 2
        ```

        1. In a list:

            ```python
            if x:
                x = 3
            ```

        <!-- fails with 2 -->

        ```console
        $ make demo
        $ unkernel train \\
            a b
        some output
        ```

        ```text
        nothing
        ```
        """
    )
    first, second, third = blocks(text)
    assert first == Block("python", "x = 1\n", 3)
    assert second == Block("python", "if x:\n    x = 3\n", 14)
    assert (third.language, third.exit_code) == ("console", 2)
    assert [command.split() for command in commands(third)] == [["unkernel", "train", "a", "b"]]


def test_a_failing_example_names_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (block,) = blocks("text\n\n```python\nx = 1\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        run_python(block, page, {})
    assert caught.traceback[-1].lineno + 1 == 5
