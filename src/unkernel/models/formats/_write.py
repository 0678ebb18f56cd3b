"""Shared parts of the writers of models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import format_svmlight
from unkernel.data.rows.csr import CsrRows

_NUMBERS_PER_BLOCK = 1 << 17
_LARGEST_LABEL = 2**31 - 1
_NO_QUERIES = np.empty(0, dtype=np.int64)


def numbers(values: NDArray[np.float64]) -> str:
    """Format numbers in a line, each as the shortest text with the same value."""
    return " ".join(map(repr, values.tolist()))


def labels_as_integers(classes: NDArray[Any]) -> list[int]:
    """Return class labels as integers, for formats whose labels are integers."""
    if classes.dtype.kind in "iuf" and (classes == np.floor(classes)).all():
        labels = [int(label) for label in classes.tolist()]
        if max(map(abs, labels)) <= _LARGEST_LABEL:
            return labels
    raise ValueError(
        f"the format has integers of 32 bits as labels, and this model's are {classes.tolist()[:5]}; "
        "save it as a .uk file, or train with integers"
    )


def vector_lines(matrix: CsrRows, coefficients: NDArray[np.float64], first_index: int) -> Iterator[bytes]:
    """Yield lines ``coefficient ... index:value ...`` in blocks."""
    *first, last = np.ascontiguousarray(coefficients.T)
    width = len(first) + 1 + matrix.nnz / max(1, matrix.shape[0])
    step = max(1, int(_NUMBERS_PER_BLOCK / width))
    for begin in range(0, matrix.shape[0], step):
        end = min(begin + step, matrix.shape[0])
        lines = format_svmlight(matrix, last, _NO_QUERIES, first_index, begin, end)
        yield _with_first(np.array([column[begin:end] for column in first]), lines) if first else lines


def _with_first(coefficients: NDArray[np.float64], lines: bytes) -> bytes:
    """Return the lines with additional coefficients in front."""
    count = coefficients.size
    texts = format_svmlight(
        CsrRows.of(np.zeros(count + 1), [], [], 0),
        np.ascontiguousarray(coefficients.T).reshape(-1),
        _NO_QUERIES,
        0,
        0,
        count,
    ).split()
    width = len(coefficients)
    return b"".join(
        b" ".join([*texts[row * width : (row + 1) * width], line])
        for row, line in enumerate(lines.splitlines(keepends=True))
    )
