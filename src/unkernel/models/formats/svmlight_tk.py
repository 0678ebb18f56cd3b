"""Read and write models of trees and vectors of SVM-light-TK 1.5.

The program computes in single precision: it rounds kernel values, feature values and mu to 24 bits. Here,
only mu is rounded, because it is a parameter of the model. Scores agree with those of the program to about
1e-6.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.trees.forest import Forest, Vectors, bracket_texts
from unkernel.data.trees.tree_files import read_example_lines
from unkernel.errors import FormatError
from unkernel.models.decision import Decision
from unkernel.models.formats._commented import CommentedHeader
from unkernel.models.formats._text import TextLines, quote, read_numbers
from unkernel.models.formats.svmlight import (
    FIRST_LINE,
    Parameters,
    build_kernel,
    find_sign_of_class_1,
    get_origin_number,
    read_training_lines,
)
from unkernel.models.kernel import Kernel
from unkernel.models.tree import LEAST_DECAY, ExampleKernel, TreeModel

_VERSION = "V5.01-TK-1.5"
_COMBINED = 5  # number of the kernel type whose details are in the options -C, -W and -V
_COMBINATIONS = {"T": "trees", "V": "vectors", "+": "sum", "*": "product"}
_PAIRINGS = {"S": "same", "A": "all"}
_TREE_KERNELS = {0: "st", 1: "sst", 2: "sst_bow", 3: "ptk"}
_VECTOR_KERNELS = {0: "linear", 1: "polynomial", 2: "rbf", 3: "sigmoid"}
# For each value of the option -N: whether trees, and vectors, are normalised.
_NORMALIZATIONS = {0: (False, False), 1: (True, False), 2: (False, True), 3: (True, True)}

_OPTIONS = "dgsruLTCFSMNVWU"  # in the order of the header's lines
_INTEGER_OPTIONS, _TEXT_OPTIONS = "dFSNU", "uCVW"
_LEAST_INTEGER = -(2**53)

# The first word of a line that is neither blank nor a comment; the core's reader has the same blanks.
_COEFFICIENT = re.compile(rb"^[ \t\r]*([^ \t\r\n#][^ \t\r\n]*)", re.MULTILINE)
_SEVERAL_WORDS = re.compile(rb"[\v\f]")  # inside of a word for the core's reader, blanks for read_numbers
_QUERY = re.compile(rb"^[ \t\r]*[^ \t\r\n#][^ \t\r\n]*[ \t\r]+(qid:)", re.MULTILINE)
_NOT_IN_LABELS = re.compile(rb"[\s()\0]|\|[BE]T\|")


# --- Reading ------------------------------------------------------------------------------------------


def read(text: TextLines) -> TreeModel:
    """Return the model in a file."""
    version = text.expect_line("first line").removeprefix(FIRST_LINE)
    if version != _VERSION.encode():
        raise text.error(
            f"{quote(version)} is not a version of SVM-light-TK whose models are known here: {_VERSION} is"
        )
    header = CommentedHeader(text)
    kernel = _Options(text, header).kernel()
    training_facts, vectors, threshold = read_training_lines(header)
    support, coefficients = _SupportReader(text, vectors).read()
    return TreeModel(
        kernel=kernel,
        support=support,
        coefficients=coefficients.reshape(-1, 1),
        intercept=np.array([-threshold]),
        decision=Decision("binary", np.array([-1, 1])),
        origin={"format": "svmlight-tk", "version": _VERSION} | training_facts,
    )


class _Options:
    """The options of svm_learn in the header. Options without effect may have any value."""

    def __init__(self, text: TextLines, header: CommentedHeader) -> None:
        self._text = text
        number = header.read_integer("kernel type", 0)
        if number != _COMBINED:
            raise text.error(
                f"kernel type {number} of SVM-light-TK cannot be read: train with -t {_COMBINED}, and say "
                "with -C whether trees (T), vectors (V), or both (+ or *) count"
            )
        self._values: dict[str, Any] = {}
        self._lines: dict[str, int] = {}
        for option in _OPTIONS:
            self._values[option] = _read_option(header, option)
            self._lines[option] = text.line

    def kernel(self) -> ExampleKernel:
        """Return the kernel that these options specify."""
        if self._values["U"] != 0:
            raise self._make_error(
                "U", "the parameters of each tree are in a file of their own, not in the model"
            )
        combination = self._choose("C", _COMBINATIONS)
        normalize, normalize_vectors = self._choose("N", _NORMALIZATIONS)
        parameters = {
            "combination": combination,
            "normalize": normalize,
            "normalize_vectors": normalize_vectors,
        }
        if combination != "vectors":
            parameters |= self._read_tree_options()
        if combination != "trees":
            parameters |= self._read_vector_options(normalize_vectors)
        if combination == "sum":
            parameters["tree_weight"] = self._check_least("T", 0.0)
        return ExampleKernel(**parameters)

    def _read_tree_options(self) -> dict[str, Any]:
        parameters = {
            "tree": self._choose("F", _TREE_KERNELS),
            "tree_pairing": self._choose("W", _PAIRINGS),
            "decay": self._check_least("L", LEAST_DECAY),
        }
        if parameters["tree"] == "ptk":
            with np.errstate(over="ignore"):
                self._values["M"] = float(np.float32(self._values["M"]))
            parameters["width_decay"] = self._check_least("M", LEAST_DECAY)
        return parameters

    def _read_vector_options(self, normalize: bool) -> dict[str, Any]:
        name = self._choose("S", _VECTOR_KERNELS)
        pairing = self._choose("V", _PAIRINGS)
        if name == "rbf" and (why := _explain_wrong_rbf(normalize, pairing)):
            raise self._make_error("S", f"SVM-light-TK does not compute its rbf kernel {why}")
        parameters = Parameters(*(self._values[option] for option in "dgsr"))
        try:
            kernel = build_kernel(name, parameters, parameters.g if name == "rbf" else parameters.s)
        except ValueError as error:
            raise self._make_error("g" if name == "rbf" else "d", str(error)) from error
        return {"vector": kernel, "vector_pairing": pairing}

    def _choose(self, option: str, choices: Mapping[Any, Any]) -> Any:
        value = self._values[option]
        first = value[:1] if option in _TEXT_OPTIONS else value  # the program reads only the first character
        if first not in choices:
            known = ", ".join(map(str, choices))
            raise self._make_error(option, f"{value!r} cannot be read: train with one of {known}")
        return choices[first]

    def _check_least(self, option: str, least: float) -> float:
        value = float(self._values[option])
        if not least <= value < np.inf:
            raise self._make_error(option, f"expected a number from {least:g} on, got {value!r}")
        return value

    def _make_error(self, option: str, reason: str) -> FormatError:
        return self._text.error(f"kernel parameter -{option}: {reason}", line=self._lines[option])


def _read_option(header: CommentedHeader, option: str) -> Any:
    about = f"kernel parameter -{option}"
    if option in _TEXT_OPTIONS:
        return header.read_words(about).decode("ascii", "backslashreplace")
    return (
        header.read_integer(about, _LEAST_INTEGER) if option in _INTEGER_OPTIONS else header.read_real(about)
    )


def _explain_wrong_rbf(normalize: bool, pairing: str) -> str | None:
    """Return the case in which the program's rbf kernel is wrong (uninitialised memory or norm), or None."""
    if normalize:
        return "with normalised vectors (-N 2 and 3); use -N 0 or 1"
    return "of all pairs of vectors (-V A); use -V S" if pairing == "all" else None


