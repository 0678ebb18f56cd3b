"""No command replaces a user's file: every command, every order of files, every name of an output.

The commands, their files and their outputs are read from the command line itself.
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

# The meaning of all options of commands; a new option must be added here.
OUTPUTS = {"output", "plot", "svg", "checkpoint", "cache"}
PICTURES = {"plot", "svg"}  # their names end in .svg
FOLDERS = {"svg", "checkpoint"}  # may be a folder
INPUTS = {
    "test", "dev", "sample", "trie", "schema", "templates", "clusters", "features", "public_key",
    "token_file", "train",
}  # fmt: skip
NEITHER = {
    "C", "beam", "by", "cache_rows", "calibrate", "class_weight", "coef0", "combine", "costs", "cv", "dask",
    "decay", "degree", "direction", "drain", "draw", "drop", "duration", "engine", "epochs", "epsilon",
    "exploration", "feature_map", "folds", "force", "format", "gamma", "given", "host", "imbalance",
    "intercept", "intercept_scaling", "jobs", "json", "k", "kernel", "l1_ratio", "labels", "learner",
    "log_requests",
    "loss", "max_batch", "max_body", "max_connections", "max_cuts", "max_iter", "max_requests",
    "max_seconds", "measure", "memory", "min_count", "min_updates", "mistakes", "n_bins", "n_features",
    "ndcg_at", "no_records", "normalize",
    "normalize_vectors", "objective", "of", "on_error", "out_of_core", "pair_weight", "penalty", "port",
    "probability", "quantile", "quiet", "rare", "row", "runs", "sample_size", "scheme", "scores", "seed",
    "solver", "split", "storage", "target", "threshold", "thresholds", "title", "tol", "top", "tree_pairing",
    "tree_weight", "trie_nodes", "unknown_keys", "vector_kernel", "verbose", "watch", "width_decay",
    "workers", "zero_based",
}  # fmt: skip


REASONS = (
    "is also an input",
    "is one of the sources",
    "--checkpoint must name a folder, and this is a file",
    "is for rows in the svmlight format",
)


def commands(words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all commands and their parameters."""
    command: Any = typer.main.get_command(build(words))
    for word in words:
        command = command.commands[word]
    if not hasattr(command, "commands"):
        yield words, command.params
        return
    for name in command.commands:
        yield from commands((*words, name))


COMMANDS = dict(commands())


def options(words: tuple[str, ...], among: set[str]) -> list[Any]:
    return [p for p in COMMANDS[words] if p.param_type_name == "option" and p.name in among]


def test_every_option_is_known():
    names = {p.name for params in COMMANDS.values() for p in params if p.param_type_name == "option"}
    assert names == OUTPUTS | INPUTS | NEITHER
    assert len(COMMANDS) >= 24


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, bytes]:
    """Return data and a model of each kind."""
    folder = tmp_path_factory.mktemp("made")
    for kind, text in DATA.items():
        (folder / f"{kind}.data").write_text(text)
        assert (
            main(["train", kind, str(folder / f"{kind}.data"), "-o", str(folder / f"{kind}.uk"), "-q"]) == 0
        )
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def files(made, tmp_path, monkeypatch) -> Path:
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def inputs_of(words: tuple[str, ...]) -> list[str]:
    """Return the files that a command takes, in order."""
    kind = words[-1] if words[-1] in DATA else "parser" if words == ("parse",) else "poly"
    if words[0] in ("train", "tune"):
        return [f"{kind}.data"]
    alone = words[0] in ("compile", "inspect", "verify", "report")
    return [f"{kind}.uk"] if alone else [f"{kind}.uk", f"{kind}.data"]


def content_of(option: Any, words: tuple[str, ...], data: Path) -> bytes:
    """Return the content of a file that an option reads."""
    if option.name == "schema":
        return b'{"age": "number"}'
    if option.name != "templates":
        return data.read_bytes()
    if words[-1] == "bunsetsu":
        return b"modifier.last.surface\ncandidate.end\n"
    names = {"parser": "arc_eager.txt", "text": "arc_eager.txt", "chunker": "chunk.txt"}
    return resources.files("unkernel.parsing").joinpath("templates", names[words[-1]]).read_bytes()


def required_options(words: tuple[str, ...], output: Any, given: str = "") -> list[str]:
    """Return options that an output requires and that are not given."""
    if words[0] == "report" and given != "test":
        return ["--test", "poly.data"]
    model = ["-o", "new.uk"] if words[0] in ("train", "compile") and output.name != "output" else []
    return [*model, "--out-of-core"] if output.name == "cache" else model


