"""Commands in their own process: exit codes, signals, pipes, full disks, terminals."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reference.patience import PATIENCE
from reference.terminal import run_until_interrupted
from unkernel import __version__, write_svmlight

pytestmark = pytest.mark.hostile

COMMAND = [sys.executable, "-m", "unkernel"]


def call(*arguments: object, **settings) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(command, text=True, timeout=PATIENCE, check=False, **{**streams, **settings})


@pytest.fixture
def endless_training(tmp_path) -> list[str]:
    """Return arguments of a training with random labels and an unreachable gap."""
    generator = np.random.default_rng(0)
    write_svmlight(tmp_path / "rows.svm", generator.random((3000, 60)), generator.integers(0, 2, 3000))
    options = ["--tol", "1e-15", "--max-iter", "1000000", "--C", "1000"]
    return [*COMMAND, "train", "poly", str(tmp_path / "rows.svm"), "-o", str(tmp_path / "m.uk"), *options]


def test_commands_import_only_the_libraries_that_they_need():
    """``--version`` imports neither Typer nor NumPy, and no command imports the estimator of another.

    Commands run one after another in a process, so each command counts the imports of earlier ones, too.
    """
    code = """if True:
        import sys
        from unkernel.cli import main
        for arguments, forbidden in {!r}:
            main(arguments)
            print(arguments, *sorted(forbidden & set(sys.modules)), file=sys.stderr)
    """
    heavy = {"numpy", "sklearn", "scipy", "unkernel._core"}
    for commands in (
        [
            (["--version"], heavy | {"typer", "rich"}),
            (["--help"], heavy),
            (["train", "--help"], heavy),
            (["predict", "--help"], {"sklearn", "scipy", "unkernel.parsing", "matplotlib"}),
            (["parse", "--help"], {"sklearn", "scipy", "unkernel.poly", "matplotlib"}),
        ],
        [
            (
                ["train", "poly", "--help"],
                {"unkernel.tree", "unkernel.cutplane", "unkernel.parsing", "matplotlib"},
            )
        ],
    ):
        command = [sys.executable, "-c", code.format(commands)]
        result_ = subprocess.run(command, capture_output=True, text=True, check=True)
        assert result_.stderr.splitlines() == [str(arguments) for arguments, _ in commands]


def test_the_installed_command():
    script = Path(sys.executable).with_name("unkernel")
    if not script.exists():
        pytest.skip("installed without its scripts")
    result_ = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert result_.stdout == f"unkernel {__version__}\n"


def test_an_error_is_one_plain_line_however_narrow_the_screen(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    missing = tmp_path / ("x" * 200)
    result = run("inspect", missing)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"unkernel: error: {missing}: No such file or directory\n"


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")],
)
def test_a_signal_during_training_leaves_no_files(endless_training, tmp_path, number, code, words):
    process = subprocess.Popen(
        [*endless_training, "-v"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        if line.startswith(("training: ", "expanding: ")):  # the solver is running
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert out == ""
    message = [line for line in err.splitlines() if line and not line.startswith(("training", "expanding"))]
    assert message == [f"unkernel: {words}"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.svm"]


def test_a_terminal_sees_a_bar_and_an_interrupt_ends_it(endless_training, tmp_path):
    code, output = run_until_interrupted("epoch", endless_training)
    assert code == 130
    assert "━" in output
    assert output.rstrip().endswith("unkernel: interrupted")
    assert "\x1b[?25h" in output  # the cursor is visible again
    assert not (tmp_path / "m.uk").exists()


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_tuning_is_interrupted_in_the_middle_of_its_fits(endless_training, tmp_path, jobs):
    command = [{"train": "tune", "1000": "1000,2000"}.get(word, word) for word in endless_training]
    code, output = run_until_interrupted("tuning", [*command, "--cv", "5", "-j", jobs])
    assert code == 130
    assert output.rstrip().endswith("unkernel: interrupted")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.svm"]


def list_printing_commands(model_file: Path, test_file: Path) -> list[list[object]]:
    """Return a command that writes bytes to stdout, and a command that prints with Rich."""
    return [["predict", model_file, test_file, "-o", "-", "-q"], ["inspect", model_file]]


def test_output_into_a_closed_pipe_ends_quietly(model_file, test_file):
    for arguments in list_printing_commands(model_file, test_file):
        read_end, write_end = os.pipe()
        os.close(read_end)
        result_ = call(*arguments, stdout=write_end)
        os.close(write_end)
        assert (result_.returncode, result_.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
def test_stdout_on_a_full_device(model_file, test_file):
    for arguments in list_printing_commands(model_file, test_file):
        with Path("/dev/full").open("w") as full:
            result_ = call(*arguments, stdout=full)
        assert result_.returncode == 2
        assert result_.stderr == "unkernel: error: No space left on device\n"


def limit_file_size() -> None:
    """Limit the size of files to 100 bytes, which simulates a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def test_stdout_on_a_disk_that_is_full_half_way(model_file, test_file, tmp_path):
    """Incomplete writes must also be detected if Python's output is unbuffered."""
    for buffers in ({}, {"PYTHONUNBUFFERED": "1"}):
        with (tmp_path / "predictions").open("w") as file:
            result_ = call(
                *("predict", model_file, test_file, "--output", "-", "--quiet"),
                stdout=file,
                preexec_fn=limit_file_size,
                env=os.environ | {"PYTHONUNBUFFERED": ""} | buffers,
            )
        assert (result_.returncode, result_.stderr) == (2, "unkernel: error: File too large\n")