class _SupportReader:
    """Passes the lines to the core's reader, after blank lines in place of the header.

    Because of the blank lines, errors of the core's reader have the line numbers of the file.
    """

    def __init__(self, text: TextLines, expected: int) -> None:
        self._text = text
        self._expected = expected
        self._line = text.line  # number of the last line before the current block
        self._count = 0
        self._coefficients: list[NDArray[np.float64]] = [np.empty(0)]

    def read(self) -> tuple[Forest, NDArray[np.float64]]:
        forest, names = read_example_lines(self._text.name, self._yield_blocks())
        if self._count < self._expected:
            raise self._text.error(
                f"{self._count} support vectors, and the number of support vectors plus 1 says "
                f"{self._expected}: the file has been cut short; get or write it anew",
                line=self._line,
            )
        channels = [*names["tree_channels"], *names["vector_channels"]]
        if names["features"] or not all(channel.isdigit() for channel in channels):
            raise self._text.error("trees, vectors and features have no names in such a model", line=0)
        return forest, np.concatenate(self._coefficients)

    def _yield_blocks(self) -> Iterator[bytes]:
        yield b"\n" * self._line
        for block in self._text.read_blocks():
            self._read_coefficients(block)
            yield block
            self._line += block.count(b"\n")

    def _read_coefficients(self, block: bytes) -> None:
        """Read the coefficient at the beginning of each line; the core's reader takes it for a label."""
        words = _COEFFICIENT.findall(block)
        values, bad_index = read_numbers(self._text.name, b"\n".join(words))
        if len(values) != len(words) and bad_index is None:
            bad_index = next(index for index, word in enumerate(words) if _SEVERAL_WORDS.search(word))
        if bad_index is not None:
            raise self._new_error_at(
                block, bad_index, f"{quote(words[bad_index])} is not a finite number, as alpha*y is"
            )
        if self._count + len(words) > self._expected:
            raise self._new_error_at(
                block,
                self._expected - self._count,
                f"more support vectors than the {self._expected} that the number of support vectors plus 1 "
                "says: correct it, or get or write the file anew",
            )
        if b"qid:" in block and (query := _QUERY.search(block)) is not None:
            line = self._line + block.count(b"\n", 0, query.start()) + 1
            raise self._text.error("'qid:' is no part of a support vector", line=line)
        self._count += len(words)
        self._coefficients.append(values)

    def _new_error_at(self, block: bytes, number: int, reason: str) -> FormatError:
        """Return an error at a coefficient of the current block; coefficients are counted from 0."""
        begin = next(islice(_COEFFICIENT.finditer(block), number, None)).start(1)
        line = self._line + block.count(b"\n", 0, begin) + 1
        return self._text.error(reason, line=line, column=begin - block.rfind(b"\n", 0, begin))


