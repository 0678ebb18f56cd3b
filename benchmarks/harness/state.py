"""The state that a figure depends on: commit, machine, load, versions."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Libraries that are loaded later, and child processes, use one thread: the processor time of peers would
# include threads that only wait in a loop.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# The first words of contenders' names, with the packages of these contenders.
DISTRIBUTIONS = {
    "LIBLINEAR": "liblinear-official",
    "LIBSVM": "libsvm-official",
    "LightGBM": "lightgbm",
    "XGBoost": "xgboost-cpu",
    "CatBoost": "catboost",
    "EBM": "interpret-core",
    "CRFsuite": "python-crfsuite",
    "ONNX Runtime": "onnxruntime",
    "Vowpal Wabbit": "vowpalwabbit",
    "nltk": "nltk",
    "scikit-learn": "scikit-learn",
    "SVC": "scikit-learn",
    "LinearSVC": "scikit-learn",
    "PolynomialFeatures": "scikit-learn",
}


@dataclass(frozen=True)
class State:
    """Where and when figures were measured.

    Attributes
    ----------
    commit : str
        Commit of this tree, followed by ``+`` if files differed from the commit.
    load : float
        Load average of the minute before the benchmark.
    """

    commit: str
    date: str
    machine: str
    processor: str
    cores: int
    memory_gb: int
    system: str
    python: str
    load: float
    quick: bool

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def now(quick: bool) -> State:
    return State(
        commit=_commit(),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        machine=platform.machine(),
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        system=_system(),
        python=platform.python_version(),
        load=round(os.getloadavg()[0], 2),
        quick=quick,
    )


def find_contender_version(name: str) -> str:
    """Return the version of a contender's package, or "" if the package is not in `DISTRIBUTIONS`."""
    result = [key for key in DISTRIBUTIONS if re.match(rf"{re.escape(key)}\b", name)]
    return find_version(DISTRIBUTIONS[result[0]]) if result else ""


def find_version(distribution: str) -> str:
    """Return the version of an installed package, or "" if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    head = _output("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD")
    # Look only at source code: benchmarks themselves write result files.
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--", "src", "cpp", "bindings")
    return head + ("+" if changed else "")


def _processor() -> str:
    words = dict(line.split(":", 1) for line in _output("lscpu").splitlines() if ":" in line)
    return next((value.strip() for key, value in words.items() if key.strip() == "Model name"), "unknown")


def _system() -> str:
    if hasattr(platform, "freedesktop_os_release"):
        try:
            return str(platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()))
        except OSError:
            pass
    return f"{platform.system()} {platform.release()}"


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
