"""Read and write models of LIBSVM, of all types and kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unkernel.models.decision import Decision, Platt, condense_pairs, pair_columns
from unkernel.models.formats._header import LARGEST_COUNT, KeyedHeader
from unkernel.models.formats._text import TextLines
from unkernel.models.formats._vectors import Expected, Vectors, read_vectors
from unkernel.models.formats._write import convert_labels_to_integers, format_numbers, format_vector_lines
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
    """Return the model in a file."""
    header = KeyedHeader(text, "LIBSVM", _KEYS, b"SV")
    svm_type = header.get_choice(b"svm_type", SVM_TYPES)
    origin: dict[str, Any] = {"format": "libsvm", "svm_type": svm_type}
    kernel = _read_kernel(text, header)
    if svm_type in CLASSIFIERS:
        decision, rho, counts = _read_classes(text, header)
        origin["nr_sv"] = counts.tolist()
    else:
        decision, rho, counts = _read_single(text, header, svm_type)
        origin |= _read_probability(header)
    expected = Expected(int(counts.sum()), len(counts) - 1, "total_sv", comments=False)
    vectors = read_vectors(text, expected)
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
    name = header.get_choice(b"kernel_type", KERNELS)
    needed = PARAMETERS[name]
    degree = header.get_integer(b"degree", 0) if b"degree" in needed else Kernel.degree
    gamma = header.get_real(b"gamma") if b"gamma" in needed else Kernel.gamma
    coef0 = header.get_real(b"coef0") if b"coef0" in needed else Kernel.coef0
    try:
        return Kernel(name, degree, gamma, coef0)
    except ValueError as error:
        key = b"gamma" if name == "rbf" else b"degree"
        raise text.error(str(error), line=header.line_of(key)) from error


def _read_classes(
    text: TextLines, header: KeyedHeader
) -> tuple[Decision, NDArray[np.float64], NDArray[np.int64]]:
    """Return the decision of a classifier, the values rho, and the number of support vectors per class."""
    count = header.get_integer(b"nr_class", 2)
    suffix = f" for {count} classes"
    rho = header.get_reals(b"rho", count * (count - 1) // 2, suffix)
    labels = header.get_integers(b"label", count, -LARGEST_COUNT, suffix)
    if len(np.unique(labels)) != count:
        raise text.error("two classes have the same label", line=header.line_of(b"label"))
    total = header.get_integer(b"total_sv", 0)
    counts = header.get_integers(b"nr_sv", count, 0, suffix)
    if sum(counts.tolist()) != total:
        raise text.error(
            f"the numbers of nr_sv do not add up to {total}, which total_sv says",
            line=header.line_of(b"nr_sv"),
        )
    return Decision("one_vs_one", labels, probability=_read_platt(header, len(rho), suffix)), rho, counts


def _read_platt(header: KeyedHeader, count: int, suffix: str) -> Platt | None:
    if b"probA" not in header and b"probB" not in header:
        return None
    return Platt(header.get_reals(b"probA", count, suffix), header.get_reals(b"probB", count, suffix))


def _read_single(
    text: TextLines, header: KeyedHeader, svm_type: str
) -> tuple[Decision, NDArray[np.float64], NDArray[np.int64]]:
    """Return the decision of a regression or one-class model, rho, and the support vectors per class.

    The model is treated as a classifier of two classes, one of which has no support vectors.
    """
    if header.get_integer(b"nr_class", 2) != 2:
        raise text.error(f"nr_class of {svm_type} is 2", line=header.line_of(b"nr_class"))
    if svm_type == "one_class":
        decision = Decision("one_class", np.array([-1, 1]))
    else:
        decision = Decision("regression", np.empty(0, dtype=np.int64))
    total = header.get_integer(b"total_sv", 0)
    return decision, header.get_reals(b"rho", 1), np.array([total, 0])


def _read_probability(header: KeyedHeader) -> dict[str, Any]:
    """Return the content of lines that -b 1 adds to models other than classifiers, for writing them again."""
    settings: dict[str, Any] = {}
    if b"probA" in header:
        settings["probA"] = header.get_real(b"probA")
    if b"prob_density_marks" in header:
        settings["prob_density_marks"] = header.get_reals(b"prob_density_marks", 10).tolist()
    return settings


def _check_precomputed(text: TextLines, vectors: Vectors) -> None:
    if vectors.matrix.shape[1] != 1 or (np.diff(vectors.matrix.indptr) != 1).any():
        raise text.error("a support vector of a precomputed kernel is not of the form '0:number'", line=0)


class _GroupedVectors(NamedTuple):
    """The support vectors' order by class, and their coefficients in this order."""

    labels: list[int]
    counts: list[int]
    order: NDArray[np.intp] | slice
    coefficients: NDArray[np.float64]  # shape (n_support, n_classes - 1)


