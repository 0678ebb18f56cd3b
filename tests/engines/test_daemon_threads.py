"""Threads that still ask a classifier, or train one, when Python ends."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading, time, warnings
import numpy as np
import unkernel

warnings.simplefilter("ignore")
X = (np.random.default_rng(0).random((2000, 40)) < 0.3).astype(float)
y = np.arange(2000) % 2
fast = unkernel.compile(unkernel.PolySVC(max_iter=5).fit(X[:100], y[:100]), measure=False)
begun = threading.Barrier(4)

def asks():
    begun.wait()
    while True:
        fast.predict(X)

def trains():
    begun.wait()
    while True:
        unkernel.PolySVC(max_iter=50).fit(X, y)

for work in (asks, asks, trains):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(0.1)
print("the end")
"""


def test_daemon_threads_do_not_abort_the_process():
    """Python ends them by unwinding their stacks, which must not pass a destructor of ours."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "the end\n"), done.stderr
