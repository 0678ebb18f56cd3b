"""Reads and writes LIBSVM's models, of all types and kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unkernel.models.decision import Decision, Platt, condense_pairs, pair_columns
from unkernel.models.formats._header import LARGEST_COUNT, KeyedHeader
from unkernel.models.formats._text import TextLines
from unkernel.models.formats._vectors import Expected, Vectors, read_vectors
from unkernel.models.formats._write import labels_as_integers, numbers, vector_lines
from unkernel.models.kernel import KERNELS, Kernel, KernelModel
from unkernel.models.pair_coefficients import PairCoefficients, pair_coefficients

CLASSIFIERS = ("c_svc", "nu_svc")
REGRESSIONS = ("epsilon_svr", "nu_svr")
SVM_TYPES = (*CLASSIFIERS, "one_class", *REGRESSIONS)
PARAMETERS = {
    "linear": (),
    "polynomial": (b"degree", b"gamma", b"coef0"),
    "rbf": (b"gamma",),
    "sigmoid": (b"gamma", b"coef0"),
    "precomputed": (),
}
_KEYS = (
    *(b"svm_type", b"kernel_type", b"degree", b"gamma", b"coef0", b"nr_class", b"total_sv"),
    *(b"rho", b"label", b"probA", b"probB", b"prob_density_marks", b"nr_sv"),
)


def read(text: TextLines) -> KernelModel:
    """Read the whole file."""
    header = KeyedHeader(text, "LIBSVM", _KEYS, b"SV")
    svm_type = header.choice(b"svm_type", SVM_TYPES)
    origin: dict[str, Any] = {"format": "libsvm", "svm_type": svm_type}
    kernel = _read_kernel(text, header)
    if svm_type in CLASSIFIERS:
        decision, rho, counts = _read_classes(text, header)
        origin["nr_sv"] = counts.tolist()
    else:
        decision, rho, counts = _read_single(text, header, svm_type)
        origin |= _read_probability(header)
    said = Expected(int(counts.sum()), len(counts) - 1, "total_sv", comments=False)
    vectors = read_vectors(text, said)
    if kernel.name == "precomputed":
        _check_precomputed(text, vectors)
    return KernelModel(
        kernel=kernel,
        vectors=vectors.matrix,
        coefficients=pair_coefficients(vectors.coefficients, counts.tolist()),
        intercept=-rho,
        decision=decision,
        n_features=vectors.matrix.shape[1],
        fixed_width=False,
        origin=origin | {"zero_based": vectors.zero_based},
    )


def _read_kernel(text: TextLines, header: KeyedHeader) -> Kernel:
    name = header.choice(b"kernel_type", KERNELS)
    needed = PARAMETERS[name]
    degree = header.integer(b"degree", 0) if b"degree" in needed else Kernel.degree
    gamma = header.real(b"gamma") if b"gamma" in needed else Kernel.gamma
    coef0 = header.real(b"coef0") if b"coef0" in needed else Kernel.coef0
    try:
        return Kernel(name, degree, gamma, coef0)
    except ValueError as error:
        key = b"gamma" if name == "rbf" else b"degree"
        raise text.error(str(error), line=header.line_of(key)) from error


def _read_classes(
    text: TextLines, header: KeyedHeader
) -> tuple[Decision, NDArray[np.float64], NDArray[np.int64]]:
    """Return the decision of a classifier, its rho, and the number of support vectors of each class."""
    count = header.integer(b"nr_class", 2)
    why = f" for {count} classes"
    rho = header.reals(b"rho", count * (count - 1) // 2, why)
    labels = header.integers(b"label", count, -LARGEST_COUNT, why)
    if len(np.unique(labels)) != count:
        raise text.error("two classes have the same label", line=header.line_of(b"label"))
    total = header.integer(b"total_sv", 0)
    counts = header.integers(b"nr_sv", count, 0, why)
    if sum(counts.tolist()) != total:
        raise text.error(
            f"the numbers of nr_sv do not add up to {total}, which total_sv says",
            line=header.line_of(b"nr_sv"),
        )
    return Decision("one_vs_one", labels, probability=_read_platt(header, len(rho), why)), rho, counts


def _read_platt(header: KeyedHeader, count: int, why: str) -> Platt | None:
    if b"probA" not in header and b"probB" not in header:
        return None
    return Platt(header.reals(b"probA", count, why), header.reals(b"probB", count, why))


def _read_single(
    text: TextLines, header: KeyedHeader, svm_type: str
) -> tuple[Decision, NDArray[np.float64], NDArray[np.int64]]:
    """Group vectors like those of classifiers: regression and one-class models count as two classes, one
    empty.
    """
    if header.integer(b"nr_class", 2) != 2:
        raise text.error(f"nr_class of {svm_type} is 2", line=header.line_of(b"nr_class"))
    decision = (
        Decision("one_class", np.array([-1, 1]))
        if svm_type == "one_class"
        else Decision("regression", np.empty(0, dtype=np.int64))
    )
    total = header.integer(b"total_sv", 0)
    return decision, header.reals(b"rho", 1), np.array([total, 0])


def _read_probability(header: KeyedHeader) -> dict[str, Any]:
    """Read the probability lines that -b 1 adds to models that are not classifiers, to write them back."""
    kept: dict[str, Any] = {}
    if b"probA" in header:
        kept["probA"] = header.real(b"probA")
    if b"prob_density_marks" in header:
        kept["prob_density_marks"] = header.reals(b"prob_density_marks", 10).tolist()
    return kept


def _check_precomputed(text: TextLines, vectors: Vectors) -> None:
    if vectors.matrix.shape[1] != 1 or (np.diff(vectors.matrix.indptr) != 1).any():
        raise text.error("a support vector of a precomputed kernel is not of the form '0:number'", line=0)


class _Grouped(NamedTuple):
    """Support vectors class by class."""

    labels: list[int]
    counts: list[int]
    order: NDArray[np.intp] | slice
    coefficients: NDArray[np.float64]  # those on one line


def write(model: KernelModel, write_bytes: Callable[[bytes], object]) -> None:
    """Write a model; every number reads back exactly."""
    grouped = _group_vectors(model)
    write_bytes(_format_header(model, grouped.labels, grouped.counts))
    first_index = 0 if model.origin.get("zero_based") else 1
    for lines in vector_lines(model.vectors[grouped.order], grouped.coefficients, first_index):
        write_bytes(lines)


def _group_vectors(model: KernelModel) -> _Grouped:
    scheme = model.decision.scheme
    if scheme in ("one_class", "regression"):
        return _Grouped([], [], slice(None), np.asarray(model.coefficients))
    if scheme == "one_vs_rest":
        raise ValueError(
            "LIBSVM's models of many classes are one against one, and this one is one against the rest; "
            "save it as a .uk file"
        )
    labels = labels_as_integers(model.decision.classes)
    if scheme == "binary":
        labels = labels[::-1]  # a positive score supports LIBSVM's first class
    if isinstance(model.coefficients, PairCoefficients):
        return _Grouped(labels, model.coefficients.counts, slice(None), model.coefficients.values)
    counts: Any = model.origin.get("nr_sv")
    if _is_grouping(counts, model, len(labels)):
        return _Grouped(labels, counts, slice(None), condense_pairs(model.coefficients, counts))
    if len(labels) > 2:
        raise ValueError(
            "the model does not say which class each support vector is of, as LIBSVM's format has to; "
            "save it as a .uk file"
        )
    negative = model.coefficients[:, 0] <= 0
    order = np.argsort(negative, kind="stable")
    counts = [int((~negative).sum()), int(negative.sum())]
    return _Grouped(labels, counts, order, model.coefficients[order])


def _is_grouping(counts: Any, model: KernelModel, classes: int) -> bool:
    """Return whether these are the numbers of vectors by class: vectors must not occur in other pairs."""
    if not isinstance(counts, list) or len(counts) != classes:
        return False
    if not all(type(count) is int and count >= 0 for count in counts) or sum(counts) != model.n_support:
        return False
    begin = 0
    for code, count in enumerate(counts):
        others = np.delete(model.coefficients[begin : begin + count], pair_columns(classes, code), axis=1)
        if others.any():
            return False
        begin += count
    return True


def _format_header(model: KernelModel, labels: list[int], counts: list[int]) -> bytes:
    kernel, platt = model.kernel, model.decision.probability
    values = {b"degree": str(kernel.degree), b"gamma": repr(kernel.gamma), b"coef0": repr(kernel.coef0)}
    lines = [f"svm_type {_choose_svm_type(model)}", f"kernel_type {kernel.name}"]
    lines += [f"{key.decode()} {values[key]}" for key in PARAMETERS[kernel.name]]
    lines += [f"nr_class {max(2, len(labels))}", f"total_sv {model.n_support}"]
    lines += [f"rho {numbers(-model.intercept)}"]
    if labels:
        lines += ["label " + " ".join(map(str, labels))]
    if isinstance(platt, Platt):
        lines += [f"probA {numbers(platt.a)}", f"probB {numbers(platt.b)}"]
    lines += _format_probability(model)
    if labels:
        lines += ["nr_sv " + " ".join(map(str, counts))]
    return "\n".join([*lines, "SV", ""]).encode()


def _format_probability(model: KernelModel) -> list[str]:
    """Return the probability lines that still match the model."""
    lines = []
    scale, marks = model.origin.get("probA"), model.origin.get("prob_density_marks")
    if model.decision.scheme == "regression" and isinstance(scale, float):
        lines.append(f"probA {scale!r}")
    if model.decision.scheme == "one_class" and isinstance(marks, list) and len(marks) == 10:
        lines.append(f"prob_density_marks {numbers(np.array(marks, dtype=np.float64))}")
    return lines


def _choose_svm_type(model: KernelModel) -> str:
    """Return the type of the original model, if it still applies, or the usual type."""
    fitting = {"one_class": ("one_class",), "regression": REGRESSIONS}
    possible = fitting.get(model.decision.scheme, CLASSIFIERS)
    given = model.origin.get("svm_type")
    return given if given in possible else possible[0]
