"""Answers of compiled classifiers to Dask collections: lazy, and with the model once on each worker."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import dask
import dask.array
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from scipy import sparse

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
    ask = partial(_answers, nothing=nothing, method=method, n_jobs=n_jobs)
    if _is_frame(X):
        return _answers_by_partition(_known_columns(classifier, X), ask, _model_task(classifier), nothing)
    return _answers_by_chunk(X, ask, _model_task(classifier), nothing)


def _is_frame(X: Any) -> bool:
    if isinstance(X, dask.array.Array):
        return False
    if hasattr(type(X), "divisions"):
        return True
    raise TypeError(f"Dask arrays and data frames are answered, and X is a {type(X).__name__}")


def _no_answers(classifier: Any, method: str, X: Any) -> Any:
    """An array of no answers that has their type, found by asking about one row that is made up."""
    if hasattr(classifier, "plan"):
        classifier.plan.encode(X._meta if _is_frame(X) else np.empty((0, *X.shape[1:]), X.dtype), 1)
        row: Any = sparse.csr_matrix((1, classifier.plan.n_features))
        classifier = classifier.classifier
    elif _is_frame(X):
        row = X._meta_nonempty
    else:
        widths = [classifier.n_features_in_ if math.isnan(width) else width for width in X.shape[1:]]
        row = np.zeros((1, *widths))
    return getattr(classifier, method)(row)[:0]


def _model_task(classifier: Any) -> Any:
    """The model as a task of its own: Dask has its result once on each worker that needs it."""
    if classifier.mapped_file is None:
        return dask.delayed(WorkerModel(classifier), pure=True, traverse=False)
    return dask.delayed(opened, pure=True)(*classifier.mapped_file)


def _answers(X: Any, model: WorkerModel, *, nothing: Any, method: str, n_jobs: int | None) -> Any:
    """The answers to a chunk, which may be empty: what is left of it by a filter, say."""
    return getattr(model.classifier, method)(X, n_jobs=n_jobs) if X.shape[0] else nothing


def _known_columns(classifier: Any, X: Any) -> Any:
    """A frame of only those columns that a model of records reads; others need not even be loaded."""
    if not hasattr(classifier, "plan") or X.ndim == 1:
        return X
    return X[[name for name in X.columns if name in set(classifier.plan.columns)]]


def _answers_by_chunk(X: Any, ask: Any, model: Any, nothing: Any) -> Any:
    """One chunk of answers for each chunk of rows, which may be divided by columns as well."""
    return dask.array.blockwise(
        ask,
        "ik"[: nothing.ndim],
        *(X, "ij"[: X.ndim]),
        *(model, None),
        new_axes={"k": nothing.shape[1]} if nothing.ndim == 2 else None,
        concatenate=True,
        meta=nothing,
    )


def _answers_by_partition(X: Any, ask: Any, model: Any, nothing: Any) -> Any:
    """One chunk of answers, of unknown size, for each partition.

    ``map_partitions`` takes no task of another kind beside the frame: its fusion of tasks fails at times.
    """
    partitions = X.to_delayed()
    name = f"{ask.keywords['method']}-{tokenize(X, model, ask)}"
    places = [(name, number, *[0] * (nothing.ndim - 1)) for number in range(len(partitions))]
    tasks = {
        place: (ask, partition.key, model.key) for place, partition in zip(places, partitions, strict=True)
    }
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=[*partitions, model])
    chunks = ((math.nan,) * len(partitions), *((size,) for size in nothing.shape[1:]))
    return dask.array.Array(graph, name, chunks, meta=nothing)
