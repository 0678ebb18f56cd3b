"""A model made ready to answer."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array

from unkernel._core import ConjunctionEngine
from unkernel.errors import FormatError
from unkernel.models import ConjunctionModel, load_model


class CompiledClassifier:
    """A trained model, ready to classify. Immutable, and safe to use from many threads.

    Parameters
    ----------
    model : ConjunctionModel
        What a learner's ``to_model()`` gives, or what was loaded from a file.

    Attributes
    ----------
    model : ConjunctionModel
    classes_ : ndarray
    n_features_in_ : int
    nbytes : int
        Bytes that the compiled tables take.

    Examples
    --------
    >>> from unkernel import PolySVC
    >>> clf = PolySVC(degree=2).fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> CompiledClassifier(clf.to_model()).predict([[1, 0]])
    array([1])
    """

    def __init__(self, model: ConjunctionModel) -> None:
        self.model = model
        self.classes_ = model.classes
        self.n_features_in_ = model.n_features

    @cached_property
    def _engine(self) -> ConjunctionEngine:
        """The native tables, made when they are first needed: a fit that is only saved needs none."""
        model = self.model
        return ConjunctionEngine(
            sets=model.sets,
            degree=model.degree,
            map=model.feature_map,
            gamma=model.gamma,
            coef0=model.coef0,
            features=model.n_features,
            columns=np.ascontiguousarray(model.columns),
            keys=np.ascontiguousarray(model.keys),
            weights=np.ascontiguousarray(model.weights).reshape(-1),
            constants=np.ascontiguousarray(model.constants),
        )

    def validate(self) -> CompiledClassifier:
        """Build the tables now; a model that is not sound is a ``ValueError``."""
        _ = self._engine
        return self

    @property
    def nbytes(self) -> int:
        """Bytes that the compiled tables take."""
        return int(self._engine.nbytes)

    def decision_function(self, X: ArrayLike, *, n_jobs: int = 1) -> NDArray[np.float64]:
        """Scores: one per row for two classes, else one per row and class."""
        rows = check_array(X, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {rows.shape[1]} features, but the model was trained on {self.n_features_in_}"
            )
        return self.score_csr(canonical_csr(rows), n_jobs)

    def score_csr(self, rows: Any, n_jobs: int) -> NDArray[np.float64]:
        """``decision_function`` of rows that are known to be a proper CSR matrix."""
        scores = np.asarray(self._engine.score(rows.indptr, rows.indices, rows.data, n_jobs))
        if not np.isfinite(scores).all():
            raise ValueError(
                "a score is not finite: the values of X are too large for the kernel; scale them"
            )
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike, *, n_jobs: int = 1) -> NDArray[Any]:
        """The class of each row."""
        return self.choose(self.decision_function(X, n_jobs=n_jobs))

    def choose(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        """The class that the scores speak for."""
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[codes]
        return chosen

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a ``.uk`` file, whole or not at all."""
        self.model.save(path)

    def to_model(self) -> ConjunctionModel:
        """The model that this was compiled from."""
        return self.model

    def __reduce__(self) -> tuple[type[CompiledClassifier], tuple[ConjunctionModel]]:
        return CompiledClassifier, (self.model,)

    def __repr__(self) -> str:
        model = self.model
        return (
            f"CompiledClassifier(degree={model.degree}, classes={len(self.classes_)}, "
            f"conjunctions={model.n_conjunctions})"
        )


def canonical_csr(X: Any) -> Any:
    """A CSR matrix with sorted, unique columns and one index type, as the core wants it."""
    rows = X if sparse.issparse(X) else sparse.csr_matrix(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if rows.indptr.dtype != rows.indices.dtype:
        rows = rows.copy()
        rows.indptr = rows.indptr.astype(np.int64)
        rows.indices = rows.indices.astype(np.int64)
    return rows


def load(path: str | os.PathLike[str]) -> CompiledClassifier:
    """Read a ``.uk`` file and make it ready to classify.

    Raises
    ------
    FormatError
        If the file is not a model, is damaged, or was written by a newer unkernel.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> clf = load("model.uk")  # doctest: +SKIP
    >>> clf.predict(X)  # doctest: +SKIP
    """
    model = load_model(path)
    try:
        return CompiledClassifier(model).validate()
    except ValueError as error:
        raise FormatError(os.fspath(path), 0, 0, str(error)) from error
