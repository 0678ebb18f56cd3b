"""Ctrl-C ends every long native loop: scores, parses, tables."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from reference.interrupts import hears_signals
from reference.kernels import make_kernel_model
from reference.parse_corpora import bunsetsu, chunks, treebank
from reference.processes import needs_sigint
from unkernel import compile
from unkernel.data.rows.csr import CsrRows
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker

pytestmark = [needs_sigint, pytest.mark.hostile]


def many_rows(rows: int) -> CsrRows:
    """Return rows of eight features each."""
    generator = np.random.default_rng(0)
    indices = np.sort(generator.integers(0, 5, (rows, 8)) + 5 * np.arange(8), axis=1).ravel()
    return CsrRows.of(np.arange(0, 8 * rows + 1, 8), indices, np.ones(8 * rows), 40)


@functools.cache
def compiled(engine: str) -> Any:
    return compile(make_kernel_model(vectors=5_000, features=40), engine=engine)


@pytest.mark.parametrize("method", ["decision_function", "predict"])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("engine", ["inverted", "bitsliced", "expanded", "split"])
def test_scores(engine, n_jobs, method):
    fast = compiled(engine)
    X = many_rows(4_000_000)
    assert hears_signals(lambda: getattr(fast, method)(X, n_jobs=n_jobs))


TEXTS = {ArcEagerParser: treebank, Chunker: chunks, BunsetsuParser: bunsetsu}


@pytest.mark.parametrize("parser", TEXTS)
def test_parses(parser, tmp_path):
    (tmp_path / "small").write_text(TEXTS[parser](40, 0))
    (tmp_path / "large").write_text(TEXTS[parser](200, 1) * 2000)
    model = parser().fit(tmp_path / "small")
    large = model.read(tmp_path / "large") if hasattr(model, "read") else tmp_path / "large"
    assert hears_signals(lambda: model.parse(large))


@pytest.mark.parametrize("parser", TEXTS)
def test_training_of_parsers(parser, tmp_path):
    (tmp_path / "large").write_text(TEXTS[parser](200, 1) * 2000)
    assert hears_signals(lambda: parser().fit(tmp_path / "large"))
