"""Small files that claim much memory: valid except for their proportions."""

from __future__ import annotations

import numpy as np

from unkernel.models import ConjunctionModel, KernelModel, container
from unkernel.models.decision import Decision
from unkernel.models.kernel import Kernel
from unkernel.models.model_files import model_part
from unkernel.models.model_rows import CsrRows


def columns_without_weights(path, columns=33_000, classes=12_000, unit=0.0):
    """Write a model of many columns and classes without conjunctions. If `unit` is 1, weights fit 16 bits."""
    ConjunctionModel(
        degree=2,
        sets=True,
        feature_map="kernel",
        gamma=1.0,
        coef0=1.0,
        n_features=columns,
        columns=np.arange(columns, dtype=np.int64),
        keys=np.empty(0, np.uint64),
        weights=np.empty((0, classes)),
        intercept=np.full(classes, unit or 0.1),
        classes=np.arange(classes),
    ).save(path)


def vectors_of(rows, features):
    """Return a binary CSR matrix from lists of column numbers, one per row."""
    ends = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    indices = np.concatenate(rows).astype(np.int32)
    return CsrRows.of(ends, indices, np.ones(len(indices)), features)


def vast_kernel_model(classes, *, vectors=3, features=200, degree=3):
    """Return a model of few and long support vectors, with many conjunctions."""
    rows = [np.arange(features)] * vectors
    return KernelModel(
        kernel=Kernel("polynomial", degree, 1.0, 1.0),
        vectors=vectors_of(rows, features),
        coefficients=np.ones((vectors, len(classes))),
        intercept=np.zeros(len(classes)),
        decision=Decision("one_vs_rest", classes),
        n_features=features,
        fixed_width=True,
        origin={},
    )


def write_vast_model(chunker, path, **size):
    """Write the chunker's file with another model inside."""
    kind, arrays, settings = chunker.model_.to_container()
    classes = np.arange(len(arrays["classes"]))
    model_arrays, model = model_part(vast_kernel_model(classes, **size))
    other_arrays = {key: array for key, array in arrays.items() if not key.startswith("model.")}
    container.write(path, kind, other_arrays | model_arrays, settings | model | {"engine": "expanded"})


def write_zeros(parser, path, keys=60_000, scores=16_000):
    """Write the parser's file with moves decided by packed weights: `keys` times `scores` zeros."""
    kind, arrays, settings = parser.model_.to_container()
    settings["parts"]["moves.0"]["settings"]["classes"] = {"dtype": "<i8", "values": list(range(scores))}
    zeros = {
        "columns": np.arange(keys, dtype="<i8"),
        "weights.counts": np.zeros(keys, "<u2"),
        "weights.places": np.empty(0, "<u2"),
        "weights.values": np.empty(0, "<i2"),
        "keys.steps": np.ones(keys, "<u2"),
        "keys.long_steps": np.empty(0, "<u8"),
        "constants": np.zeros(scores),
    }
    container.write(path, kind, arrays | {f"parts.moves.0.{key}": a for key, a in zeros.items()}, settings)
