"""Labels and rows of files, in the form that models take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.terminal.console import warn
from unkernel.measures.number_format import many

_LARGEST_EXACT_INTEGER = 2**53


def class_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as integers if all are whole numbers, so that they are printed as -1, not -1.0."""
    if labels.dtype.kind != "f" or not np.all(np.abs(labels) <= _LARGEST_EXACT_INTEGER):
        return labels
    whole = labels.astype(np.int64)
    return whole if np.array_equal(whole, labels) else labels


def check_classes(labels: NDArray[Any] | None, name: str) -> None:
    """Refuse labels with fractions, which are numbers to predict, not classes; None is not checked."""
    if labels is not None and labels.dtype.kind == "f" and not np.array_equal(labels, np.round(labels)):
        raise ValueError(
            f"{name} has fractions, and these models predict classes; for numbers: unkernel train regression"
        )


def match_width(model: Any, X: Any, name: str) -> Any:
    """Give rows the columns of the model; more columns are kept only if its width is not fixed."""
    if model.fixed_width:
        return drop_unknown_features(X, model.n_features, name)
    from scipy import sparse

    width = max(X.shape[1], model.n_features, 1)  # scikit-learn refuses rows without any column
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def drop_unknown_features(X: Any, n_features: int, name: str) -> Any:
    """Give rows exactly the model's columns: features without a weight are dropped, with a warning."""
    from scipy import sparse

    kept = X[:, :n_features] if X.shape[1] > n_features else X
    if ignored := X.nnz - kept.nnz:
        rows = int(np.count_nonzero(np.diff(X.indptr) != np.diff(kept.indptr)))
        warn(
            f"{name}: ignored {many(ignored, 'value')} in {many(rows, 'row')} of features that the model "
            f"does not know; it has {n_features:,}"
        )
    return sparse.csr_matrix((kept.data, kept.indices, kept.indptr), shape=(X.shape[0], n_features))
