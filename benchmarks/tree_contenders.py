"""Train and evaluate ours and SVM-light-TK, each in a process of its own.

``tree.py`` calls ``train`` in a new process, so that the peak memory belongs to a single training.
SVM-light-TK has two programs, ``svm_learn`` and ``svm_classify``. The time of training is the CPU time of the
whole process. The time of answering is the CPU time of a process for all examples, minus that of a process
for a single example.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import precision_recall_fscore_support

from harness import timed
from harness.processes import LeftOutError, peak_megabytes, program, run_in_process, run_program
from unkernel import TreeSVC, read_trees

KERNELS = ("st", "sst", "sst_bow", "ptk")  # in the order of SVM-light-TK's -F
MODEL_HEADER_LINES = 21


# --- Ours, in a process of its own --------------------------------------------------------------------


def trained(
    train_file: Path,
    test_file: Path,
    positive: str | None,
    options: dict[str, Any],
    model: Path | None = None,
) -> dict[str, Any]:
    """Return the report of ``train``, run in a separate process."""
    files = str(train_file), str(test_file)
    call = f"train(*{files!r}, {positive!r}, {options!r}, {None if model is None else str(model)!r})"
    return dict(run_in_process("tree_contenders", call))


def train(
    train_file: str, test_file: str, positive: str | None, options: dict[str, Any], model: str | None = None
) -> dict[str, Any]:
    """Read a file, train, and evaluate. With `positive`, that class against all other classes."""
    megabytes_before = peak_megabytes()
    data, reading, _ = timed(lambda: read_trees(train_file, format="lines"))
    labels = data.y if positive is None else data.y == _as_label(data.y, positive)
    with_trees = peak_megabytes()
    svc = TreeSVC(**options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        _, cpu, wall = timed(lambda: svc.fit(data.X, labels))
    report = {
        "examples": len(data.X), "reading": reading, "cpu": cpu, "wall": wall, "objective": svc.objective_,
        "gap": svc.gap_, "rounds": svc.n_iter_, "support": svc.n_support_, "solver": svc.solver_,
        "converged": not caught, "before_mb": megabytes_before, "trees_mb": with_trees,
        "peak_mb": peak_megabytes(),
    }  # fmt: skip
    if model is not None:
        svc.save(model)
    test = read_trees(test_file, format="lines")
    truth = test.y if positive is None else test.y == _as_label(test.y, positive)
    return report | quality(truth, svc.predict(test.X), svc.classes_)


def _as_label(labels: np.ndarray, text: str) -> Any:
    return labels.dtype.type(text)


def quality(truth: np.ndarray, predicted: np.ndarray, classes: np.ndarray) -> dict[str, float]:
    """Return the accuracy and, for two classes, precision, recall and F1 of the second class."""
    result = {"accuracy": float(np.mean(truth == predicted))}
    if len(classes) == 2:
        precision, recall, f1, _ = precision_recall_fscore_support(
            truth == classes[1], predicted == classes[1], average="binary", zero_division=0.0
        )
        result |= {"precision": float(precision), "recall": float(recall), "f1": float(f1)}
    return result


# --- SVM-light-TK -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Learned:
    cpu: float  # of the whole process
    objective: float  # primal, from what it prints: five digits
    support: int
    peak_mb: float
    model: Path


class SvmLightTk:
    """The programs of SVM-light-TK; a `LeftOutError` if they have not been built."""

    def __init__(self) -> None:
        self._learn, self._classify = (
            program(f"svm-light-tk/{name}") for name in ("svm_learn", "svm_classify")
        )

    def learn(self, file: Path, kernel: str, decay: float, C: float, model: Path) -> Learned:
        kind = str(KERNELS.index(kernel))
        words = ["-t", "5", "-C", "T", "-N", "1", "-F", kind, "-L", str(decay), "-c", str(C)]
        output, cpu, peak_mb = run_program([self._learn, *words, file, model])
        norm, loss = (
            float(_found(pattern, output)) for pattern in (r"\|w\|=([\d.]+)", r"L1 loss: loss=([\d.]+)")
        )
        support = sum(1 for line in _lines(model)[MODEL_HEADER_LINES:] if line.strip())
        return Learned(cpu, norm**2 / 2 + C * loss, support, peak_mb, model)

    def margins(self, model: Path, file: Path) -> tuple[float, np.ndarray]:
        """Return the CPU seconds without loading the model, and the margins."""
        with tempfile.TemporaryDirectory() as folder:
            first_line, answers = Path(folder) / "first.dat", Path(folder) / "answers"
            first_line.write_bytes(file.read_bytes().partition(b"\n")[0] + b"\n")
            loading = run_program([self._classify, first_line, model, answers]).cpu
            all_lines = run_program([self._classify, file, model, answers]).cpu
            return max(all_lines - loading, 0.0), np.loadtxt(answers, ndmin=1)


def _found(pattern: str, text: str) -> str:
    search = re.search(pattern, text)
    if search is None:
        raise LeftOutError(f"it did not print {pattern}")
    return search[1]


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