# --- Writing ------------------------------------------------------------------------------------------


def write(model: TreeModel, write_bytes: Callable[[bytes], object]) -> None:
    """Write a model of the classes -1 and 1; reading the file gives exactly the same coefficients."""
    sign = find_sign_of_class_1(model.decision, "SVM-light-TK")
    header = _format_header(model, float(-sign * model.intercept[0]))
    trees = _format_trees(model) if model.kernel.combination != "vectors" else _make_empty_texts(model)
    vectors = _list_vectors(model) if model.kernel.combination != "trees" else _make_empty_texts(model)
    write_bytes(header)
    coefficients = (sign * model.coefficients[:, 0]).tolist()
    for coefficient, tree_texts, vector_texts in zip(coefficients, trees, vectors, strict=True):
        line = f"{coefficient!r} {_mark_texts(tree_texts, 'T')}{_mark_texts(vector_texts, 'V')}\n"
        write_bytes(line.encode(errors="surrogateescape"))


def _make_empty_texts(model: TreeModel) -> list[list[str]]:
    """Return empty texts in place of trees or vectors that have no effect."""
    return [[]] * model.n_support


def _mark_texts(texts: list[str], mark: str) -> str:
    """Return texts with markers: trees as |BT| ... |BT| ... |ET|, vectors as ... |BV| ... |EV|."""
    begin = " |BT| " if mark == "T" else ""
    return begin + f" |B{mark}| ".join(texts) + f" |E{mark}| " if texts else ""


def _format_header(model: TreeModel, threshold: float) -> bytes:
    values = _format_options(model.kernel)
    width = max((vectors.matrix.shape[1] for vectors in model.support.vectors.values()), default=0)
    largest_index = max(width, get_origin_number(model, "highest_feature_index"))
    documents = max(model.n_support, get_origin_number(model, "training_documents"))
    lines = [f"SVM-light Version {_VERSION}", f"{_COMBINED} # kernel type"]
    lines += [f"{values[option]}# kernel parameter -{option} " for option in _OPTIONS]
    lines += [
        f"{largest_index} # highest feature index ",
        f"{documents} # number of training documents ",
        f"{model.n_support + 1} # number of support vectors plus 1 ",
        f"{threshold!r} # threshold b, each following line is a SV (starting with alpha*y)",
        "",
    ]
    return "\n".join(lines).encode()


