"""Random models, and ``.uk`` files composed by hand."""

from __future__ import annotations

import json
import math

import numpy as np

from unkernel import ConjunctionModel

DTYPES = {"f8": "F64", "i8": "I64", "u8": "U64"}


def count_conjunctions(n_used, degree, sets):
    """Return the number of conjunctions of `n_used` features, including the empty one."""
    repeats = 0 if sets else 1
    return 1 + sum(math.comb(n_used + repeats * (size - 1), size) for size in range(1, degree + 1))


def make_model(
    seed=0,
    *,
    degree=2,
    sets=True,
    feature_map="kernel",
    gamma=0.5,
    coef0=2.0,
    used=4,
    n_features=6,
    classes=(0, 1),
    share=0.6,
    keys=None,
):
    """Return a model with random weights for a share of its conjunctions, or for the given keys."""
    rng = np.random.default_rng(seed)
    classes = np.asarray(classes)
    n_scores = 1 if len(classes) == 2 else len(classes)
    if keys is None:
        all_keys = np.arange(1, count_conjunctions(used, degree, sets), dtype=np.uint64)
        keys = all_keys[rng.random(len(all_keys)) < share]
    keys = np.unique(np.asarray(keys, dtype=np.uint64))
    return ConjunctionModel(
        degree=degree,
        sets=sets,
        feature_map=feature_map,
        gamma=gamma,
        coef0=coef0,
        n_features=n_features,
        columns=rng.permutation(n_features)[:used].astype(np.int64),
        keys=keys,
        weights=rng.normal(size=(len(keys), n_scores)),
        intercept=rng.normal(size=n_scores),
        classes=classes,
        origin={"C": 1.0},
    )


def settings_of(model):
    return {
        "degree": model.degree,
        "sets": model.sets,
        "feature_map": model.feature_map,
        "gamma": model.gamma,
        "coef0": model.coef0,
        "n_features": model.n_features,
        "classes": {"dtype": model.classes.dtype.str, "values": model.classes.tolist()},
        "origin": model.origin,
    }


def model_arrays(model):
    return {
        "columns": model.columns,
        "keys": model.keys,
        "weights": model.weights,
        "constants": model.intercept,
    }


def make_header(arrays, settings, **metadata):
    """Return the header's table for consecutive arrays; a metadata value of None is omitted."""
    metadata_ = {"format": "unkernel", "version": "1", "kind": "conjunctions", "settings": settings}
    metadata_ |= metadata
    if isinstance(metadata_["settings"], dict):
        metadata_["settings"] = json.dumps(metadata_["settings"])
    header = {"__metadata__": {key: value for key, value in metadata_.items() if value is not None}}
    offset = 0
    for name, array in arrays.items():
        entry = {"dtype": DTYPES[array.dtype.str[1:]], "shape": list(array.shape)}
        header[name] = entry | {"data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    return header


def join_file_parts(header, data):
    """Return the bytes of a file with this header (a table, or its text) and these arrays."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def join_arrays(arrays):
    return b"".join(array.tobytes() for array in arrays.values())


def uk_bytes(model, *, arrays=None, settings=None, **metadata):
    """Return the file of a model, with some arrays, settings or metadata replaced."""
    all_arrays = model_arrays(model) | (arrays or {})
    all_arrays = {name: array for name, array in all_arrays.items() if array is not None}
    all_settings = settings_of(model) | (settings or {})
    return join_file_parts(make_header(all_arrays, all_settings, **metadata), join_arrays(all_arrays))