def spellings(name: str, suffix: str) -> list[str]:
    """Return other names of a file."""
    links = {"soft": os.symlink, "hard": os.link}
    for kind, link in links.items():
        if not Path(f"{kind}-{name}{suffix}").exists():
            link(name, f"{kind}-{name}{suffix}")
    linked = [f"{kind}-{name}{suffix}" for kind in links]
    plain = [] if suffix else [name, f"./{name}", f"folder/../{name}", str(Path(name).resolve())]
    return plain + linked


def cases(among: set[str]) -> list[Any]:
    return [
        pytest.param(words, option, id=" ".join([*words, option.opts[0]]))
        for words in COMMANDS
        for option in options(words, among)
    ]


@pytest.mark.parametrize(("words", "option"), cases(OUTPUTS))
def test_outputs_that_are_inputs_are_refused(files, capfd, words, option):
    """The arguments can have any order, the file any spelling, and --force does not help."""
    inputs = inputs_of(words)
    suffix = ".svg" if option.name in PICTURES else ""
    others = required_options(words, option)
    forces = [[], ["--force"]] if options(words, {"force"}) else [[]]
    names = [name for given in inputs for name in spellings(given, suffix)]
    before = contents(files)
    for name, force in itertools.product(names, forces):
        blocks = [*([given] for given in inputs), [option.opts[0], name]]
        orders = [*itertools.permutations(blocks)]
        for order in orders if name in inputs else orders[:1]:
            capfd.readouterr()
            code = main([*words, *itertools.chain(*order), *others, *force, "-q"])
            out, err = capfd.readouterr()
            assert (code, out) == (2, ""), (order, err)
            assert contents(files) == before, order
            if order == tuple(blocks):
                assert any(reason in err for reason in REASONS), (order, err)


@pytest.mark.parametrize(("words", "option"), cases(INPUTS))
def test_outputs_that_an_option_reads_are_refused(files, capfd, words, option):
    """The same as the previous test, for inputs given by options."""
    inputs = inputs_of(words)
    files.joinpath("other").write_bytes(content_of(option, words, files.joinpath(inputs[-1])))
    if option.name == "schema":
        files.joinpath("people.csv").write_text("age,rich\n3,yes\n4,no\n" * 20)
        inputs = ["people.csv", "--target", "rich"]
    for output in options(words, OUTPUTS):
        suffix = ".svg" if output.name in PICTURES else ""
        names = spellings("other", suffix)
        kept = contents(files)
        others = required_options(words, output, option.name)
        for name in names:
            message = [
                *words,
                *inputs,
                option.opts[0],
                "other",
                output.opts[0],
                name,
                *others,
                "--force",
                "-q",
            ]
            capfd.readouterr()
            assert main(message) == 2, message
            assert contents(files) == kept, message
            err = capfd.readouterr().err
            assert any(reason in err for reason in REASONS), (message, err)


@pytest.mark.parametrize(("words", "option"), cases(OUTPUTS))
def test_outputs_that_cannot_be_written(files, capfd, words, option):
    inputs = inputs_of(words)
    suffix = ".svg" if option.name in PICTURES else ".uk"
    others = required_options(words, option)
    before = contents(files)
    places = [f"missing/new{suffix}"] if option.name != "checkpoint" else []
    for place in [*places, *([] if option.name in FOLDERS else ["folder"])]:
        assert main([*words, *inputs, option.opts[0], place, *others, "-q"]) == 2, place
        assert contents(files) == before
        (line,) = capfd.readouterr().err.splitlines()
        assert place.split("/")[0] in line


@pytest.mark.parametrize("words", [words for words in COMMANDS if words != ("serve",)], ids=" ".join)
def test_no_order_of_files_changes_any_of_them(files, capfd, words):
    """Commands that succeed and commands that fail leave their inputs unchanged. (A server does not end.)"""
    before = contents(files)
    inputs = inputs_of(words)
    codes = []
    for order in [*itertools.permutations(inputs), *itertools.permutations([*inputs, "rank.data"])]:
        target = ["-o", "new.out"] if options(words, {"output"}) else []
        quick = ["--cv", "2"] if words[0] == "tune" else []
        quick += ["--degree", "2", "--C", "1"] if words[0] == "tune" and words[1] in "poly logistic" else []
        quick += ["--seconds", "0.01"] if words == ("bench",) else []
        quick += ["--test", "poly.data", "--mistakes", "0"] if words == ("report",) else []
        for arguments in ([*target, *order], [*order, *target], list(order)):
            codes.append(main([*words, *arguments, *quick]))
            left = contents(files)
            left.pop("new.out", None)
            assert left == before, arguments
            Path("new.out").unlink(missing_ok=True)
    assert set(codes) <= {0, 1 if words == ("verify",) else 2}
    assert codes[0] == 0