def _format_options(kernel: ExampleKernel) -> dict[str, str]:
    """Return the value of each option for the header, with a blank before its comment except for -u."""
    vector = kernel.vector if kernel.combination != "trees" else Kernel("linear")
    if vector.name == "rbf" and (why := _explain_wrong_rbf(kernel.normalize_vectors, kernel.vector_pairing)):
        raise ValueError(
            f"SVM-light-TK does not compute its rbf kernel {why}, or save the model as a .uk file"
        )
    is_affine = vector.name in ("polynomial", "sigmoid")
    values = {
        "d": vector.degree,
        "g": vector.gamma if vector.name == "rbf" else 1.0,
        "s": vector.gamma if is_affine else 1.0,
        "r": vector.coef0 if is_affine else 1.0,
        "L": float(kernel.decay),
        "T": float(kernel.tree_weight),
        "C": _find_key(_COMBINATIONS, kernel.combination),
        "F": _find_key(_TREE_KERNELS, kernel.tree),
        "S": _find_key(_VECTOR_KERNELS, vector.name),
        "M": float(kernel.width_decay),
        "N": _find_key(_NORMALIZATIONS, (kernel.normalize, kernel.normalize_vectors)),
        "V": _find_key(_PAIRINGS, kernel.vector_pairing),
        "W": _find_key(_PAIRINGS, kernel.tree_pairing),
        "U": 0,
    }
    return {option: f"{value} " for option, value in values.items()} | {"u": "empty"}


def _find_key(choices: Mapping[Any, Any], value: Any) -> Any:
    return next(key for key, choice in choices.items() if choice == value)


def _check_names(channels: list[str], kind: str) -> None:
    """Check that channels have the names 0, 1, ...; a single channel may have any name."""
    if len(channels) > 1 and channels != [str(number) for number in range(len(channels))]:
        raise ValueError(
            f"SVM-light-TK numbers the {kind} of an example, and this model's have the names "
            f"{', '.join(channels)}; name them 0, 1, and so on, or save the model as a .uk file"
        )


def _format_trees(model: TreeModel) -> list[list[str]]:
    """Return the texts of each support vector's trees; a missing tree is empty if another tree follows."""
    support = model.support.compact()
    _check_names(list(support.trees), "trees")
    _check_labels(support)
    channels = [bracket_texts(support.table, roots, bracket_leaves=True) for roots in support.trees.values()]
    texts: list[list[str]] = []
    for trees in map(list, zip(*channels, strict=True)):
        while trees and not trees[-1]:
            trees.pop()
        texts.append(trees)
    return texts


def _check_labels(support: Forest) -> None:
    """Check that SVM-light-TK can read the labels of all trees."""
    arrays = {name: np.asarray(array) for name, array in support.table.arrays().items()}
    text, ends = arrays["label_bytes"].tobytes(), arrays["label_ends"].tolist()
    labels = [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    bad_label = next((label for label in labels if _NOT_IN_LABELS.search(label)), None)
    leaves = arrays["node_labels"][np.diff(arrays["child_begins"]) == 0]
    if bad_label is None and b"" in {labels[leaf] for leaf in leaves.tolist()}:
        bad_label = b""
    if bad_label is not None:
        raise ValueError(
            f"SVM-light-TK cannot read the label {quote(bad_label)} of a tree: blanks, brackets, |BT| and "
            "|ET| have a meaning there, and words are not empty; save the model as a .uk file"
        )


def _list_vectors(model: TreeModel) -> list[list[str]]:
    """Return the texts of each support vector's vectors, one per channel; only the last may be missing."""
    channels = model.support.vectors
    _check_names(list(channels), "vectors")
    if model.support.features is not None:
        raise ValueError("SVM-light-TK numbers features, and this model's have names; save it as a .uk file")
    texts: list[list[str]] = [[] for _ in range(model.n_support)]
    for channel, vectors in enumerate(channels.values()):
        for example, text in _format_vectors(vectors):
            if len(texts[example]) < channel:
                raise ValueError(
                    f"support vector {example + 1} has a vector {channel} and none before it, which the "
                    "format of SVM-light-TK cannot express; save the model as a .uk file"
                )
            texts[example].append(text)
    return texts


def _format_vectors(vectors: Vectors) -> Iterator[tuple[int, str]]:
    """Yield the number of each example that has a vector, and the text of the vector."""
    matrix = vectors.matrix
    columns, values, begins = (part.tolist() for part in (matrix.indices, matrix.data, matrix.indptr))
    for example in np.flatnonzero(vectors.present).tolist():
        entries = range(begins[example], begins[example + 1])
        yield example, " ".join(f"{columns[entry] + 1}:{values[entry]!r}" for entry in entries)
