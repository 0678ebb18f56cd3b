"""Every example in the README and in docs/ runs, and prints the output on the page.

``python tools/page_outputs.py`` writes these outputs into the pages, and describes how to mark blocks.
"""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path

import pytest

import unkernel

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("page_outputs", ROOT / "tools" / "page_outputs.py")
assert spec is not None and spec.loader is not None
page_outputs = importlib.util.module_from_spec(spec)
sys.modules["page_outputs"] = page_outputs  # dataclasses look for the module here
spec.loader.exec_module(page_outputs)
PAGES = [page for page in page_outputs.PAGES if any(page_outputs.blocks(page.read_text(encoding="utf-8")))]


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_print_the_output_on_the_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page in page_outputs.FIRST_PAGES:
        page_outputs.write_treebanks(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = list(page_outputs.differences(page))
    assert not result, "\n".join(["run python tools/page_outputs.py", *result])


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
        <!-- output not shown: it is an example -->

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
    first, second, third = page_outputs.blocks(text)
    assert (first.language, first.code, first.line, first.output) == ("python", "x = 1\n", 3, "")
    assert (second.code, second.line, second.output) == ("if x:\n    x = 3\n", 14, "")
    assert (third.language, third.exit_code, third.is_shown) == ("console", 2, False)
    make, train = page_outputs.commands(third)
    assert (make.is_run, train.is_run, train.output) == (False, True, "some output\n")
    assert train.words.split() == ["unkernel", "train", "a", "b"]


def test_a_failing_example_names_its_line(tmp_path: Path) -> None:
    (block,) = page_outputs.blocks("text\n\n```python\nx = 1\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        page_outputs.Page(tmp_path / "page.md").printed_by_python(block)
    assert caught.traceback[-1].lineno + 1 == 5


PAGE = """\
1. In a list:

    ```python
    print(7 * 6)
    for digit in range(3):
        print(digit, 0.5 * digit)
    ```

Then:

```console
$ unkernel --version
$ ls
something else
$ unkernel --no-such-option > said.txt 2>&1 || echo said
```

<!-- output not shown: it is of no use -->
```python
print("hidden")
```
"""


def test_outputs_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    assert len(list(page_outputs.differences(page))) == 3
    written = page_outputs.insert_outputs(page)
    assert "    ```\n\n    ```output\n    42\n    0 0.0\n    1 0.5\n    2 1.0\n    ```\n\nThen" in written
    assert f"$ unkernel --version\nunkernel {unkernel.__version__}\n$ ls\nsomething else\n" in written
    assert "echo said\nsaid\n```\n" in written and "output\nhidden" not in written
    shortened = written.replace("    1 0.5\n", "    ...\n")
    page.write_text(shortened, encoding="utf-8")
    assert list(page_outputs.differences(page)) == []
    assert page_outputs.insert_outputs(page) == shortened
    page.write_text(shortened.replace("42", "41"), encoding="utf-8")
    (difference,) = page_outputs.differences(page)
    assert difference.startswith(f"{page}:3: shows\n41\n") and "prints\n42\n" in difference
    assert page_outputs.insert_outputs(page) == written


@pytest.mark.parametrize(
    ("shown", "printed", "alike"),
    [
        ("score 0.9999", "score   1.0000", True),
        ("score 0.98", "score 0.90", False),
        ("3 rows", "4 rows", False),
        ("183 of 200 rows", "182 of 200 rows", True),
        ("183 of 200 rows", "150 of 200 rows", False),
        ("3 rows", "3 rows and more", False),
        ("3 rows ...", "3 rows and more", True),
        ("3 ro ...", "3 rows", True),
        ("a\n... of b\n", "a\nmany\nwords of b\n", True),
        ("0.01 s training", "12 s training", True),
        ("1,310,363 rows/s (0.00 s)", "52 rows/s (1.00 s)", True),
        ("63 words, 12 sentences per second", "99 words, 11 sentences per second", False),
        ("12 sentences per second", "11 sentences per second", True),
        ("gap 8.19e-04 after 35 epochs", "gap 2e-05 after 41 epochs", True),
        ("gap: 0.0008", "gap: 0.0001", True),
        ("300.8 MB at its peak", "250.0 MB at its peak", True),
        ("13.8 kB", "19.2 kB", False),
        ("-1.44e-05", "-1.45e-05", True),
        ("────── x", "── x", True),
    ],
)
def test_outputs_are_compared_as_machines_differ(shown: str, printed: str, alike: bool) -> None:
    assert page_outputs.is_alike(shown, printed) is alike
