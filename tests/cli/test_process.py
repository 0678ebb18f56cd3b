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
from reference.terminal import interrupted_at
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

    Commands run one after another in a process, so imports of one count for the next as well.
    """
    code = """if True:
        import sys
        from unkernel.cli import main
        for arguments, unwanted in {!r}:
            main(arguments)
            print(arguments, *sorted(unwanted & set(sys.modules)), file=sys.stderr)
    """
    slow = {"numpy", "sklearn", "scipy", "unkernel._core"}
    for commands in (
        [
            (["--version"], slow | {"typer", "rich"}),
            (["--help"], slow),
            (["train", "--help"], slow),
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
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr.splitlines() == [str(arguments) for arguments, _ in commands]


def test_the_installed_command():
    script = Path(sys.executable).with_name("unkernel")
    if not script.exists():
        pytest.skip("installed without its scripts")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"unkernel {__version__}\n"


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
        if line.startswith(("training: ", "expanding: ")):  # the solver reports
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert out == ""
    message = [line for line in err.splitlines() if line and not line.startswith(("training", "expanding"))]
    assert message == [f"unkernel: {words}"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.svm"]


def test_a_terminal_sees_a_bar_and_an_interrupt_ends_it(endless_training, tmp_path):
    code, seen = interrupted_at("epoch", endless_training)
    assert code == 130
    assert "━" in seen
    assert seen.rstrip().endswith("unkernel: interrupted")
    assert "\x1b[?25h" in seen  # the cursor is back
    assert not (tmp_path / "m.uk").exists()


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_tuning_is_interrupted_in_the_middle_of_its_fits(endless_training, tmp_path, jobs):
    command = [{"train": "tune", "1000": "1000,2000"}.get(word, word) for word in endless_training]
    code, seen = interrupted_at("tuning", [*command, "--cv", "5", "-j", jobs])
    assert code == 130
    assert seen.rstrip().endswith("unkernel: interrupted")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.svm"]


def predictions_and_a_table(model_file: Path, test_file: Path) -> list[list[object]]:
    """Return one command that writes bytes to stdout, and one that prints through Rich."""
    return [["predict", model_file, test_file, "-o", "-", "-q"], ["inspect", model_file]]


def test_output_into_a_closed_pipe_ends_quietly(model_file, test_file):
    for arguments in predictions_and_a_table(model_file, test_file):
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = call(*arguments, stdout=write_end)
        os.close(write_end)
        assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
def test_stdout_on_a_full_device(model_file, test_file):
    for arguments in predictions_and_a_table(model_file, test_file):
        with Path("/dev/full").open("w") as full:
            done = call(*arguments, stdout=full)
        assert done.returncode == 2
        assert done.stderr == "unkernel: error: No space left on device\n"


def little_room() -> None:
    """Limit the size of files, in place of a nearly full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def test_stdout_on_a_disk_that_is_full_half_way(model_file, test_file, tmp_path):
    """Unbuffered output of Python does not check how many bytes were written."""
    for buffers in ({}, {"PYTHONUNBUFFERED": "1"}):
        with (tmp_path / "predictions").open("w") as place:
            done = call(
                *("predict", model_file, test_file, "--output", "-", "--quiet"),
                stdout=place,
                preexec_fn=little_room,
                env=os.environ | {"PYTHONUNBUFFERED": ""} | buffers,
            )
        assert (done.returncode, done.stderr) == (2, "unkernel: error: File too large\n")


def test_a_disk_that_is_full_half_way(model_file, train_file, test_file, golden, tmp_path):
    before = set(tmp_path.iterdir())
    for arguments in (
        ["train", "poly", train_file, "-o", tmp_path / "m2.uk"],
        ["predict", model_file, test_file, "-o", tmp_path / "p"],
        ["compile", golden / "libsvm-poly2.model", "-o", tmp_path / "m3.uk"],
    ):
        done = call(*arguments, preexec_fn=little_room)
        assert done.returncode == 2, done.stderr
        (line,) = done.stderr.splitlines()
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
        done = call(*arguments, input=text)
        assert (done.returncode, done.stderr) == (0, "")
        assert "read from LIBSVM" in done.stdout
    assert (tmp_path / "m.uk").exists()


def test_a_terminal_narrower_than_the_table_of_candidates(golden, tmp_path):
    command = [*COMMAND, "compile", str(golden / "libsvm-poly2.model"), "-o", str(tmp_path / "m.uk")]
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", COLUMNS="70")
        os.execv(command[0], command)
    seen = ""
    while True:
        try:
            seen += os.read(terminal, 65536).decode(errors="replace")
        except OSError:  # Linux reports this way that the other side has closed
            break
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    for words in ("compiling", "bitsliced", "µs/row", "←"):
        assert words in seen
