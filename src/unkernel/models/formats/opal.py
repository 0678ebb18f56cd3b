"""Read kernel models of opal: TinySVM's format, but with one weight per class if there are several."""

from __future__ import annotations

import numpy as np

from unkernel.models.decision import Decision, Platt
from unkernel.models.formats._commented import CommentedHeader
from unkernel.models.formats._text import TextLines, quote
from unkernel.models.formats._vectors import Expected, read_vectors
from unkernel.models.kernel import Kernel, KernelModel

_NO_SIGMOID = (-1.0, 0.0)  # the parameters that opal writes for models without a sigmoid


def read(text: TextLines) -> KernelModel:
    """Return the model in a file. The kernel is always (s x'z + r)^d."""
    version = text.expect_line("first line")
    header = CommentedHeader(text)
    labels = _read_labels(text, header)
    if header.read_integer("kernel type", 0) != 1:
        raise text.error("opal has models of kernel type 1 only")
    degree = header.read_integer("kernel parameter -d", 0)
    gamma, coef0 = header.read_real("kernel parameter -s"), header.read_real("kernel parameter -r")
    sigmoid = None if labels else (header.read_real("sigmoid -A"), header.read_real("sigmoid -B"))
    scores = len(labels) or 1
    thresholds = np.array(header.read_reals("threshold b", scores, scores))
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
    """Return the labels of a model of several classes; an empty list for the two classes -1 and 1."""
    if b"# labels:" not in text.peek().partition(b"\n")[0]:
        return []
    line = text.expect_line("line of labels")
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
    has_exact_labels = len(set(numbers)) == len(names) and all(abs(number) < 2**53 for number in numbers)
    return np.array(numbers) if has_exact_labels else np.array(names)
