"""No command replaces a user's file, for every command, order of files and name of an output.

The list of commands and options comes from the command-line interface.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import typer

from reference.command_data import DATA
from unkernel.cli import main
from unkernel.cli.app import build

pytestmark = pytest.mark.hostile

# All options of commands by their use of files; a new option must be added here.
OUTPUTS = {"output", "plot", "svg", "checkpoint", "cache"}
PICTURES = {"plot", "svg"}  # their names end in .svg
FOLDERS = {"svg", "checkpoint"}  # may be a folder
INPUTS = {
    "test", "dev", "sample", "trie", "schema", "templates", "clusters", "features", "public_key",
    "token_file", "train", "data",
}  # fmt: skip
NO_FILES = {
    "C", "beam", "by", "cache_rows", "calibrate", "class_weight", "coef0", "combine", "costs", "cv", "dask",
    "decay", "decision_threshold", "degree", "direction", "drain", "draw", "drop", "duration", "engine",
    "epochs", "epsilon", "exploration", "feature_map", "folds", "force", "forget", "format",
    "gamma", "given", "host",
    "imbalance",
    "intercept", "intercept_scaling", "jobs", "json", "k", "kernel", "l1_ratio", "labels", "learner",
    "log_requests",
    "loss", "max_batch", "max_body", "max_connections", "max_cuts", "max_iter", "max_requests",
    "max_seconds", "measure", "memory", "min_count", "min_updates", "minutes", "mistakes", "n_bins",
    "n_features", "ndcg_at", "no_records", "normalize",
    "normalize_vectors", "objective", "of", "on_error", "out_of_core", "pair_weight", "penalty", "port",
    "probability", "quantile", "quiet", "rare", "row", "runs", "sample_size", "scheme", "scores", "seed",
    "solver", "split", "storage", "target", "task", "threshold", "thresholds", "title", "tol", "top",
    "tree_pairing", "tree_weight", "trie_nodes", "unknown_keys", "updatable", "vector_kernel",
    "verbose", "watch",
    "width_decay", "workers", "zero_based",
}  # fmt: skip


REASONS = (
    "is also an input",
    "is one of the sources",
    "--checkpoint must name a folder, and this is a file",
    "is for rows in the svmlight format",
)


def list_commands(words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all commands and their parameters."""
    command: Any = typer.main.get_command(build(words))
    for word in words:
        command = command.commands[word]
    if not hasattr(command, "commands"):
        yield words, command.params
        return
    for name in command.commands:
        yield from list_commands((*words, name))


COMMANDS = dict(list_commands())


def find_options(words: tuple[str, ...], option_set: set[str]) -> list[Any]:
    return [p for p in COMMANDS[words] if p.param_type_name == "option" and p.name in option_set]


def test_every_option_is_known():
    option_names = {p.name for params in COMMANDS.values() for p in params if p.param_type_name == "option"}
    assert option_names == OUTPUTS | INPUTS | NO_FILES
    assert len(COMMANDS) >= 24


@pytest.fixture(scope="module")
def shared_files(tmp_path_factory) -> dict[str, bytes]:
    """Return data and a model of each kind."""
    folder = tmp_path_factory.mktemp("made")
    for kind, text in DATA.items():
        (folder / f"{kind}.data").write_text(text)
        assert (
            main(["train", kind, str(folder / f"{kind}.data"), "-o", str(folder / f"{kind}.uk"), "-q"]) == 0
        )
    people = folder / "people.data"
    people.write_text("age,rich\n3,yes\n4,no\n" * 20)
    assert main(["train", str(people), "--target", "rich", "-o", str(folder / "people.uk"), "-q"]) == 0
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def files(shared_files, tmp_path, monkeypatch) -> Path:
    for name, content in shared_files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def list_inputs(words: tuple[str, ...]) -> list[str]:
    """Return the file arguments of a command, in their order."""
    kind = words[-1] if words[-1] in DATA else "parser" if words == ("parse",) else "poly"
    if words[0] in ("train", "tune"):
        return [f"{kind}.data"]
    if words == ("update",):
        return ["people.uk", "people.data"]
    needs_no_data = words[0] in ("compile", "inspect", "verify", "report")
    return [f"{kind}.uk"] if needs_no_data else [f"{kind}.uk", f"{kind}.data"]


def read_option_file(option: Any, words: tuple[str, ...], data: Path) -> bytes:
    """Return the content of a file that an option reads."""
    if option.name == "schema":
        return b'{"age": "number"}'
    if option.name != "templates":
        return data.read_bytes()
    if words[-1] == "bunsetsu":
        return b"modifier.last.surface\ncandidate.end\n"
    names = {"parser": "arc_eager.txt", "text": "arc_eager.txt", "chunker": "chunk.txt"}
    return resources.files("unkernel.parsing").joinpath("templates", names[words[-1]]).read_bytes()


def list_required_options(words: tuple[str, ...], output: Any, input_option: str = "") -> list[str]:
    """Return the other options that a command requires if it has this output."""
    if words[0] == "report" and input_option != "test":
        return ["--test", "poly.data"]
    model = ["-o", "new.uk"] if words[0] in ("train", "compile") and output.name != "output" else []
    return [*model, "--out-of-core"] if output.name == "cache" else model


