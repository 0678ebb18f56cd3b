"""Choose the rows that ``compile`` measures on, and the rows that prefix tries grow from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from unkernel.data.rows.csr import canonical_rows
from unkernel.models import ConjunctionModel, KernelModel, LinearModel, model_rows

Model = KernelModel | LinearModel | ConjunctionModel

_HELD_OUT_STEP = 10  # one in ten rows measures tries instead of growing them
_MAX_SAMPLE_ROWS = 20_000


@dataclass(frozen=True)
class MeasuredRows:
    """Canonical CSR rows: candidates are measured on `sample`, and tries grow from `trie`."""

    sample: Any = None
    trie: Any = None


def choose_rows(model: Model, sample: Any, trie: Any) -> MeasuredRows:
    """Return the given sample or, without a sample, rows held out from `trie` or the support vectors.

    Models of weights have no support vectors: if neither a sample nor trie rows are given, nothing is
    measured.
    """
    trie_rows = None if trie is None else _read_rows(trie, model)
    if trie_rows is not None and trie_rows.shape[0] == 0:
        raise ValueError("trie has no rows to grow from")
    if sample is not None:
        sample_rows = _read_rows(sample, model)
        if sample_rows.shape[0] == 0:
            raise ValueError("the sample has no rows to measure on")
    elif trie_rows is not None:
        trie_rows, sample_rows = _hold_out(trie_rows)
    elif isinstance(model, KernelModel):
        sample_rows = model.vectors
    else:
        return MeasuredRows()
    return MeasuredRows(_thin_out(sample_rows), trie_rows)


def _read_rows(source: Any, model: Model) -> Any:
    """Return the rows of an array, a matrix or a file, with the model's number of columns."""
    if isinstance(source, str | os.PathLike):
        return canonical_rows(model_rows.read_for(model, source).X)
    return model_rows.check_model_rows(source, model.n_features, model.fixed_width)


def _hold_out(rows: Any) -> tuple[Any, Any]:
    """Return the rows to grow a trie from, and the rows to measure it on."""
    if rows.shape[0] < 2:
        raise ValueError("trie needs at least 2 rows, one to grow from and one to measure; or give a sample")
    positions = np.arange(rows.shape[0])
    if len(positions) >= _HELD_OUT_STEP:
        is_held_out = positions % _HELD_OUT_STEP == _HELD_OUT_STEP // 2
    else:
        is_held_out = positions == len(positions) - 1
    return rows[~is_held_out], rows[is_held_out]


def _thin_out(rows: Any) -> Any:
    """Return at most ``_MAX_SAMPLE_ROWS`` rows, evenly spaced."""
    if rows.shape[0] <= _MAX_SAMPLE_ROWS:
        return rows
    chosen = np.linspace(0, rows.shape[0] - 1, _MAX_SAMPLE_ROWS).astype(np.int64)
    return rows[chosen]
