"""Read classifiers from ``.uk`` files."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from unkernel.data import file_memory_limit
from unkernel.data.files import name_of
from unkernel.engines.rows.classifier import ENGINE, CompiledClassifier, Model
from unkernel.engines.search.candidates import Candidate
from unkernel.engines.tables.compiled_tables import INT16, Tables
from unkernel.engines.tables.int16 import build_int16
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.models.model_files import COMPILED, model_from

if TYPE_CHECKING:
    from unkernel.engines.trees.classifier import TreeClassifier
    from unkernel.models import TreeModel

# Models that take more bytes than this, not counting tables, are checked when they are first needed.
_MAX_BYTES_CHECKED_AT_LOAD = 1 << 24


def load(path: str | os.PathLike[str]) -> CompiledClassifier | TreeClassifier:
    """Read a compiled classifier or a model of rows or trees from a ``.uk`` file.

    This function is like :func:`unkernel.load`, but files of parsers raise a ``FormatError``.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    CompiledClassifier or TreeClassifier
        The classifier.

    Raises
    ------
    FormatError
        If the file is damaged or has another kind.

    See Also
    --------
    unkernel.load : Read a file of any kind.

    Examples
    --------
    >>> from unkernel import PolySVC
    >>> from unkernel.engines import load
    >>> PolySVC(gamma=1).fit([[0, 1], [1, 0]], [0, 1]).save("model.uk")
    >>> load("model.uk").predict([[1, 0]])
    array([1])
    """
    with file_memory_limit.limit_file(path):
        opened = container.open_file(path)
        classifier = make_classifier(name_of(path), opened.arrays, opened.settings, kind=opened.kind)
    classifier.mapped_file = opened.file
    return classifier


def make_classifier(
    name: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any], *, kind: Any
) -> CompiledClassifier | TreeClassifier:
    """Return a classifier made from the contents of the file `name`, after checks."""
    try:
        any_model = model_from(name, kind, arrays, settings)
        if any_model.kind == "tree":
            from unkernel.engines.trees.classifier import TreeClassifier

            tree_classifier = TreeClassifier(cast("TreeModel", any_model))
            file_memory_limit.claim(tree_classifier.bytes_to_come(), "the weights of subtrees")
            return tree_classifier
        model = cast(Model, any_model)
        if kind == COMPILED:
            return _make_compiled_classifier(name, model, arrays, settings).validate()
        return CompiledClassifier(model).validate()
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(name, 0, 0, str(error)) from error


# One loader per kind of file. The registry calls loaders with name, arrays and settings.
load_compiled = partial(make_classifier, kind=COMPILED)
load_conjunctions = partial(make_classifier, kind="conjunctions")
load_kernel = partial(make_classifier, kind="kernel")
load_linear = partial(make_classifier, kind="linear")
load_tree = partial(make_classifier, kind="tree")


def _make_compiled_classifier(
    name: str, model: Model, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]
) -> CompiledClassifier:
    """Return a classifier with the stored tables; raise a ``FormatError`` if they do not fit the model."""
    candidates = settings.get("candidates")
    if not isinstance(candidates, list):
        raise FormatError(name, 0, 0, "the table of candidate engines is damaged")
    engine_arrays = {
        key.removeprefix(ENGINE): array for key, array in arrays.items() if key.startswith(ENGINE)
    }
    tables = Tables.from_json(settings.get("tables"), engine_arrays)
    if tables.layout == INT16:
        tables = build_int16(model)
    compiled = CompiledClassifier(model, tables, [Candidate.from_json(stored) for stored in candidates])
    if compiled._engine.scores != model.decision.n_scores:
        raise FormatError(name, 0, 0, "the compiled tables do not fit the model")
    if tables.layout == INT16:
        return compiled  # this engine reads the arrays of the model, and checks them when it is built
    return compiled.check_model(name, largest=_MAX_BYTES_CHECKED_AT_LOAD)
