"""Ours and SVM-light-TK, each in a process of its own: what it took, what it reached.

``tree.py`` runs ours through ``in_child``, which calls a function of WORK below in a fresh process, so that
peak memory is that of the one thing measured; it answers with one JSON object. SVM-light-TK is two programs,
``svm_learn`` and ``svm_classify``, in a folder that the user names; their processor time is what the system
says of the whole process, or (answers) of that process less one that answers a single line.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import precision_recall_fscore_support

from unkernel import TreeSVC, datasets, read_trees

KERNELS = ("st", "sst", "sst_bow", "ptk")  # in the order of SVM-light-TK's -F
MODEL_HEADER_LINES = 21


def clocked(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What the work gives, and its CPU and wall seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def peak_megabytes() -> float:
    """The most memory this process ever had; where the system tells, not counting who started it."""
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(found[1]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


# --- Ours, in a child ---------------------------------------------------------------------------------


def in_child(name: str, **arguments: Any) -> dict[str, Any]:
    """What WORK[name] reports, called in a process of its own."""
    here = str(Path(__file__).parent)
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    program = "import tree_contenders; tree_contenders.main()"
    done = subprocess.run(
        [sys.executable, "-c", program, name, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths, "UNKERNEL_DATA": str(datasets.folder() or "")},
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def train(
    train_file: str, test_file: str, positive: str | None, options: dict[str, Any], model: str | None = None
) -> dict[str, Any]:
    """Read, train, judge. With `positive`, that class against all others."""
    before = peak_megabytes()
    data, reading, _ = clocked(lambda: read_trees(train_file, format="lines"))
    labels = data.y if positive is None else data.y == _as_label(data.y, positive)
    with_trees = peak_megabytes()
    svc = TreeSVC(**options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        _, cpu, wall = clocked(lambda: svc.fit(data.X, labels))
    report = {
        "examples": len(data.X), "reading": reading, "cpu": cpu, "wall": wall, "objective": svc.objective_,
        "gap": svc.gap_, "rounds": svc.n_iter_, "support": svc.n_support_, "solver": svc.solver_,
        "converged": not caught, "before_mb": before, "trees_mb": with_trees, "peak_mb": peak_megabytes(),
    }  # fmt: skip
    if model is not None:
        svc.save(model)
    test = read_trees(test_file, format="lines")
    truth = test.y if positive is None else test.y == _as_label(test.y, positive)
    return report | quality(truth, svc.predict(test.X), svc.classes_)


def _as_label(labels: np.ndarray, text: str) -> Any:
    return labels.dtype.type(text)


def quality(truth: np.ndarray, predicted: np.ndarray, classes: np.ndarray) -> dict[str, float]:
    """Accuracy; of two classes also precision, recall and F1 of the second."""
    result = {"accuracy": float(np.mean(truth == predicted))}
    if len(classes) == 2:
        precision, recall, f1, _ = precision_recall_fscore_support(
            truth == classes[1], predicted == classes[1], average="binary", zero_division=0.0
        )
        result |= {"precision": float(precision), "recall": float(recall), "f1": float(f1)}
    return result


WORK: dict[str, Callable[..., dict[str, Any]]] = {"train": train}


def main() -> None:
    print(json.dumps(WORK[sys.argv[1]](**json.loads(sys.argv[2]))))


# --- SVM-light-TK -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Learned:
    cpu: float  # of the whole process
    objective: float  # primal, from what it prints: five digits
    support: int
    peak_mb: float
    model: Path


class SvmLightTk:
    """The programs of a folder."""

    def __init__(self, folder: Path) -> None:
        self._learn, self._classify = (folder / name for name in ("svm_learn", "svm_classify"))
        for program in (self._learn, self._classify):
            if not program.is_file():
                raise FileNotFoundError(f"there is no {program.name} in {folder}")

    def learn(self, file: Path, kernel: str, decay: float, C: float, model: Path) -> Learned:
        kind = str(KERNELS.index(kernel))
        words = ["-t", "5", "-C", "T", "-N", "1", "-F", kind, "-L", str(decay), "-c", str(C)]
        cpu, peak_mb, said = _run([str(self._learn), *words, str(file), str(model)])
        norm, loss = (
            float(_found(pattern, said)) for pattern in (r"\|w\|=([\d.]+)", r"L1 loss: loss=([\d.]+)")
        )
        support = sum(1 for line in _lines(model)[MODEL_HEADER_LINES:] if line.strip())
        return Learned(cpu, norm**2 / 2 + C * loss, support, peak_mb, model)

    def margins(self, model: Path, file: Path) -> tuple[float, np.ndarray]:
        """CPU seconds without those that loading the model takes, and the margins."""
        with tempfile.TemporaryDirectory() as folder:
            first, answers = Path(folder) / "first.dat", Path(folder) / "answers"
            first.write_bytes(file.read_bytes().partition(b"\n")[0] + b"\n")
            loading, _, _ = _run([str(self._classify), str(first), str(model), str(answers)])
            whole, _, _ = _run([str(self._classify), str(file), str(model), str(answers)])
            return max(whole - loading, 0.0), np.loadtxt(answers, ndmin=1)


def _run(command: list[str]) -> tuple[float, float, str]:
    """CPU seconds, peak memory and what was printed."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode("latin-1")
    if process.returncode:
        raise RuntimeError(f"{Path(command[0]).name} ended with {process.returncode}: {said[-200:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"it did not print {pattern}")
    return found[1]


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
