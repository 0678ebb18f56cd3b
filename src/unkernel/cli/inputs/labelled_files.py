"""Convert labels and rows of files to the classes and columns of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.terminal.console import warn
from unkernel.measures.number_format import format_count

_LARGEST_EXACT_INTEGER = 2**53


def class_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as integers if all are whole numbers; they are then printed as -1, not -1.0."""
    if labels.dtype.kind != "f" or not np.all(np.abs(labels) <= _LARGEST_EXACT_INTEGER):
        return labels
    integers = labels.astype(np.int64)
    return integers if np.array_equal(integers, labels) else labels


def check_classes(labels: NDArray[Any] | None, name: str) -> None:
    """Raise ``ValueError`` if a label is not a class because it has a fraction; None is accepted."""
    if labels is not None and labels.dtype.kind == "f" and not np.array_equal(labels, np.round(labels)):
        raise ValueError(
            f"{name} has fractions, and these models predict classes; for numbers: unkernel train regression"
        )


def match_width(model: Any, X: Any, name: str) -> Any:
    """Return rows with at least as many columns as the model has; exactly as many if its width is fixed."""
    if model.fixed_width:
        return drop_unknown_features(X, model.n_features, name)
    from scipy import sparse

    width = max(X.shape[1], model.n_features, 1)  # scikit-learn requires at least one column
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def drop_unknown_features(X: Any, n_features: int, name: str) -> Any:
    """Return rows with exactly `n_features` columns; warn if values in further columns are dropped."""
    from scipy import sparse

    known_columns = X[:, :n_features] if X.shape[1] > n_features else X
    n_ignored = X.nnz - known_columns.nnz
    if n_ignored:
        rows = int(np.count_nonzero(np.diff(X.indptr) != np.diff(known_columns.indptr)))
        warn(
            f"{name}: ignored {format_count(n_ignored, 'value')} in {format_count(rows, 'row')} of features "
            f"that the model does not know; it has {n_features:,}"
        )
    return sparse.csr_matrix(
        (known_columns.data, known_columns.indices, known_columns.indptr), shape=(X.shape[0], n_features)
    )
