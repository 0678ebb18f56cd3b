"""Threads that still use or train a model when Python exits."""

from __future__ import annotations

import subprocess
import sys

import pytest

# The core is called directly, because numpy's own functions, which estimators call, would abort the process.
PROGRAM = """
import threading
import numpy as np
from unkernel import compile, PolySVC
from unkernel._core import pack_rows, train_dual
from unkernel.cutplane.options import DualOptions
from unkernel.data.rows.csr import canonical_rows

X = canonical_rows((np.random.default_rng(0).random((2000, 40)) < 0.3).astype(float))
y = np.where(np.arange(2000) % 2, 1.0, -1.0)
engine = compile(PolySVC(max_iter=1000).fit(X[:100].toarray(), y[:100]), measure=False)._engine
packed = pack_rows(X, threads=1)
nothing = np.empty(0)
all_started, called = threading.Barrier(4), threading.Event()

def score_forever():
    all_started.wait()
    while True:
        engine.score(X, 1)

def train_forever():
    all_started.wait()
    while True:
        train_dual(
            DualOptions(tolerance=1e-9, max_epochs=10**6, seed=1, threads=1), rows=packed, intercept=0.0,
            squared=False, signed_costs=100.0 * y, duals=nothing, on_progress=wait_for_long,
        )

def wait_for_long(_):  # for long, so that it is called when Python ends
    called.set()
    for _ in range(10**9):
        pass

for work in (score_forever, score_forever, train_forever):
    threading.Thread(target=work, daemon=True).start()
all_started.wait()
called.wait()
print("the end")
"""


@pytest.mark.hostile
def test_daemon_threads_do_not_abort_the_process():
    """Python ends daemon threads by unwinding their stacks, and C++ destructors must not end the process."""
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "the end\n"), result.stderr
