"""Read trees for training, testing and prediction, and tell files of trees from files of rows."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from numpy.typing import NDArray

from unkernel.cli.inputs.examples import Examples
from unkernel.cli.inputs.file_contents import check_no_bare_trees, check_no_model, read_beginning
from unkernel.cli.inputs.file_contents import has_trees as _begins_with_trees
from unkernel.cli.inputs.labelled_files import class_labels
from unkernel.cli.terminal.progress import Display
from unkernel.data import TreeData, read_trees
from unkernel.data.trees.forest import Forest
from unkernel.errors import FormatError, warn_caller
from unkernel.models import TreeModel

_TREE_SUFFIXES = {".klp", ".conllu"}  # suffixes of files that can only contain trees
_EXAMPLE = "a line is, for example: 1 |BT| (S (NP dogs) (VP bark)) |ET|"


class UnusedPartWarning(UserWarning):
    """Warns that a model ignores some trees or vectors of examples."""


def is_tree_file(file: str) -> bool:
    """Return whether the name or the first line of a file indicates trees; False for pipes."""
    if not Path(file).is_file():
        return False
    return bool(_TREE_SUFFIXES & set(PurePath(file).suffixes)) or _begins_with_trees(read_beginning(file))


def check_holds_rows(file: str, remedy: str) -> None:
    """Raise ``ValueError`` if a file begins with a model or trees instead of rows."""
    check_no_model(file, "rows")
    if is_tree_file(file):
        raise ValueError(f"{file}: holds trees, not rows of features; {remedy}")


@contextlib.contextmanager
def explain_trees(remedy: str) -> Iterator[None]:
    """If a reader of rows fails because of a tree, raise an error that gives this reason."""
    try:
        yield
    except FormatError as error:
        if not error.reason.startswith("'|B"):  # the reader of rows stopped at |BT|, |BV| or |BS|
            raise
        reason = f"this is a line of trees, not of features; {remedy}"
        raise FormatError(error.file, error.line, error.column, reason) from error


def check_rows_only(files: Sequence[str], zero_based: bool | None, cache: int | None = None) -> None:
    """Raise ``ValueError`` for several files, and for options that apply only to rows."""
    if len(files) > 1:
        raise ValueError(f"{files[-1]}: trees are read from one file; join the files first")
    if zero_based is not None:
        raise ValueError("--zero-based and --one-based are for rows, not for trees")
    if cache is not None:
        raise ValueError("--cache-rows is for rows and records, not for trees")


@dataclass(frozen=True, eq=False)
class TreeExamples(Examples):
    """Trees of a file, with their vectors and labels."""

    file: str
    data: TreeData
    seconds: float

    @property
    def count(self) -> int:
        return len(self.data.X)

    @property
    def has_trees(self) -> bool:
        """Whether at least one example has a tree."""
        return any(bool((roots >= 0).any()) for roots in self.data.X.trees.values())

    @property
    def has_vectors(self) -> bool:
        """Whether at least one example has a vector."""
        return any(bool(vectors.present.any()) for vectors in self.data.X.vectors.values())

    @property
    def n_features(self) -> int:
        """The number of columns of the vectors; 0 if there are no vectors."""
        return max((vectors.matrix.shape[1] for vectors in self.data.X.vectors.values()), default=0)

    @property
    def source(self) -> Any:
        """The trees, for ``fit``."""
        return self.data.X

    @property
    def labels(self) -> NDArray[Any]:
        """Labels as classes, for ``fit``."""
        if self.data.y is None:
            raise ValueError(f"{self.file}: has trees and no labels; {_EXAMPLE}")
        return class_labels(self.data.y)


def read(file: str, display: Display) -> TreeExamples:
    """Read the trees of a file, with or without labels."""
    check_no_model(file, "trees")
    check_no_bare_trees(file)
    start = time.perf_counter()
    with display.show_reading(file) as stream:
        data = read_trees(stream)
    return TreeExamples(file, data, time.perf_counter() - start)


def read_labelled(file: str, display: Display) -> TreeExamples:
    """Read the trees of a file; raise ``ValueError`` if they have no labels."""
    examples = read(file, display)
    _ = examples.labels  # raises the error
    return examples


def read_test(file: str, display: Display, training: TreeExamples) -> TreeExamples:
    """Read test trees. This happens before training: a bad file must not be found after long training."""
    tests = read_labelled(file, display)
    if training.has_trees and not tests.has_trees:
        raise ValueError(f"{file}: has no trees, but {training.file} has; {_EXAMPLE}")
    return tests


def read_for_model(model: TreeModel, path: Path, file: str, display: Display) -> TreeExamples:
    """Read the trees to predict; raise ``ValueError`` if they lack a part that the kernel compares."""
    examples = read(file, display)
    combination = model.kernel.combination
    if combination in ("trees", "product") and not examples.has_trees:
        raise ValueError(f"{file}: has no trees, and the model {path} compares trees; {_EXAMPLE}")
    if combination in ("vectors", "product") and not examples.has_vectors:
        raise ValueError(
            f"{file}: has no vectors (index:value behind |ET|), and the model {path} compares vectors"
        )
    for part in _list_compared_parts(model, examples.data.X):
        reason = f"the model {path} compares {part}; the rest of each example is ignored"
        warn_caller(f"{file}: {reason}", UnusedPartWarning)
    return examples


def _list_compared_parts(model: TreeModel, forest: Forest) -> list[str]:
    """Describe the trees and vectors that a model compares; return [] if it ignores nothing in a forest."""
    compared = []
    for name, example_parts, model_parts, pairing in (
        ("trees", forest.trees, model.support.trees, model.kernel.tree_pairing),
        ("vectors", forest.vectors, model.support.vectors, model.kernel.vector_pairing),
    ):
        # The first case: the kernel compares only the other kind of part. The second: it compares parts of
        # the same name, and the support examples lack some of them.
        if example_parts and model.kernel.combination == {"trees": "vectors", "vectors": "trees"}[name]:
            compared.append(f"no {name}")
        elif pairing != "all" and len(example_parts) > 1 and example_parts.keys() - model_parts.keys():
            compared.append(
                f"{len(example_parts.keys() & model_parts.keys())} of {len(example_parts)} {name} per example"
            )
    return compared
