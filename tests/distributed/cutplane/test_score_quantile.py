"""Quantiles of the scores of several parts, compared with the sorted scores."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unkernel.distributed.cluster.packed_vectors import add_answers, pack_vector
from unkernel.distributed.cluster.row_blocks import make_block
from unkernel.distributed.cluster.row_parts import Packing, Part
from unkernel.distributed.cutplane import score_quantile


class LocalCluster:
    """Parts in this process."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts, self.rows = parts, [len(part.labels) for part in parts]
        self.traffic: Counter[str] = Counter()

    def broadcast(self, vector: Any, purpose: str) -> Any:
        return pack_vector(vector)

    def ask(self, task: Any, arguments: Any) -> list[Any]:
        return [task(part, *arguments(k)) for k, part in enumerate(self.parts)]

    def sum_answers(self, task: Any, arguments: Any, purpose: str) -> Any:
        self.traffic[purpose] += 1
        return add_answers(*self.ask(task, arguments)).vector.unpack()


def find_on_workers(
    scores: np.ndarray, below: int, max_fetched: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[float, int]:
    """Return the quantile, and the number of requests for counts."""
    monkeypatch.setattr(score_quantile, "_MAX_FETCHED_ROWS", max_fetched)
    monkeypatch.setattr(score_quantile, "_RANGE_CELLS", 8)
    pieces = np.array_split(scores, 3)
    parts = [
        Part([make_block(piece[:, None], np.zeros(len(piece)))], Packing(k, 0, 1, 0.0, 1))
        for k, piece in enumerate(pieces)
    ]
    cluster: Any = LocalCluster(parts)
    return score_quantile.find_score_quantile(cluster, np.ones(1), below), cluster.traffic["counts"]


@given(
    values=st.lists(
        st.sampled_from([-3.0, -0.5, 0.0, 0.1, 0.25, 2.0, 1e6]) | st.floats(-5, 5), min_size=3, max_size=40
    ),
    place=st.floats(0, 1),
    max_fetched=st.sampled_from([0, 2, 100]),
)
def test_rows_are_divided_where_sorted_scores_are(
    values: list[float], place: float, max_fetched: int
) -> None:
    scores = np.array(values)
    below = 1 + int(place * (len(scores) - 2))
    with pytest.MonkeyPatch.context() as patch:
        quantile, n_counts = find_on_workers(scores, below, max_fetched, patch)
    ordered = np.sort(scores)
    assert quantile == (ordered[below - 1] + ordered[below]) / 2
    assert (n_counts == 0) == (max_fetched == 100)
