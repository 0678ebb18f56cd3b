"""Training where expanded rows take gigabytes: bunsetsu decisions, degree 2 and 3.

There are 293,269 training and 112,788 test decisions (`bunsetsu_kyoto`). The kernel is (x'z + 1)^d, with
hinge loss and a gap of 1e-3. Every contender runs on one thread in a process of its own. CPU seconds are
those of training alone (for opal, including reading the file); the peak is the memory of the whole process
with its data. opal is a passive-aggressive online learner with the same kernel; it certifies no gap, and was
not tuned. C is the best of four values for unkernel on the test rows, so accuracies cannot be compared.
LIBLINEAR gets the expanded matrix of degree 2; the time of the expansion is given separately.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/large.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import lzma
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from harness import Report, main, timed
from harness.processes import LeftOutError, peak_megabytes, program, run_in_process
from harness.state import find_version
from poly_tasks import expand, primal
from unkernel import PolySVC, compile, datasets, read_model

DATASET = "bunsetsu_kyoto"
# The best on the test rows of 1e-4, 3e-4 .. 1e-2 (degree 2) and 3e-5 .. 1e-3 (degree 3); opal is not tuned.
COSTS = {2: 3e-3, 3: 1e-4}
OPAL = {2: ("0.001", "5"), 3: ("0.00003", "8")}  # aggressiveness, iterations
CONTENDERS = {
    "degree 2": {
        "unkernel": "ours(2, 'auto')",
        "unkernel, split": "ours(2, 'split')",
        "opal": "opal(2)",
        "LIBLINEAR": "liblinear()",
    },
    "degree 3": {"unkernel": "ours(3, 'auto')", "opal": "opal(3)"},
}
FIGURES = {
    "training": "CPU s",
    "expansion": "CPU s",
    "peak": "MB",
    "passes": "number",
    "gap": "",
    "objective": "",
    "accuracy": "%",
}


def ours(degree: int, storage: str) -> dict:
    train, test = datasets.load(DATASET), datasets.load(DATASET, "test")
    clf = PolySVC(degree, C=COSTS[degree], gamma=1.0, storage=storage, random_state=0)
    _, cpu, _ = timed(lambda: clf.fit(train.X, train.y))
    return {
        "training": cpu,
        "peak": peak_megabytes(),
        "passes": clf.n_iter_,
        "gap": clf.gap_,
        "objective": clf.objective_,
        "accuracy": 100 * float(np.mean(clf.predict(test.X) == test.y)),
        "note": str(clf.storage_),
    }


def opal(degree: int) -> dict:
    cost, iterations = OPAL[degree]
    options = ["-t", "1", "-d", str(degree), "-c", cost, "-i", iterations, "-k", "-p", "--max-trie-size=3000"]
    learner = program("opal")
    with tempfile.TemporaryDirectory() as folder:
        rows, model = Path(folder, "rows.svm"), Path(folder, "model")
        with lzma.open(datasets.path(DATASET)) as packed, rows.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
        subprocess.run([learner, *options, rows, model, "-"], check=True, capture_output=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        learned = read_model(model)
    test = datasets.load(DATASET, "test")
    scores = compile(learned, engine="split", n_jobs=1).decision_function(test.X, n_jobs=1)
    return {
        "training": used.ru_utime + used.ru_stime,
        "peak": used.ru_maxrss / 1024,
        "passes": int(iterations),
        "accuracy": 100 * float(np.mean((scores > 0) == (test.y > 0))),
    }


def liblinear() -> dict:
    from liblinear.liblinearutil import problem, train

    rows, test = datasets.load(DATASET), datasets.load(DATASET, "test")
    # Test rows are expanded together with training rows, so that conjunctions have the same columns.
    all_rows = sparse.vstack([rows.X, test.X], format="csr")
    X, expansion, _ = timed(lambda: expand(all_rows, 1.0))
    X, X_test = X[: len(rows.y)], X[len(rows.y) :]
    model, cpu, _ = timed(lambda: train(problem(rows.y, X), f"-s 3 -c {COSTS[2]} -e 0.01 -q"))
    w = np.ctypeslib.as_array(model.w, shape=(X.shape[1],)) * (1 if model.get_labels()[0] == 1 else -1)
    return {
        "training": cpu,
        "expansion": expansion,
        "peak": peak_megabytes(),
        "objective": primal(w, X, rows.y, COSTS[2]),
        "accuracy": 100 * float(np.mean((X_test @ w > 0) == (test.y > 0))),
        "version": find_version("liblinear-official"),
    }


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        for contender, call in CONTENDERS[task].items():
            if report.quick and contender == "LIBLINEAR":
                report.leave_out(f"{task}, {contender}", "it takes two minutes and 13 GB")
                continue
            try:
                result = run_in_process("large", call)
            except LeftOutError as reason:
                report.leave_out(f"{task}, {contender}", reason)
                continue
            version, note = result.pop("version", ""), result.pop("note", "")
            for name, unit in FIGURES.items():
                if name in result:
                    noted = note if name == "training" else ""
                    report.add(task, contender, name, unit, result[name], version=version, note=noted)


if __name__ == "__main__":
    main(measure, list(CONTENDERS), quick=["degree 2"])
