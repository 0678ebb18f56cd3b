"""examples/demo.py with a small script; the scripts of the gallery run when documentation is built."""

import ast
import shlex
from pathlib import Path

import pytest

import demo
import unkernel
from unkernel import cli

EXAMPLES = Path(demo.__file__).parent
SCRIPTS = sorted(EXAMPLES.rglob("plot_*.py"))
SCRIPT = '''"""
Squares of numbers
==================
"""

import matplotlib.pyplot as plt

print("1, 4, 9")
plt.plot([1, 4, 9])
plt.show()
'''


@pytest.fixture
def demo_output(tmp_path, monkeypatch, capsys) -> str:
    """Return the output of a demo with one small part."""
    (tmp_path / "plot_squares.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    demo.main(Path("out"), [str(tmp_path / "plot_squares.py")])
    return capsys.readouterr().out


def test_each_part_has_its_title_its_output_and_its_figure(demo_output):
    lines = demo_output.splitlines()
    title = lines.index("=== 1. Squares of numbers")
    assert title < lines.index("1, 4, 9") < lines.index("figure: out/squares.png")
    assert Path("out/squares.png").read_bytes().startswith(b"\x89PNG")


def test_the_commands_that_it_ends_with_run(demo_output, capsys):
    words = [shlex.split(line) for line in demo_output.partition("Try next\n")[2].splitlines() if line]
    assert [command[1] for command in words] == ["train", "explain", "report"]
    assert all(command[0].endswith("unkernel") for command in words)
    for command in words:
        assert cli.main(command[1:]) == 0, capsys.readouterr().err
    assert "job = pilot" in capsys.readouterr().out  # supports the prediction for the record
    assert unkernel.load("out/income.uk").predict_one({"age": 51, "job": "pilot"}) == "high"
    assert "<html" in Path("out/report.html").read_text()[:300]


def test_the_parts_are_scripts_of_the_gallery():
    assert set(demo.PARTS) <= {script.relative_to(EXAMPLES).as_posix() for script in SCRIPTS}
    for part in demo.PARTS:
        assert demo.title_of(EXAMPLES / part).strip('"=')


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_of_the_gallery_have_a_title_and_a_figure(script):
    text = script.read_text(encoding="utf-8")
    title, underline = ast.get_docstring(ast.parse(text)).splitlines()[:2]
    assert len(title) == len(underline) and set(underline) == {"="}
    assert text.count("plt.show()") == 1
    assert (script.parent / "GALLERY_HEADER.rst").exists()
