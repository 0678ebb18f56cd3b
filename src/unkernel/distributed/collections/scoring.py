"""Answers of compiled classifiers to Dask collections: lazy, and with the model once on each worker."""

from __future__ import annotations

import math
from typing import Any

import dask
import numpy as np
from scipy import sparse

from unkernel.distributed.collections.lazy_blocks import by_block, is_frame
from unkernel.engines.estimator import CompiledEstimator


class WorkerModel:
    """A classifier on a worker. What others get of it is the name of its file; without one, all of it."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def __reduce__(self) -> tuple[Any, ...]:
        file = self.classifier.mapped_file
        return (WorkerModel, (self.classifier,)) if file is None else (opened, tuple(file))


def opened(path: str, digest: str) -> WorkerModel:
    """Map the file of a model. The processes of a machine share its pages."""
    try:
        classifier = CompiledEstimator.load(path)
    except OSError as error:
        raise type(error)(
            error.errno,
            f"a worker cannot read the model ({error.strerror}): have it on a file system that all workers "
            "see, or send it to them: unkernel.load(path, mmap=False)",
            path,
        ) from None
    if classifier.mapped_file is None or classifier.mapped_file.digest != digest:
        raise ValueError(f"{path}: the file is no longer the model that was loaded; load it again")
    return WorkerModel(classifier)


def lazy_answers(classifier: CompiledEstimator, method: str, X: Any, n_jobs: int | None) -> Any:
    """The answers of a method to the rows or records of a Dask array or data frame, as a Dask array."""
    nothing = _no_answers(classifier, method, X)  # which says what is wrong with X before anything is run
    options = {"method": method, "n_jobs": n_jobs}
    known = _known_columns(classifier, X)
    return by_block(known, _answers, options, once=_model_task(classifier), nothing=nothing)


def _answers(block: Any, model: WorkerModel, *, method: str, n_jobs: int | None) -> Any:
    return getattr(model.classifier, method)(block, n_jobs=n_jobs)


def _model_task(classifier: Any) -> Any:
    if classifier.mapped_file is None:
        return dask.delayed(WorkerModel(classifier), pure=True, traverse=False)
    return dask.delayed(opened, pure=True)(*classifier.mapped_file)


def _no_answers(classifier: Any, method: str, X: Any) -> Any:
    """An array of no answers that has their type, found by asking about one row that is made up."""
    if hasattr(classifier, "plan"):
        classifier.plan.encode(X._meta if is_frame(X) else np.empty((0, *X.shape[1:]), X.dtype), 1)
        row: Any = sparse.csr_matrix((1, classifier.plan.n_features))
        classifier = classifier.classifier
    elif is_frame(X):
        row = X._meta_nonempty
    else:
        widths = [classifier.n_features_in_ if math.isnan(width) else width for width in X.shape[1:]]
        row = np.zeros((1, *widths))
    return getattr(classifier, method)(row)[:0]


def _known_columns(classifier: Any, X: Any) -> Any:
    """Of a frame, only those columns that a model of records reads; others need not even be loaded."""
    if not hasattr(classifier, "plan") or not hasattr(X, "columns"):
        return X
    return X[[name for name in X.columns if name in set(classifier.plan.columns)]]
