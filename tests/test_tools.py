"""Programs in tools/: checks find faults, and generated pages are current."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reference.model_zoo import make_family
from unkernel import PolySVC

ROOT = Path(__file__).resolve().parents[1]


def tool(name: str, folder: str = "tools") -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for the module here
    spec.loader.exec_module(module)
    return module


check_includes = tool("check_includes")


def problems(folder: Path, file: str, text: str) -> list[str]:
    path = folder / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    lines, _ = check_includes.check(folder)
    return [line.removeprefix(str(path)) for line in lines]


@pytest.mark.slow
def test_the_core_passes_the_check() -> None:
    assert check_includes.main([]) == 0


@pytest.mark.parametrize(
    ("file", "include"),
    [
        ("poly/train.cpp", "unkernel/kernels/feature_map.hpp"),
        ("parsing/parser.cpp", "unkernel/engines/engine.hpp"),
        ("poly/train.cpp", "unkernel/solve/solver.hpp"),
        ("poly/train.cpp", "unkernel/poly/train.hpp"),
        ("engines/engine.cpp", "unkernel/data/csr.hpp"),
        ("parsing/parser.cpp", "unkernel/tree/kernel.hpp"),
    ],
)
def test_rooms_can_include_themselves_and_lower_rooms(tmp_path: Path, file: str, include: str) -> None:
    assert problems(tmp_path, file, f'#include "{include}"\n') == []


@pytest.mark.parametrize(
    ("file", "include", "reason"),
    [
        (
            "engines/engine.cpp",
            "unkernel/solve/solver.hpp",
            "engines may include only folders below it, and solve is on its own level",
        ),
        (
            "solve/solver.cpp",
            "unkernel/engines/engine.hpp",
            "solve may include only folders below it, and engines is on its own level",
        ),
        (
            "poly/train.cpp",
            "unkernel/tree/kernel.hpp",
            "poly may include only folders below it, and tree is on its own level",
        ),
        (
            "base/random.hpp",
            "unkernel/data/csr.hpp",
            "base may include only folders below it, and data is above it",
        ),
        (
            "tree/exact.cpp",
            "unkernel/engines/engine.hpp",
            "learners and engines share kernels, and nothing else",
        ),
        (
            "data/csr.hpp",
            "unkernel/poly/train.hpp",
            "data may include only folders below it, and poly is above it",
        ),
        ("data/csr.hpp", "csr_detail.hpp", 'write it as "unkernel/<folder>/<file>"'),
        ("data/csr.hpp", "unkernel/attic/old.hpp", 'write it as "unkernel/<folder>/<file>"'),
    ],
)
def test_other_includes_are_refused(tmp_path: Path, file: str, include: str, reason: str) -> None:
    text = f'#pragma once\n#include "{include}"\n'
    assert problems(tmp_path, file, text) == [f':2: includes "{include}": {reason}']


@pytest.mark.parametrize(
    "header", ["<Python.h>", "<nanobind/nanobind.h>", '"nanobind/ndarray.h"', "<iostream>"]
)
def test_python_and_printing_are_refused(tmp_path: Path, header: str) -> None:
    (problem,) = problems(tmp_path, "data/a.cpp", f"#  include {header}\n")
    assert problem.startswith(f":1: includes {header[1:-1]}: ")


@pytest.mark.parametrize(
    "call", ["int r = rand();", "std::srand (1);", "std::exit(1);", "printf(x);", "std::cerr << 1;"]
)
def test_calls_that_the_core_never_makes(tmp_path: Path, call: str) -> None:
    (problem,) = problems(tmp_path, "data/a.cpp", f"/* two\nlines */\n{call}\n")
    assert problem.startswith(":3: ")


def test_comments_strings_and_longer_names_are_not_calls(tmp_path: Path) -> None:
    text = 'int operand(int);  // rand()\nconst char* s = "exit(1)";\nint k = operand(2); /* abort() */\n'
    assert problems(tmp_path, "data/a.cpp", text) == []


def test_a_folder_that_is_no_room(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "attic/a.cpp", "")
    assert "'attic' is no room" in problem


@pytest.mark.parametrize(("lines", "refused", "remarked"), [(500, 0, 0), (501, 0, 1), (701, 1, 0)])
def test_long_files(tmp_path: Path, lines: int, refused: int, remarked: int) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "a.hpp").write_text("\n" * lines)
    faults, remarks = check_includes.check(tmp_path)
    assert (len(faults), len(remarks)) == (refused, remarked)


def test_main_fails_on_a_violation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problems(tmp_path, "base/a.hpp", '#include "unkernel/poly/train.hpp"\n')
    assert check_includes.main([str(tmp_path)]) == 1
    assert "error: " in capsys.readouterr().out


def test_the_extras_that_make_installs_exist() -> None:
    requirements = tool("requirements").requirements
    assert any(line.startswith("pytest") for line in requirements("test"))
    with pytest.raises(SystemExit, match="no extra 'nothing'"):
        requirements("nothing")


def test_links_are_turned_for_the_site() -> None:
    turn = tool("project_links", "docs/_ext").turn_links
    paper = "docs/papers/chang2010.md"
    assert turn("[a](../../benchmarks/RESULTS.md)", paper, paper) == "[a](../results.md)"
    assert turn("[a](../polysvc.md#storage)", paper, paper) == "[a](../polysvc.md#storage)"
    included = ("CONTRIBUTING.md", "docs/contributing.md")
    assert turn("[a](docs/developing.md#style)", *included) == "[a](developing.md#style)"
    outside = "[a](LICENSE) [b](https://example.org/x.md)"
    assert turn(outside, *included) == "a [b](https://example.org/x.md)"


def test_pages_of_commands_show_their_help(tmp_path: Path) -> None:
    pages = tool("command_pages", "docs/_ext")
    (tmp_path / "former.rst").touch()
    pages.write_pages(tmp_path)
    names = {path.stem for path in tmp_path.iterdir()}
    assert {"train", "train-poly", "tune-rank", "serve"} <= names
    assert "former" not in names
    page = (tmp_path / "train-poly.rst").read_text(encoding="utf-8")
    assert ".. option:: -o, --output MODEL\n\n   Model file to write" in page
    assert "   $ unkernel train poly" in page
    assert ":doc:`poly <train-poly>`" in (tmp_path / "train.rst").read_text(encoding="utf-8")


def test_notes_of_options_become_sentences() -> None:
    wording = tool("command_pages", "docs/_ext").wording
    assert wording("default: (all cores); 1<=x<=1024") == "Default: all cores. Between 1 and 1024."
    assert wording("default: (10; 3 of a parser); x>=0") == "Default: 10; 3 of a parser. At least 0."
    assert wording("default: (required)") == wording("required") == "Required."


check_names = tool("check_names")
HEIGHT = {"models": 0, "engines": 1, "cutplane": 2, "cli": 3}


def check_file_names(folder: Path, file: str, text: str) -> list[str]:
    """Return the faults that check_names finds in a file, where a room defines ``RankSVM``."""
    for path, content in (("cutplane/__init__.py", '__all__ = ["RankSVM", "rank"]\n'), (file, text)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    return [line.removeprefix(f"{folder / file}:") for line in check_names.check(folder, HEIGHT)]


@pytest.mark.slow
def test_the_package_passes_the_check_of_names() -> None:
    assert check_names.main([]) == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('x = 1\nif learner == "RankSVM":\n    x = 2\n', "2: names RankSVM of cutplane"),
        ('raise ValueError(f"fit a RankSVM, not {x}")\n', "1: names RankSVM of cutplane"),
        (
            'message = "run unkernel predict"\n',
            "1: names a command; say what to do in Python, or nothing",
        ),
    ],
)
def test_a_string_that_names_a_room_above_is_found(tmp_path: Path, text: str, problem: str) -> None:
    assert check_file_names(tmp_path, "engines/classifier.py", text) == [problem]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("engines/classifier.py", '"""Also for a RankSVM."""\n\ndef f():\n    """As RankSVM does."""\n'),
        ("engines/classifier.py", 'word = "rank"\n'),
        ("engines/classifier.py", 'old = "RankSVM"  # names: what an old file says\n'),
        ("cutplane/rank.py", 'name = "RankSVM"\n'),
        ("cli/train.py", 'text = "unkernel predict with a RankSVM"\n'),
    ],
)
def test_docstrings_and_lower_rooms_can_be_named(tmp_path: Path, file: str, text: str) -> None:
    assert check_file_names(tmp_path, file, text) == []


def test_the_page_of_pipelines_is_current() -> None:
    assert tool("pipelines_page").main(["--check"]) == 0


def test_the_page_of_platforms_is_current() -> None:
    assert tool("platforms_page").main(["--check"]) == 0


def test_the_page_of_platforms_lists_recorded_results_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tool("platforms_page")
    monkeypatch.setattr(page, "FOLDER", tmp_path)
    facts = {"target": "musl", "commit": "0123456789ab", "date": "2026-11-18", "machine": "aarch64"}
    facts |= {"compiler": "zig 1", "python": "", "compiled": ["core"], "seconds": {}}
    facts |= {"native_tests": {"passed": 3, "failed": 1}, "python_tests": None}
    facts |= {"verdict": "failed", "reason": "ctest ended with 8"}
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "page.txt").write_text("@results@", encoding="utf-8")
    (tmp_path / "platforms" / "musl.json").write_text(json.dumps(facts), encoding="utf-8")
    text = page.page()
    assert "| zig 1 | 3 passed, 1 failed | not run | aarch64, 2026-11-18, commit 0123456789ab | fail" in text
    assert "No run is recorded of `suite-x86_64`, `suite-aarch64`, `clang-libcxx`, " in text
    (tmp_path / "platforms" / "moon.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="moon"):
        page.page()


def test_counts_of_test_programs_are_read() -> None:
    platforms = tool("platforms")
    message = "97% tests passed, 2 tests failed out of 57\n"
    assert platforms.read_ctest_counts(message) == {"passed": 55, "failed": 2}
    report = '<testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" time="1.0">'
    assert platforms.read_pytest_counts(report) == {"passed": 4, "failed": 3, "skipped": 3}


def test_the_tables_of_rooms_follow_the_import_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    rooms = tool("rooms_table")
    project = tmp_path / "pyproject.toml"
    contract = 'type = "layers"\ncontainers = ["house"]\nlayers = ["roof", "kitchen | _cellar"]\n'
    project.write_text(f"[[tool.importlinter.contracts]]\n{contract}", encoding="utf-8")
    for name, words in (("roof", "Keep :func:`rain` out."), ("kitchen", "Cook\n``meals``.\n\nAnd more.")):
        (tmp_path / "src" / "house" / name).mkdir(parents=True)
        (tmp_path / "src" / "house" / name / "__init__.py").write_text(f'"""{words}"""', encoding="utf-8")
    (heading, table) = rooms.python_tables(project, tmp_path / "src")
    assert heading == "In `src/house`, the lowest rooms first:"
    assert table.splitlines()[2:] == [
        "| 1 | `kitchen` | Cook `meals`. |",
        "| 2 | `roof` | Keep `rain` out. |",
    ]
    assert set(rooms.ABOUT) == {room for rooms_beside in rooms.LAYERS for room in rooms_beside}
    text = f"Before.\n\n{rooms.BEGIN}{rooms.END}\n\nAfter.\n"
    assert rooms.insert_tables(rooms.insert_tables(text)) == rooms.insert_tables(text)


check_release = tool("check_release")


def release(folder: Path, package: str, recipe: str, heading: str) -> Path:
    files = {
        "src/unkernel/_version.py": f'__version__ = "{package}"\n',
        "packaging/conda/recipe.yaml": f'context:\n  version: "{recipe}"\n',
        "CHANGELOG.md": f"# Changes\n\n## {heading}\n\n- One.\n",
    }
    for place, text in files.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("package", "recipe", "heading", "files"),
    [
        ("1.2.3", "1.2.3", "[1.2.3] - 2026-12-01", []),
        ("1.2.2", "1.2.3", "[1.2.3] - 2026-12-01", ["src/unkernel/_version.py"]),
        ("1.2.3", "1.2.2", "[1.2.3] - 2026-12-01", ["packaging/conda/recipe.yaml"]),
        ("1.2.3", "1.2.3", "[1.2.3] - unreleased", ["CHANGELOG.md"]),
        ("1.2.3", "1.2.3", "[1.2] - 2026-12-01", ["CHANGELOG.md"]),
    ],
)
def test_a_release_has_one_version(
    tmp_path: Path, package: str, recipe: str, heading: str, files: list[str]
) -> None:
    messages = check_release.problems("v1.2.3", release(tmp_path, package, recipe, heading))
    assert [line.split()[0] for line in messages] == files


@pytest.mark.parametrize("arguments", [[], ["1.2.3"], ["v1.2"], ["v1.2.3", "v1.2.4"]])
def test_a_release_is_a_tag(arguments: list[str]) -> None:
    assert check_release.main(arguments) == 2


# --- Docstrings -----------------------------------------------------------------------------------------


def make_documented_function(summary: str, *sections: str) -> Callable[[int], int]:
    def double(number: int) -> int:
        return 2 * number

    double.__qualname__ = double.__name__ = "double"
    double.__doc__ = "\n\n".join([summary, *sections]) + "\n"
    return double


PARAMETERS = "Parameters\n----------\nnumber : int\n    A number."
RETURNS = "Returns\n-------\nint\n    Twice the number."
SEE_ALSO = "See Also\n--------\nabs : Another function."
EXAMPLES = "Examples\n--------\n>>> double(2)\n4"


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        (make_documented_function("Double a number.", PARAMETERS, RETURNS, SEE_ALSO, EXAMPLES), []),
        (make_documented_function("Double a number.", RETURNS, SEE_ALSO, EXAMPLES), ["PR01"]),
        (make_documented_function("Double a number.", PARAMETERS, SEE_ALSO, EXAMPLES), ["RT01"]),
        (make_documented_function("Double a number.", PARAMETERS, RETURNS), ["EX01", "SA01"]),
        (make_documented_function("Doubles a number.", PARAMETERS, RETURNS, SEE_ALSO, EXAMPLES), ["SS05"]),
        (
            make_documented_function(
                "Double it.", PARAMETERS.replace("r : int", "r"), RETURNS, SEE_ALSO, EXAMPLES
            ),
            ["PR04"],
        ),
    ],
)
def test_docstrings_that_lack_something(value: Callable[[int], int], codes: list[str]) -> None:
    pytest.importorskip("numpydoc")
    check = tool("check_docstrings")
    messages = check.problems(f"{value.__module__}.double", value, check.wanted_checks())
    assert sorted(line.split()[1] for line in messages) == codes


def test_only_members_defined_in_the_package_are_checked() -> None:
    pytest.importorskip("numpydoc")
    check = tool("check_docstrings")
    names = [where.rpartition(".")[2] for where, _ in check.members(PolySVC)]
    assert {"fit", "predict", "path", "save", "coef_"} <= set(names)
    assert not {"get_params", "set_fit_request", "_train"} & set(names)


# --- Fuzzing of model files ---------------------------------------------------------------------------------


def hang() -> None:
    while True:
        pass


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def take_memory() -> None:
    assert bytes(b"x" * (90 << 20))[-1] == ord("x")


def raise_error() -> None:
    raise KeyError("of no kind that a file may raise")


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (hang, "took more than 0.2 s of the processor's time"),
        (die, "ended the process: SIGKILL"),
        (take_memory, "bytes, and the file has"),
        (raise_error, "KeyError"),
    ],
)
def test_inputs_that_do_harm_are_found_and_kept(
    harm: Callable[[], None], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuzz_models = tool("fuzz_models")
    monkeypatch.setattr(fuzz_models, "ROOT", tmp_path)
    monkeypatch.setattr(fuzz_models, "FAILURES", tmp_path)
    monkeypatch.setattr(fuzz_models, "MAX_SECONDS", 0.2)
    run = fuzz_models.Trial.run

    def run_or_harm(self: Any, number: int, tally: Any) -> None:
        run(self, number, tally)
        if number == 3:
            harm()

    monkeypatch.setattr(fuzz_models.Trial, "run", run_or_harm)
    campaign = fuzz_models.Campaign(make_family("clusters"), seed=1, runs=8, log=None)
    campaign.run_kind(make_family("clusters")[0], range(8))
    count = campaign.counts["word clusters"]
    assert count.runs == 8 and len(count.failures) == 1 and words in count.failures[0]
    assert (tmp_path / "word-clusters-1-3.uk").read_bytes()
