"""Generated rows that resemble text: features drawn by Zipf's law, unit length, and a noisy linear target.

python benchmarks/zipf_rows.py FILE [--gigabytes 4] [--features 100000]     # svmlight text
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from unkernel import write_svmlight

FEATURES = 100_000
DRAWN = 75  # features drawn per row, some of them twice
_NOISE = 0.5  # of the spread of the target
_ROWS_AT_ONCE = 50_000


def zipf_rows(count: int, *, features: int = FEATURES, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return rows and real targets, whose signs make two classes and whose quantiles make ranks."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, features + 1)
    cumulative = np.cumsum(weights / weights.sum())
    columns = np.searchsorted(cumulative, rng.random((count, DRAWN))).clip(0, features - 1).astype(np.int32)
    offsets = np.arange(0, DRAWN * count + 1, DRAWN)
    X = sparse.csr_matrix((np.ones(columns.size), columns.ravel(), offsets), shape=(count, features))
    X.sum_duplicates()
    X.data[:] = 1.0
    X = normalize(X)
    scores = X @ np.random.default_rng(12345).standard_normal(features)  # the same for every seed
    target = scores + _NOISE * scores.std() * rng.standard_normal(count)
    return X, target


def zipf_stream(rows: sparse.csr_matrix, count: int, *, seed: int = 0) -> sparse.csr_matrix:
    """Draw rows like live traffic: the k-th row of a random order in proportion to 1 / k."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, rows.shape[0] + 1)
    draws = rng.choice(rows.shape[0], count, p=weights / weights.sum())
    return rows[rng.permutation(rows.shape[0])[draws]]


def make_ranks(target: np.ndarray, count: int) -> np.ndarray:
    """Return ranks of about equally many rows each: `count` ranks, or one per row if `count` is 0."""
    order = np.argsort(np.argsort(target))
    return order if count == 0 else order * count // len(target)


def write_large(path: Path, gigabytes: float, features: int) -> int:
    """Write a file of about `gigabytes`, and return its number of rows."""
    rows = 0
    with path.open("wb") as file:
        for part in _parts(features):
            X, target = part
            write_svmlight(file, X, np.where(target > 0, 1, -1))
            rows += X.shape[0]
            if file.tell() >= gigabytes * 1e9:
                return rows
    return rows


def _parts(features: int) -> Iterator[tuple[sparse.csr_matrix, np.ndarray]]:
    seed = 0
    while True:
        yield zipf_rows(_ROWS_AT_ONCE, features=features, seed=seed)
        seed += 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--features", type=int, default=FEATURES)
    options = parser.parse_args()
    if options.file is None:
        print("writes rows for other benchmarks; name a file")
    else:
        print(f"{write_large(options.file, options.gigabytes, options.features):,} rows")
