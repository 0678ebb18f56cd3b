"""The training tasks of the poly benchmark, and their explicit expansion for linear peers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from unkernel import datasets


@dataclass(frozen=True)
class Task:
    """A binary problem, with parameters of the kernel (gamma x'z + 1)^2."""

    name: str
    dataset: str
    C: float
    gamma: float
    positive: tuple[float, ...]
    scale: float = 1.0
    least_frequency: int = 0


TASKS = {
    task.name: task
    for task in (
        Task("a9a", "a9a", 8.0, 0.03125, (1.0,)),
        Task("mnist38", "mnist38", 2.0, 0.3125, (1.0,), scale=255.0),
        Task("mnist38-wide", "mnist38", 2.0, 0.03125, (1.0,), scale=255.0),
        Task("covtype68k", "covtype68k", 0.01, 8.0, (2.0,)),
        Task("covtype68k-mild", "covtype68k", 0.01, 1.0, (2.0,)),
        Task("covtype68k-hard", "covtype68k", 2.0, 8.0, (2.0,)),
        Task("arc_eager_ewt", "arc_eager_ewt", 0.01, 1.0, (3.0, 4.0), least_frequency=20),
        Task("arc_eager_ewt-whole", "arc_eager_ewt", 0.01, 1.0, (3.0, 4.0)),
    )
}


def load(task: Task) -> tuple[sparse.csr_matrix, np.ndarray, sparse.csr_matrix, np.ndarray]:
    """Return training rows and labels (+1, -1), then test rows and labels."""
    train, test = datasets.load(task.dataset), datasets.load(task.dataset, "test")
    keep = np.asarray((train.X != 0).sum(axis=0)).ravel() >= task.least_frequency
    parts = []
    for part in (train, test):
        X = part.X if keep.all() else part.X[:, keep].tocsr()
        X.sort_indices()
        parts += [
            X / task.scale if task.scale != 1 else X,
            np.where(np.isin(part.y, task.positive), 1.0, -1.0),
        ]
    return parts[0], parts[1], parts[2], parts[3]


def expand(X: sparse.csr_matrix, gamma: float) -> sparse.csr_matrix:
    """Return phi(x) of (gamma x'z + 1)^2, eq. (4) of Chang et al., with a column per product that occurs."""
    n = X.shape[1]
    sizes = np.diff(X.indptr)
    offsets = np.concatenate([[0], np.cumsum(1 + sizes + sizes * (sizes + 1) // 2)])
    keys = np.empty(offsets[-1], np.int64)
    values = np.empty(offsets[-1])
    for m in np.unique(sizes):
        _expand_rows_of_size(X, gamma, n, int(m), np.flatnonzero(sizes == m), offsets, keys, values)
    columns, count = _renumber(keys, 1 + n + n * n)
    return sparse.csr_matrix((values, columns, offsets), shape=(X.shape[0], count))


def _expand_rows_of_size(X, gamma, n, m, rows, offsets, keys, values):
    """Write the keys and values of the given rows, which have `m` features each, to their places in phi."""
    first, second = np.triu_indices(m)
    factor = np.where(first == second, gamma, np.sqrt(2) * gamma)
    for chunk in np.array_split(rows, max(1, len(rows) * (m + 1) ** 2 // 50_000_000)):
        place = X.indptr[chunk][:, None] + np.arange(m)
        j, x = X.indices[place].astype(np.int64), X.data[place]
        out = offsets[chunk][:, None]
        keys[out[:, 0]], values[out[:, 0]] = 0, 1.0
        singles, pairs = out + 1 + np.arange(m), out + 1 + m + np.arange(len(first))
        keys[singles], values[singles] = 1 + j, np.sqrt(2 * gamma) * x
        keys[pairs] = 1 + n + j[:, first] * n + j[:, second]
        values[pairs] = factor * x[:, first] * x[:, second]


def _renumber(keys, possible):
    """Return keys below `possible` renumbered without gaps, and the number of distinct keys."""
    if possible > 100_000_000:
        distinct, columns = np.unique(keys, return_inverse=True)
        return columns.astype(np.int32), len(distinct)
    occurs = np.zeros(possible, bool)
    occurs[keys] = True
    numbers = np.cumsum(occurs, dtype=np.int32) - 1
    return numbers[keys], int(occurs.sum())


def primal(w: np.ndarray, Phi: sparse.csr_matrix, y: np.ndarray, C: float) -> float:
    """Return 1/2 |w|^2 + C times the sum of hinge losses."""
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (Phi @ w)).sum())