def make_other_names(name: str, suffix: str) -> list[str]:
    """Return other names of a file."""
    links = {"soft": os.symlink, "hard": os.link}
    for kind, link in links.items():
        if not Path(f"{kind}-{name}{suffix}").exists():
            link(name, f"{kind}-{name}{suffix}")
    links_to_file = [f"{kind}-{name}{suffix}" for kind in links]
    paths = [] if suffix else [name, f"./{name}", f"folder/../{name}", str(Path(name).resolve())]
    return paths + links_to_file


def list_cases(option_set: set[str]) -> list[Any]:
    return [
        pytest.param(words, option, id=" ".join([*words, option.opts[0]]))
        for words in COMMANDS
        for option in find_options(words, option_set)
    ]


@pytest.mark.parametrize(("words", "option"), list_cases(OUTPUTS))
def test_outputs_that_are_inputs_are_refused(files, capfd, words, option):
    """The arguments can have any order, the file any spelling, and --force does not help."""
    inputs = list_inputs(words)
    suffix = ".svg" if option.name in PICTURES else ""
    required = list_required_options(words, option)
    forces = [[], ["--force"]] if find_options(words, {"force"}) else [[]]
    replaceable = "people.uk"  # an update may replace its model
    names = [name for input_ in inputs if input_ != replaceable for name in make_other_names(input_, suffix)]
    original_contents = contents(files)
    for name, force in itertools.product(names, forces):
        blocks = [*([input_] for input_ in inputs), [option.opts[0], name]]
        orders = [*itertools.permutations(blocks)]
        for order in orders if name in inputs else orders[:1]:
            capfd.readouterr()
            code = main([*words, *itertools.chain(*order), *required, *force, "-q"])
            out, err = capfd.readouterr()
            assert (code, out) == (2, ""), (order, err)
            assert contents(files) == original_contents, order
            if order == tuple(blocks):
                assert any(reason in err for reason in REASONS), (order, err)


@pytest.mark.parametrize(("words", "option"), list_cases(INPUTS))
def test_outputs_that_an_option_reads_are_refused(files, capfd, words, option):
    """An output may not be a file that another option reads."""
    inputs = list_inputs(words)
    files.joinpath("other").write_bytes(read_option_file(option, words, files.joinpath(inputs[-1])))
    if option.name == "schema":
        files.joinpath("people.csv").write_text("age,rich\n3,yes\n4,no\n" * 20)
        inputs = ["people.csv", "--target", "rich"]
    for output in find_options(words, OUTPUTS):
        suffix = ".svg" if output.name in PICTURES else ""
        names = make_other_names("other", suffix)
        original_contents = contents(files)
        required = list_required_options(words, output, option.name)
        for name in names:
            command = [
                *words,
                *inputs,
                option.opts[0],
                "other",
                output.opts[0],
                name,
                *required,
                "--force",
                "-q",
            ]
            capfd.readouterr()
            assert main(command) == 2, command
            assert contents(files) == original_contents, command
            err = capfd.readouterr().err
            assert any(reason in err for reason in REASONS), (command, err)


@pytest.mark.parametrize(("words", "option"), list_cases(OUTPUTS))
def test_outputs_that_cannot_be_written(files, capfd, words, option):
    inputs = list_inputs(words)
    suffix = ".svg" if option.name in PICTURES else ".uk"
    required = list_required_options(words, option)
    original_contents = contents(files)
    outputs = [f"missing/new{suffix}"] if option.name != "checkpoint" else []
    for output_ in [*outputs, *([] if option.name in FOLDERS else ["folder"])]:
        assert main([*words, *inputs, option.opts[0], output_, *required, "-q"]) == 2, output_
        assert contents(files) == original_contents
        (line,) = capfd.readouterr().err.splitlines()
        assert output_.split("/")[0] in line


@pytest.mark.parametrize("words", [words for words in COMMANDS if words != ("serve",)], ids=" ".join)
def test_no_order_of_files_changes_any_of_them(files, capfd, words):
    """All commands leave their inputs unchanged, whether they succeed or fail. (The server never ends.)"""
    inputs = list_inputs(words)
    if words == ("train", "table"):
        files.joinpath("people.csv").write_text("age,rich\n3,yes\n4,no\n" * 20)
        inputs = ["people.csv"]
    original_contents = contents(files)
    codes = []
    for order in [*itertools.permutations(inputs), *itertools.permutations([*inputs, "rank.data"])]:
        target = ["-o", "new.out"] if find_options(words, {"output"}) else []
        fast_options = ["--cv", "2"] if words[0] == "tune" else []
        fast_options += (
            ["--degree", "2", "--C", "1"] if words[0] == "tune" and words[1] in "poly logistic" else []
        )
        fast_options += ["--seconds", "0.01"] if words == ("bench",) else []
        fast_options += ["--test", "poly.data", "--mistakes", "0"] if words == ("report",) else []
        fast_options += ["--target", "rich"] if words == ("train", "table") else []
        for arguments in ([*target, *order], [*order, *target], list(order)):
            codes.append(main([*words, *arguments, *fast_options]))
            remaining = contents(files)
            remaining.pop("new.out", None)
            assert remaining == original_contents, arguments
            Path("new.out").unlink(missing_ok=True)
    assert set(codes) <= {0, 1 if words == ("verify",) else 2}
    assert codes[0] == 0
