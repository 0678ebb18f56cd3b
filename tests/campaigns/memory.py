"""Check memory budgets: with little more address space than the budget, work still succeeds.

    python -m campaigns.memory

Each task runs in a forked child whose address space may grow by 1.2 times its budget, plus 32 MB for the
stacks of threads and for libraries loaded late. Tasks that fail are repeated with more memory, to find how
much they need.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from campaigns.children import run
from reference.kernels import make_kernel_model, polynomial
from unkernel import CuttingPlaneSVC, PolySVC, compile, write_svmlight
from unkernel.cli.inputs.rows import estimate_bytes
from unkernel.poly import _base

FACTOR = 1.2
SLACK = 32 << 20
WHILE_COMPILING = 2.5  # times the memory that tables may take (docs/compile.md)
Work = Callable[[], object]


def address_space_bytes() -> int:
    """Return the bytes of this process's address space."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


def find_failure(work: Work, budget: float, factor: float) -> str | None:
    """Run the work with a limit of budget times factor; return None, or the last line of its error."""

    def limited(_: Path) -> None:
        limit = address_space_bytes() + SLACK + int(factor * budget)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        work()

    ended = run(limited, Path("/"))
    return None if ended.code == 0 else f"{ended.code}: {ended.last_line}"


def random_rows(rows: int, features: int, ones: int, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return binary rows with about `ones` ones each, frequent features first."""
    rng = np.random.default_rng(seed)
    columns = (features * rng.random((rows, ones)) ** 2).astype(np.int32)
    indptr = np.arange(0, rows * ones + 1, ones)
    X = sparse.csr_matrix((np.ones(rows * ones), columns.ravel(), indptr), shape=(rows, features))
    X.sum_duplicates()
    X.data[:] = 1.0
    return X, np.where(rng.random(rows) < 0.5, -1, 1)


# --- Tasks -------------------------------------------------------------------------------------------------


def list_compilations(scale: float) -> Iterator[tuple[str, Work, float]]:
    """Yield models whose tables would take several times the budget in some engine."""
    X, _ = random_rows(int(6000 * scale), 2000, 25)
    model = replace(
        make_kernel_model(0, kernel=polynomial(3)),
        vectors=X,
        coefficients=np.random.default_rng(1).normal(size=(X.shape[0], 1)),
        n_features=X.shape[1],
    )
    for megabytes in (50, 200, 250, 400, 800):
        budget = 1e6 * megabytes * scale
        expected = compile(model, memory=budget, measure=False).candidates
        built = sum(candidate.nbytes > 0 for candidate in expected)
        name = f"compile, memory={budget / 1e6:.0f}M, {built} of {len(expected)} engines built"
        yield name, partial(compile_alike, model, budget, expected), WHILE_COMPILING * budget


def compile_alike(model: Any, budget: float, expected: Any) -> None:
    """Compile, and check that the engines larger than the budget, and no others, are omitted."""
    assert compile(model, memory=budget, measure=False).candidates == expected, "fewer engines were built"


def measure_needed_memory(learner: PolySVC, X: Any, y: Any) -> float:
    """Return the memory that a learner asks for when no memory is free."""
    real_available_bytes, _base.available_bytes = _base.available_bytes, lambda: 1
    try:
        learner.fit(X, y)
    except MemoryError as error:
        search = re.search(r"needs about ([0-9.]+) (GB|MB)", str(error))
        assert search, error
        return float(search[1]) * {"GB": 1e9, "MB": 1e6}[search[2]]
    finally:
        _base.available_bytes = real_available_bytes
    raise AssertionError("nothing was refused")


def list_trainings_by_storage(scale: float) -> Iterator[tuple[str, Work, float]]:
    X, y = random_rows(int(20_000 * scale), 600, 20)
    for storage in ("condensed", "on_the_fly", "split"):
        learner = PolySVC(degree=3, storage=storage, C=1e-4, tol=0.1, max_iter=3, random_state=0)
        budget = measure_needed_memory(learner, X, y)
        yield f"PolySVC, storage={storage}, {budget / 1e6:.0f} MB", partial(learner.fit, X, y), budget


def list_out_of_core_trainings(scale: float, folder: Path) -> Iterator[tuple[str, Work, float]]:
    X, y = random_rows(int(30_000 * scale), int(200_000 * scale), 30)
    path = folder / "rows.svm"
    write_svmlight(path, X, y)
    learner = CuttingPlaneSVC(C=1e-3, max_cuts=100, tol=1e-3)
    budget = estimate_bytes(X.shape[0], X.shape[1], learner.max_cuts)
    yield f"out of core, {budget / 1e6:.0f} MB", partial(learner.fit, path), budget


def run_campaign(scale: float) -> int:
    """Return the number of budgets that were exceeded."""
    failures = 0
    with tempfile.TemporaryDirectory() as place:
        for works in (
            list_compilations(scale),
            list_trainings_by_storage(scale),
            list_out_of_core_trainings(scale, Path(place)),
        ):
            for name, work, budget in works:
                error = find_failure(work, budget, FACTOR)
                failures += error is not None
                print(f"{name}: {describe_outcome(work, budget, error)}", flush=True)
    return failures


def describe_outcome(work: Work, budget: float, error: str | None) -> str:
    if error is None:
        return f"holds with {FACTOR} times as much"
    enough = next(
        (factor for factor in (1.5, 2, 3, 5, 10) if find_failure(work, budget, factor) is None), None
    )
    return f"FAILS with {FACTOR} times as much ({error}); {enough or 'not even 10'} times is enough"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of the problems")
    options = parser.parse_args()
    if "MALLOC_ARENA_MAX" not in os.environ:  # otherwise every thread reserves 64 MB of addresses
        os.environ["MALLOC_ARENA_MAX"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "campaigns.memory", *sys.argv[1:]])
    return run_campaign(options.scale) > 0


if __name__ == "__main__":
    sys.exit(main())