def test_a_disk_that_is_full_half_way(model_file, train_file, test_file, golden, tmp_path):
    before = set(tmp_path.iterdir())
    for arguments in (
        ["train", "poly", train_file, "-o", tmp_path / "m2.uk"],
        ["predict", model_file, test_file, "-o", tmp_path / "p"],
        ["compile", golden / "libsvm-poly2.model", "-o", tmp_path / "m3.uk"],
    ):
        result_ = call(*arguments, preexec_fn=limit_file_size)
        assert result_.returncode == 2, result_.stderr
        (line,) = result_.stderr.splitlines()
        assert line.startswith("unkernel: error: ")
        assert f"{arguments[-1]}: " in line
        assert "too large" in line
        assert set(tmp_path.iterdir()) == before


def test_stdin(run, stdin, train_file, test_file, tmp_path):
    stdin(train_file.read_bytes())
    assert run("train", "poly", "-", "-o", tmp_path / "m.uk", "-q").code == 0
    stdin(test_file.read_bytes())
    result = run("predict", tmp_path / "m.uk", "-", "--output", "-", "--quiet")
    assert len(result.out.splitlines()) == 200


def test_a_model_from_a_pipe(golden, tmp_path):
    """``unkernel compile <(zcat model.gz) -o model.uk``: the file can be read only once."""
    text = (golden / "libsvm-poly2.model").read_text()
    for arguments in (["compile", "/dev/stdin", "-o", tmp_path / "m.uk"], ["inspect", "/dev/stdin"]):
        result_ = call(*arguments, input=text)
        assert (result_.returncode, result_.stderr) == (0, "")
        assert "read from LIBSVM" in result_.stdout
    assert (tmp_path / "m.uk").exists()


def test_a_terminal_narrower_than_the_table_of_candidates(golden, tmp_path):
    command = [*COMMAND, "compile", str(golden / "libsvm-poly2.model"), "-o", str(tmp_path / "m.uk")]
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", COLUMNS="70")
        os.execv(command[0], command)
    output = ""
    while True:
        try:
            output += os.read(terminal, 65536).decode(errors="replace")
        except OSError:  # raised on Linux when the process has closed the terminal
            break
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    for words in ("compiling", "bitsliced", "µs/row", "←"):
        assert words in output
