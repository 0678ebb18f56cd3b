"""Ctrl-C and SIGTERM at chosen moments: one line of output, an exit code, and no files left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import unkernel
from reference.patience import PATIENCE
from reference.processes import run_python
from unkernel.cli import main
from unkernel.cli.signals import Terminated, terminable

pytestmark = pytest.mark.hostile

# A program that runs a command, and sends itself a signal when a module is imported.
AT_IMPORT = """
import signal, sys

class Watcher:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            signal.raise_signal(getattr(signal, sys.argv[2]))

sys.meta_path.insert(0, Watcher())
from unkernel.cli import main
sys.exit(main(sys.argv[3:]))
"""

# The module `sitecustomize`, which Python imports before the first line of a command.
AT_FIRST_IMPORTS = """
import os, signal, sys

class Watcher:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_IMPORT"]:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Watcher())
"""

# A program that runs a command, and sends itself a signal while a model is written.
AT_WRITING = """
import contextlib, signal, sys
from unkernel.data import atomic_write
from unkernel.models import container
atomic_write._open_nameless = lambda folder: None
plain = container.replace_file

@contextlib.contextmanager
def replaced(path):
    with plain(path) as file:
        yield file
        file.flush()
        signal.raise_signal(getattr(signal, sys.argv[1]))

container.replace_file = replaced
from unkernel.cli import main
sys.exit(main(sys.argv[2:]))
"""

ENDINGS = [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "ended by SIGTERM")]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "module",
    ["unkernel.cli.app", "typer", "unkernel.cli.commands.train", "numpy", "unkernel._core", "sklearn.base"],
)
def test_a_signal_at_start_is_one_line(tmp_path, train_file, module, ending):
    number, code, words = ending
    completed = run_python(AT_IMPORT, module, number, "train", "poly", train_file, "-o", tmp_path / "m.uk")
    assert (completed.returncode, completed.stdout, completed.stderr) == (code, "", f"unkernel: {words}\n")
    assert not (tmp_path / "m.uk").exists()


@pytest.mark.parametrize("module", ["unkernel._lazy", "unkernel._loading", "unkernel.cli.signals"])
@pytest.mark.parametrize("start", ["script", "module"])
def test_an_interrupt_before_the_command_runs_is_one_line(tmp_path, module, start):
    """The signal arrives while Python imports the package, before the command is called."""
    (tmp_path / "sitecustomize.py").write_text(AT_FIRST_IMPORTS)
    script = tmp_path / "unkernel"
    script.write_text("import sys\nfrom unkernel.cli import main\nsys.exit(main())\n")
    folders = f"{tmp_path}{os.pathsep}{Path(unkernel.__file__).parents[1]}"
    completed = subprocess.run(
        [sys.executable, *(["-m", "unkernel"] if start == "module" else [script]), "predict", "--help"],
        env=os.environ | {"PYTHONPATH": folders, "INTERRUPTED_IMPORT": module},
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert (completed.returncode, completed.stdout, completed.stderr) == (130, "", "unkernel: interrupted\n")


def test_programs_keep_their_tracebacks():
    completed = run_python("import unkernel; raise KeyboardInterrupt")
    assert "Traceback" in completed.stderr


@pytest.mark.parametrize(("number", "code", "words"), [*ENDINGS, ("SIGHUP", 129, "ended by SIGHUP")])
def test_a_signal_while_a_model_is_written(tmp_path, train_file, number, code, words):
    # The tests may run under nohup themselves.
    program = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n" + AT_WRITING
    completed = run_python(program, number, "train", "poly", train_file, "-o", tmp_path / "m.uk", "-q")
    assert (completed.returncode, completed.stderr) == (code, f"unkernel: {words}\n")
    assert list(tmp_path.iterdir()) == [train_file]


def test_ignored_signals_stay_ignored(tmp_path, train_file):
    """``nohup`` starts programs with SIGHUP ignored."""
    program = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + AT_WRITING
    completed = run_python(program, "SIGHUP", "train", "poly", train_file, "-o", tmp_path / "m.uk", "-q")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert (tmp_path / "m.uk").exists()


def test_handlers_are_put_back():
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Terminated), terminable():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is handler
    assert main(["--version"]) == 0
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["--help"])))  # cannot install handlers
    thread.start()
    thread.join()
    assert codes == [0]
