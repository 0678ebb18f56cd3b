"""Training on data whose conjunctions fill no memory: bunsetsu decisions, degree 2 and 3, beside opal.

Every contender runs in a process of its own, on one thread; CPU seconds are those of training alone (opal:
with its reading of the file), the peak is that of the whole process with its data. opal is an online learner
(passive-aggressive, the same kernel) and certifies nothing; LIBLINEAR gets the degree-2 matrix expanded, of
the same problem, and what the expansion took is given apart. A peer that is not there is left out.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/large.py [--opal=PROGRAM] [--liblinear] [degree ...]
"""

from __future__ import annotations

import json
import lzma
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

from poly import environment
from poly_contenders import peak_megabytes, timed
from poly_tasks import expand, primal
from unkernel import PolySVC, compile, datasets, read_model

DATASET = "bunsetsu_kyoto"
# The best on the test rows of 1e-4, 3e-4 .. 1e-2 (degree 2) and 3e-5 .. 1e-3 (degree 3); opal is not tuned.
COSTS = {2: 3e-3, 3: 1e-4}
OPAL = {2: ("0.001", "5"), 3: ("0.00003", "8")}  # aggressiveness, iterations


def ours(degree: int, storage: str) -> dict:
    train, test = datasets.load(DATASET), datasets.load(DATASET, "test")
    clf = PolySVC(degree, C=COSTS[degree], gamma=1.0, storage=storage, random_state=0)
    _, cpu, _ = timed(lambda: clf.fit(train.X, train.y))
    peak = peak_megabytes()
    answers, _, seconds = timed(lambda: clf.predict(test.X))
    return {
        "cpu": cpu,
        "peak": peak,
        "gap": clf.gap_,
        "epochs": clf.n_iter_,
        "storage": clf.storage_,
        "objective": clf.objective_,
        "accuracy": 100 * float(np.mean(answers == test.y)),
        "predict": seconds,
    }


def opal(degree: int, program: str) -> dict:
    cost, iterations = OPAL[degree]
    options = ["-t", "1", "-d", str(degree), "-c", cost, "-i", iterations, "-k", "-p", "--max-trie-size=3000"]
    with tempfile.TemporaryDirectory() as folder:
        rows, model = Path(folder, "rows.svm"), Path(folder, "model")
        with lzma.open(datasets.path(DATASET)) as packed, rows.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
        subprocess.run([program, *options, rows, model, "-"], check=True, capture_output=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        learned = read_model(model)
    test = datasets.load(DATASET, "test")
    scores = compile(learned, engine="split", n_jobs=1).decision_function(test.X, n_jobs=1)
    return {
        "cpu": used.ru_utime + used.ru_stime,
        "peak": used.ru_maxrss / 1024,
        "epochs": int(iterations),
        "accuracy": 100 * float(np.mean((scores > 0) == (test.y > 0))),
    }


def liblinear() -> dict:
    from liblinear.liblinearutil import problem, train

    rows, test = datasets.load(DATASET), datasets.load(DATASET, "test")
    # Test rows are expanded beside the others, so that their columns have the same numbers.
    both = sparse.vstack([rows.X, test.X], format="csr")
    X, expansion, _ = timed(lambda: expand(both, 1.0))
    X, X_test = X[: len(rows.y)], X[len(rows.y) :]
    model, cpu, _ = timed(lambda: train(problem(rows.y, X), f"-s 3 -c {COSTS[2]} -e 0.01 -q"))
    w = np.ctypeslib.as_array(model.w, shape=(X.shape[1],)) * (1 if model.get_labels()[0] == 1 else -1)
    return {
        "cpu": cpu,
        "peak": peak_megabytes(),
        "objective": primal(w, X, rows.y, COSTS[2]),
        "accuracy": 100 * float(np.mean((X_test @ w > 0) == (test.y > 0))),
        "expansion": expansion,
    }


def measured(call: str) -> dict | None:
    done = subprocess.run(
        [sys.executable, "-c", f"import json, large; print(json.dumps(large.{call}))"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(Path(__file__).parent),
    )
    if done.returncode:
        print(f"  {call}: left out ({(done.stderr.strip().splitlines() or ['no message'])[-1]})", flush=True)
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    arguments = sys.argv[1:]
    degrees = [int(a) for a in arguments if not a.startswith("--")] or [2, 3]
    program = next((a.split("=", 1)[1] for a in arguments if a.startswith("--opal=")), "")
    print("| degree | contender | CPU s | peak MB | passes | gap | objective | accuracy |")
    print("|---|---|---|---|---|---|---|---|")
    for degree in degrees:
        calls = {"unkernel": f"ours({degree}, 'auto')"}
        if degree == 2:
            calls["unkernel, split"] = "ours(2, 'split')"
        if program:
            calls["opal"] = f"opal({degree}, {program!r})"
        if degree == 2 and "--liblinear" in arguments:
            calls["LIBLINEAR"] = "liblinear()"
        for name, call in calls.items():
            if (report := measured(call)) is not None:
                print(row(degree, name, report), flush=True)


def row(degree: int, name: str, report: dict) -> str:
    about = f" ({report['storage']})" if "storage" in report else ""
    about += f" (expansion: {report['expansion']:.0f} s)" if "expansion" in report else ""
    formats = {
        "cpu": ".1f",
        "peak": ".0f",
        "epochs": "d",
        "gap": ".2g",
        "objective": ".6g",
        "accuracy": ".2f",
    }
    cells = [f"{report[key]:{form}}" if key in report else "" for key, form in formats.items()]
    return "| " + " | ".join([str(degree), name + about, *cells]) + " |"


if __name__ == "__main__":
    main()
