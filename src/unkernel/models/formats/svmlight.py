"""Read and write models of SVMlight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unkernel.models.decision import Decision
from unkernel.models.formats._commented import CommentedHeader
from unkernel.models.formats._text import TextLines
from unkernel.models.formats._vectors import Expected, read_vectors
from unkernel.models.formats._write import format_vector_lines
from unkernel.models.kernel import Kernel, KernelModel
from unkernel.models.tree import TreeModel

_KERNELS = ("linear", "polynomial", "rbf", "sigmoid")
FIRST_LINE = b"SVM-light Version "


def read(text: TextLines) -> KernelModel:
    """Return the model in a file."""
    version = text.expect_line("first line").removeprefix(FIRST_LINE)
    header = CommentedHeader(text)
    kernel = _read_kernel(text, header)
    training_facts, vectors, threshold = read_training_lines(header)
    expected = Expected(vectors, 1, "the number of support vectors plus 1", comments=True)
    origin = {"format": "svmlight", "version": version.decode("ascii", "backslashreplace")}
    return make_signed_model(text, kernel, threshold, expected, origin | training_facts)


def _read_kernel(text: TextLines, header: CommentedHeader) -> Kernel:
    number = header.read_integer("kernel type", 0)
    if number == 4:
        raise text.error("kernel type 4 is made by its user and not in the file; train with types 0 to 3")
    if number > 4:
        raise text.error(
            f"kernel type {number} is not one of SVMlight's: train with one of the kernels "
            f"{', '.join(_KERNELS)}, or with trees by SVM-light-TK"
        )
    parameters = read_parameters(header)
    name = _KERNELS[number]
    return make_kernel(text, name, parameters, parameters.g if name == "rbf" else parameters.s)


class Parameters(NamedTuple):
    """The kernel's parameters, named like SVMlight's options."""

    d: int
    g: float
    s: float
    r: float


def read_parameters(header: CommentedHeader) -> Parameters:
    """Return the parameters in the lines -d, -g, -s and -r; skip the line -u for user-defined kernels."""
    degree = header.read_integer("kernel parameter -d", 0)
    g, s, r = (header.read_real(f"kernel parameter -{letter}") for letter in "gsr")
    header.read_words("kernel parameter -u")
    return Parameters(degree, g, s, r)


def read_training_lines(header: CommentedHeader) -> tuple[dict[str, int], int, float]:
    """Return facts about the training for the origin, the number of support vectors, and the threshold."""
    training_facts = {
        "highest_feature_index": header.read_integer("highest feature index", 0),
        "training_documents": header.read_integer("number of training documents", 0),
    }
    return (
        training_facts,
        header.read_integer("number of support vectors plus 1", 1) - 1,
        header.read_real("threshold b"),
    )


def make_kernel(text: TextLines, name: str, parameters: Parameters, gamma: float) -> Kernel:
    """Return the kernel; raise a ``FormatError`` for invalid parameters."""
    try:
        return build_kernel(name, parameters, gamma)
    except ValueError as error:
        raise text.error(str(error)) from error


def build_kernel(name: str, parameters: Parameters, gamma: float) -> Kernel:
    """Return the kernel with the parameters that it uses; all other parameters may have any value."""
    if name == "polynomial":
        return Kernel(name, parameters.d, gamma, parameters.r)
    if name == "sigmoid":
        return Kernel(name, gamma=gamma, coef0=parameters.r)
    return Kernel(name, gamma=gamma) if name == "rbf" else Kernel(name)


def make_signed_model(
    text: TextLines, kernel: Kernel, threshold: float, expected: Expected, origin: dict[str, Any]
) -> KernelModel:
    """Return a model of the classes -1 and 1 with the intercept -`threshold`; read its support vectors."""
    vectors = read_vectors(text, expected)
    return KernelModel(
        kernel=kernel,
        vectors=vectors.matrix,
        coefficients=vectors.coefficients,
        intercept=np.array([-threshold]),
        decision=Decision("binary", np.array([-1, 1])),
        n_features=vectors.matrix.shape[1],
        fixed_width=False,
        origin=origin | {"zero_based": vectors.zero_based},
    )


def write(model: KernelModel, write_bytes: Callable[[bytes], object]) -> None:
    """Write a model of the classes -1 and 1; reading the file gives exactly the same numbers."""
    if model.kernel.name not in _KERNELS:
        raise ValueError(f"SVMlight has no {model.kernel.name} kernel; save the model as a .uk file")
    if model.origin.get("zero_based"):
        raise ValueError(
            "the model's features count from 0, and SVMlight's from 1; write it in LIBSVM's format"
        )
    sign = find_sign_of_class_1(model.decision, "SVMlight", "write the model in LIBSVM's format, or ")
    write_bytes(_format_header(model, sign * model.intercept))
    for lines in format_vector_lines(model.vectors, sign * np.asarray(model.coefficients), 1):
        write_bytes(lines)


def find_sign_of_class_1(decision: Decision, program: str, advice: str = "") -> float:
    """Return the sign of scores that support class 1, for a format that has only the classes -1 and 1."""
    scheme, labels = decision.scheme, decision.classes.tolist()
    if scheme not in ("binary", "one_vs_one") or set(labels) != {-1, 1}:
        raise ValueError(
            f"{program}'s models are of the classes -1 and 1, without labels of their own; {advice}"
            "save it as a .uk file"
        )
    if decision.probability is not None:
        raise ValueError(f"{program}'s format has no probabilities; {advice}save it as a .uk file")
    positive = labels[1] if scheme == "binary" else labels[0]
    return 1.0 if positive == 1 else -1.0


def _format_header(model: KernelModel, intercepts: NDArray[np.float64]) -> bytes:
    kernel = model.kernel
    g = kernel.gamma if kernel.name == "rbf" else 1.0
    s, r = (kernel.gamma, kernel.coef0) if kernel.name in ("polynomial", "sigmoid") else (1.0, 1.0)
    largest_index = max(model.n_features, get_origin_number(model, "highest_feature_index"))
    documents = max(model.n_support, get_origin_number(model, "training_documents"))
    lines = (
        "SVM-light Version V6.20",
        f"{_KERNELS.index(kernel.name)} # kernel type",
        f"{kernel.degree} # kernel parameter -d ",
        f"{g!r} # kernel parameter -g ",
        f"{s!r} # kernel parameter -s ",
        f"{r!r} # kernel parameter -r ",
        "empty# kernel parameter -u ",
        f"{largest_index} # highest feature index ",
        f"{documents} # number of training documents ",
        f"{model.n_support + 1} # number of support vectors plus 1 ",
        f"{float(-intercepts[0])!r} # threshold b, each following line is a SV (starting with alpha*y)",
        "",
    )
    return "\n".join(lines).encode()


def get_origin_number(model: KernelModel | TreeModel, key: str) -> int:
    """Return a number from the file that the model was read from; 0 if there is none."""
    value = model.origin.get(key)
    return value if type(value) is int else 0
