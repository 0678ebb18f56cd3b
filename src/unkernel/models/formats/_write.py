"""Functions that several writers of models share."""

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


def format_numbers(values: NDArray[np.float64]) -> str:
    """Return numbers as one line of text, each with as few digits as suffice to read back its exact value."""
    return " ".join(map(repr, values.tolist()))


def convert_labels_to_integers(classes: NDArray[Any]) -> list[int]:
    """Return class labels as integers, for formats whose labels are integers."""
    if classes.dtype.kind in "iuf" and (classes == np.floor(classes)).all():
        labels = [int(label) for label in classes.tolist()]
        if max(map(abs, labels)) <= _LARGEST_LABEL:
            return labels
    raise ValueError(
        f"the format has integers of 32 bits as labels, and this model's are {classes.tolist()[:5]}; "
        "save it as a .uk file, or train with integers"
    )


def format_vector_lines(
    matrix: CsrRows, coefficients: NDArray[np.float64], first_index: int
) -> Iterator[bytes]:
    """Yield blocks of lines ``coefficient ... index:value ...``, one line per support vector."""
    *first, last = np.ascontiguousarray(coefficients.T)
    width = len(first) + 1 + matrix.nnz / max(1, matrix.shape[0])
    step = max(1, int(_NUMBERS_PER_BLOCK / width))
    for begin in range(0, matrix.shape[0], step):
        end = min(begin + step, matrix.shape[0])
        lines = format_svmlight(matrix, last, _NO_QUERIES, first_index, begin, end)
        if first:
            lines = _prepend_coefficients(np.array([column[begin:end] for column in first]), lines)
        yield lines


def _prepend_coefficients(coefficients: NDArray[np.float64], lines: bytes) -> bytes:
    """Return the lines, each preceded by its coefficients; the array is (coefficients per line, lines)."""
    count = coefficients.size
    # Format the numbers as the labels of rows without entries.
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
