"""Without the modules of POSIX systems, every module can be imported, and models are trained and saved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

IMPORT_ALL = """
import importlib, json, pkgutil, without_posix, unkernel
failures = {}
for module in pkgutil.walk_packages(unkernel.__path__, "unkernel."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except BaseException as error:
        failures[module.name] = f"{type(error).__name__}: {error}"
print(json.dumps(failures))
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_module_can_be_imported() -> None:
    completed = run(IMPORT_ALL)
    assert completed.returncode == 0, completed.stderr
    failures: dict[str, str] = json.loads(completed.stdout)
    assert [words for words in failures.values() if "which is not installed" not in words] == []


TRAIN_AND_SAVE = """
import sys, without_posix
from pathlib import Path
import numpy as np
import unkernel
from unkernel.cli.terminal.console import peak_memory
from unkernel.data import atomic_write

folder = Path(sys.argv[1])
X = (np.random.default_rng(1).random((60, 8)) < 0.4).astype(float)
model = unkernel.PolySVC(degree=2).fit(X, X[:, 0] * X[:, 1] > 0)
for _ in range(2):  # the second takes the place of the first
    unkernel.compile(model).save(folder / "model.uk")
fast = unkernel.load(folder / "model.uk", verify=True)
assert np.array_equal(fast.predict(X), model.predict(X))
learner = unkernel.CuttingPlaneSVC(checkpoint=folder / "checkpoint").fit(X, X[:, 0] > 0)
assert learner.score(X, X[:, 0] > 0) == 1
assert not atomic_write._HAS_LOCKS and peak_memory() is None
assert sorted(path.name for path in folder.iterdir() if path.name != "checkpoint") == ["model.uk"]
"""

SERVE = """
import sys, without_posix
from unkernel.cli import main
sys.exit(main(["serve", sys.argv[1]]))
"""


PREDICT_STDIN = """
import os, sys, without_posix
os.path.lexists = lambda path: False
from unkernel.cli import main
sys.exit(main(["parse", sys.argv[1], "-"]))
"""


@pytest.mark.slow
def test_models_are_trained_saved_and_loaded(tmp_path: Path) -> None:
    completed = run(TRAIN_AND_SAVE, str(tmp_path))
    assert completed.returncode == 0, completed.stderr


def test_serving_is_refused_in_one_line() -> None:
    completed = run(SERVE, str(TESTS / "parsing" / "golden" / "text-parser.uk"))
    assert completed.returncode == 2
    assert completed.stderr.startswith("unkernel: error: serving models needs a POSIX system"), (
        completed.stderr
    )
    assert completed.stderr.count("\n") == 1


def test_stdin_is_refused_in_one_line() -> None:
    completed = run(PREDICT_STDIN, str(TESTS / "parsing" / "golden" / "text-parser.uk"))
    assert completed.returncode == 2
    assert (
        completed.stderr
        == "unkernel: error: -: this system cannot open stdin by a name; name a file instead\n"
    )
