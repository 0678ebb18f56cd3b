"""Read models of LIBLINEAR, of all solvers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from unkernel.models.decision import Decision
from unkernel.models.formats._header import LARGEST_COUNT, KeyedHeader
from unkernel.models.formats._text import TextLines, read_numbers
from unkernel.models.linear import LinearModel

REGRESSIONS = ("L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL")
SOLVERS = (
    *("L2R_LR", "L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL", "MCSVM_CS"),
    *("L1R_L2LOSS_SVC", "L1R_LR", "L2R_LR_DUAL", *REGRESSIONS, "ONECLASS_SVM"),
)
_KEYS = (b"solver_type", b"nr_class", b"label", b"nr_feature", b"bias", b"rho")
_LINES_BYTES = 1 << 20


def read(text: TextLines) -> LinearModel:
    """Return the model in a file."""
    header = KeyedHeader(text, "LIBLINEAR", _KEYS, b"w")
    solver = header.get_choice(b"solver_type", SOLVERS)
    decision = _read_decision(text, header, solver)
    n_features = header.get_integer(b"nr_feature", 0)
    bias = header.get_real(b"bias")
    rho = header.get_real(b"rho") if solver == "ONECLASS_SVM" else 0.0
    has_bias = bias >= 0
    weights = _read_weights(text, n_features + has_bias, _count_numbers_per_line(decision, solver))
    weights = weights[:, : decision.n_scores]
    with np.errstate(over="ignore"):
        intercepts = (weights[n_features] * bias if has_bias else np.zeros(decision.n_scores)) - rho
    if not np.isfinite(intercepts).all():
        raise text.error("the bias times its weights is not finite", line=header.line_of(b"bias"))
    return LinearModel(
        weights=weights[:n_features],
        intercept=intercepts,
        decision=decision,
        n_features=n_features,
        fixed_width=False,
        origin={"format": "liblinear", "solver_type": solver, "bias": bias, "zero_based": False},
    )


def _read_decision(text: TextLines, header: KeyedHeader, solver: str) -> Decision:
    count = header.get_integer(b"nr_class", 2)
    if solver in REGRESSIONS:
        return Decision("regression", np.empty(0, dtype=np.int64))
    if solver == "ONECLASS_SVM":
        return Decision("one_class", np.array([-1, 1]))
    labels = header.get_integers(b"label", count, -LARGEST_COUNT, f" for {count} classes")
    if len(np.unique(labels)) != count:
        raise text.error("two classes have the same label", line=header.line_of(b"label"))
    if count == 2:
        return Decision("binary", labels[::-1].copy())  # a positive score supports the first label
    return Decision("one_vs_rest", labels)


def _count_numbers_per_line(decision: Decision, solver: str) -> int:
    """Return the number of weights per line: one for each score.

    For two classes, the solver of Crammer and Singer writes two weights; LIBLINEAR ignores the second one in
    predictions.
    """
    return 2 if decision.scheme == "binary" and solver == "MCSVM_CS" else decision.n_scores


def _read_weights(text: TextLines, lines: int, width: int) -> NDArray[np.float64]:
    """Read exactly `lines` lines of `width` weights."""
    blocks: list[NDArray[np.float64]] = []
    line = text.line
    for block in _split_blocks(text):
        values, bad_index = read_numbers(text.name, block)
        if bad_index is not None or not _have_width(block, width):
            raise _make_line_error(text, block, line, width)
        blocks.append(values.reshape(-1, width))
        line += block.count(b"\n")
    weights = np.concatenate(blocks) if blocks else np.empty((0, width))
    if len(weights) != lines:
        raise text.error(
            f"{len(weights)} lines of weights, and nr_feature and bias say {lines}: the file is not whole; "
            "get or write it anew",
            line=line,
        )
    return weights


def _split_blocks(text: TextLines) -> Iterator[bytes]:
    """Yield the remaining lines in small blocks of whole lines."""
    for block in text.read_blocks():
        begin = 0
        while begin < len(block):
            end = block.find(b"\n", min(begin + _LINES_BYTES, len(block) - 1)) + 1
            yield block[begin:end]
            begin = end


def _have_width(block: bytes, width: int) -> bool:
    """Return whether each nonblank line of a block has `width` words."""
    characters = np.frombuffer(block, dtype=np.uint8)
    is_blank = (characters == ord(" ")) | ((characters >= 9) & (characters <= 13))
    begins = np.flatnonzero(~is_blank & np.append(True, is_blank[:-1]))
    line_of_word = np.searchsorted(np.flatnonzero(characters == ord("\n")), begins)
    word_counts = np.bincount(line_of_word)
    return bool(((word_counts == 0) | (word_counts == width)).all())


def _make_line_error(text: TextLines, block: bytes, line: int, width: int) -> Exception:
    """Return an error at the first malformed line of a block, which follows line `line` of the file."""
    for number, content in enumerate(block.split(b"\n"), line + 1):
        words = len(content.split())
        if words not in (0, width):
            return text.error(f"{words} weights, and this model has {width} in a line", line=number)
        _, bad_index = read_numbers(text.name, content)
        if bad_index is not None:
            return text.word_error(
                content, bad_index, "is not a weight: it is not a finite number", line=number
            )
    return text.error("the weights are damaged", line=line)
