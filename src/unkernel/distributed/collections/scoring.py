"""Lazy predictions of compiled classifiers for Dask collections, with one model per worker."""

from __future__ import annotations

import math
from typing import Any

import dask
import numpy as np
from scipy import sparse

from unkernel.distributed.collections.lazy_blocks import is_frame, map_blocks
from unkernel.engines.estimator import CompiledEstimator


class WorkerModel:
    """A classifier on a worker. It is sent as the path of its file or, if it has no file, as a whole."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def __reduce__(self) -> tuple[Any, ...]:
        file = self.classifier.mapped_file
        return (WorkerModel, (self.classifier,)) if file is None else (open_model, tuple(file))


def open_model(path: str, digest: str) -> WorkerModel:
    """Return a model whose file is mapped into memory; all processes of a machine share its pages."""
    try:
        classifier = CompiledEstimator.load(path)
    except OSError as error:
        raise type(error)(
            error.errno,
            f"a worker cannot read the model ({error.strerror}): keep it on a file system that all workers "
            "share, or load it so that it is sent to them: unkernel.load(path, mmap=False)",
            path,
        ) from None
    if classifier.mapped_file is None or classifier.mapped_file.digest != digest:
        raise ValueError(f"{path}: the file is no longer the model that was loaded; load it again")
    return WorkerModel(classifier)


def lazy_answers(classifier: CompiledEstimator, method: str, X: Any, n_jobs: int | None) -> Any:
    """Return the results of a method for a Dask array or data frame, as a lazy Dask array."""
    empty = _make_empty_answers(classifier, method, X)  # checks X before anything runs
    options = {"method": method, "n_jobs": n_jobs}
    known = _select_known_columns(classifier, X)
    return map_blocks(known, _answer_block, options, shared=_make_model_task(classifier), empty=empty)


def _answer_block(block: Any, model: WorkerModel, *, method: str, n_jobs: int | None) -> Any:
    return getattr(model.classifier, method)(block, n_jobs=n_jobs)


def _make_model_task(classifier: Any) -> Any:
    if classifier.mapped_file is None:
        return dask.delayed(WorkerModel(classifier), pure=True, traverse=False)
    return dask.delayed(open_model, pure=True)(*classifier.mapped_file)


def _make_empty_answers(classifier: Any, method: str, X: Any) -> Any:
    """Return an empty array with the type of the results, found by predicting an artificial row."""
    if hasattr(classifier, "plan"):
        classifier.plan.encode(X._meta if is_frame(X) else np.empty((0, *X.shape[1:]), X.dtype), 1)
        row: Any = sparse.csr_matrix((1, classifier.plan.n_features))
        classifier = classifier.classifier
    elif is_frame(X):
        row = X._meta_nonempty
    else:
        widths = [classifier.n_features_in_ if math.isnan(width) else width for width in X.shape[1:]]
        row = np.zeros((1, *widths))
    answers = getattr(classifier, method)(row)
    if isinstance(answers, list):
        raise ValueError(
            "the probabilities of several outputs are a list of arrays, and a lazy array is one: compute "
            "decision_function, or map predict_proba over the partitions"
        )
    return answers[:0]


def _select_known_columns(classifier: Any, X: Any) -> Any:
    """Select the columns that a model of records reads; Dask then does not load the other columns."""
    if not hasattr(classifier, "plan") or not hasattr(X, "columns"):
        return X
    return X[[name for name in X.columns if name in set(classifier.plan.columns)]]