def write(model: KernelModel, write_bytes: Callable[[bytes], object]) -> None:
    """Write a model; reading the file gives exactly the same numbers."""
    grouped = _group_vectors(model)
    write_bytes(_format_header(model, grouped.labels, grouped.counts))
    first_index = 0 if model.origin.get("zero_based") else 1
    for lines in format_vector_lines(model.vectors[grouped.order], grouped.coefficients, first_index):
        write_bytes(lines)


def _group_vectors(model: KernelModel) -> _GroupedVectors:
    scheme = model.decision.scheme
    if scheme in ("one_class", "regression"):
        return _GroupedVectors([], [], slice(None), np.asarray(model.coefficients))
    if model.decision.outputs:
        raise ValueError(
            "LIBSVM's models have a single output, and this one has several; save it as a .uk file"
        )
    if scheme == "one_vs_rest":
        raise ValueError(
            "LIBSVM's models of many classes are one against one, and this one is one against the rest; "
            "save it as a .uk file"
        )
    labels = convert_labels_to_integers(model.decision.classes)
    if scheme == "binary":
        labels = labels[::-1]  # a positive score supports LIBSVM's first class
    if isinstance(model.coefficients, PairCoefficients):
        return _GroupedVectors(labels, model.coefficients.counts, slice(None), model.coefficients.values)
    counts: Any = model.origin.get("nr_sv")
    if _is_grouping(counts, model, len(labels)):
        return _GroupedVectors(labels, counts, slice(None), condense_pairs(model.coefficients, counts))
    if len(labels) > 2:
        raise ValueError(
            "the model does not store the class of each support vector, which LIBSVM's format needs; "
            "save it as a .uk file"
        )
    negative = model.coefficients[:, 0] <= 0
    order = np.argsort(negative, kind="stable")
    counts = [int((~negative).sum()), int(negative.sum())]
    return _GroupedVectors(labels, counts, order, model.coefficients[order])


def _is_grouping(counts: Any, model: KernelModel, classes: int) -> bool:
    """Return whether `counts` groups the vectors by class: no vector may have coefficients in other pairs."""
    if not isinstance(counts, list) or len(counts) != classes:
        return False
    if not all(type(count) is int and count >= 0 for count in counts) or sum(counts) != model.n_support:
        return False
    begin = 0
    for code, count in enumerate(counts):
        other_pairs = np.delete(
            model.coefficients[begin : begin + count], pair_columns(classes, code), axis=1
        )
        if other_pairs.any():
            return False
        begin += count
    return True


def _format_header(model: KernelModel, labels: list[int], counts: list[int]) -> bytes:
    kernel, platt = model.kernel, model.decision.probability
    values = {b"degree": str(kernel.degree), b"gamma": repr(kernel.gamma), b"coef0": repr(kernel.coef0)}
    lines = [f"svm_type {_choose_svm_type(model)}", f"kernel_type {kernel.name}"]
    lines += [f"{key.decode()} {values[key]}" for key in PARAMETERS[kernel.name]]
    lines += [f"nr_class {max(2, len(labels))}", f"total_sv {model.n_support}"]
    lines += [f"rho {format_numbers(-model.intercept)}"]
    if labels:
        lines += ["label " + " ".join(map(str, labels))]
    if isinstance(platt, Platt):
        lines += [f"probA {format_numbers(platt.a)}", f"probB {format_numbers(platt.b)}"]
    lines += _format_probability(model)
    if labels:
        lines += ["nr_sv " + " ".join(map(str, counts))]
    return "\n".join([*lines, "SV", ""]).encode()


def _format_probability(model: KernelModel) -> list[str]:
    """Return the lines whose content :func:`_read_probability` read, if they match the decision."""
    lines = []
    scale, marks = model.origin.get("probA"), model.origin.get("prob_density_marks")
    if model.decision.scheme == "regression" and isinstance(scale, float):
        lines.append(f"probA {scale!r}")
    if model.decision.scheme == "one_class" and isinstance(marks, list) and len(marks) == 10:
        lines.append(f"prob_density_marks {format_numbers(np.array(marks, dtype=np.float64))}")
    return lines


def _choose_svm_type(model: KernelModel) -> str:
    """Return the type in the origin of the model if it matches the decision, otherwise the default type."""
    types_of_scheme = {"one_class": ("one_class",), "regression": REGRESSIONS}
    possible = types_of_scheme.get(model.decision.scheme, CLASSIFIERS)
    original = model.origin.get("svm_type")
    return original if original in possible else possible[0]
