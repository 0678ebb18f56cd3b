"""Reads opal's kernel models, which resemble TinySVM's but have one weight per class if there are many."""

from __future__ import annotations

import numpy as np

from unkernel.models.decision import Decision, Platt
from unkernel.models.formats._commented import CommentedHeader
from unkernel.models.formats._text import TextLines, quote
from unkernel.models.formats._vectors import Expected, read_vectors
from unkernel.models.kernel import Kernel, KernelModel

_NO_SIGMOID = (-1.0, 0.0)  # written by opal without a sigmoid


def read(text: TextLines) -> KernelModel:
    """Read the whole file. Its kernel is always (s x'z + r)^d."""
    version = text.expect("first line")
    header = CommentedHeader(text)
    labels = _read_labels(text, header)
    if header.integer("kernel type", 0) != 1:
        raise text.error("opal has models of kernel type 1 only")
    degree = header.integer("kernel parameter -d", 0)
    gamma, coef0 = header.real("kernel parameter -s"), header.real("kernel parameter -r")
    sigmoid = None if labels else (header.real("sigmoid -A"), header.real("sigmoid -B"))
    scores = len(labels) or 1
    thresholds = np.array(header.reals("threshold b", scores, scores))
    vectors = read_vectors(text, Expected(None, scores, "", comments=True))
    return KernelModel(
        kernel=_make_kernel(text, degree, gamma, coef0),
        vectors=vectors.matrix,
        coefficients=vectors.coefficients,
        intercept=-thresholds,
        decision=_make_decision(text, labels, sigmoid),
        n_features=vectors.matrix.shape[1],
        fixed_width=False,
        origin={
            "format": "opal",
            "version": version.decode("ascii", "backslashreplace"),
            "zero_based": vectors.zero_based,
        },
    )


def _read_labels(text: TextLines, header: CommentedHeader) -> list[bytes]:
    """Return the labels of a model of many classes; none for the two classes -1 and 1."""
    if b"# labels:" not in text.peek().partition(b"\n")[0]:
        return []
    line = text.expect("line of labels")
    labels = line.partition(b"# labels:")[2].split()
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise text.error(f"expected two or more different labels, got {quote(line)}")
    return labels


def _make_kernel(text: TextLines, degree: int, gamma: float, coef0: float) -> Kernel:
    try:
        return Kernel("polynomial", degree, gamma, coef0)
    except ValueError as error:
        raise text.error(str(error)) from error


def _make_decision(text: TextLines, labels: list[bytes], sigmoid: tuple[float, float] | None) -> Decision:
    if labels:
        names = [label.decode("utf-8", "backslashreplace") for label in labels]
        return Decision("one_vs_rest", _to_numbers(names))
    platt = None
    if sigmoid is not None and sigmoid != _NO_SIGMOID:
        platt = Platt(np.array([sigmoid[0]]), np.array([sigmoid[1]]))
    return Decision("binary", np.array([-1, 1]), probability=platt)


def _to_numbers(names: list[str]) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """Return integer labels as integers, so that they equal the labels in files of rows."""
    try:
        numbers = [int(name) for name in names]
    except ValueError:
        return np.array(names)
    small = len(set(numbers)) == len(names) and all(abs(number) < 2**53 for number in numbers)
    return np.array(numbers) if small else np.array(names)
