"""Packed vectors and their sums are exact."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unkernel.distributed.cluster.packed_vectors import Answer, add_answers, pack_vector


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.5, -2.0, 1e-300]), min_size=1, max_size=50))
def test_packed_vectors_are_exact_and_never_larger(values: list[float]) -> None:
    vector = np.array(values)
    message = pack_vector(vector)
    assert message.nbytes <= vector.nbytes
    np.testing.assert_array_equal(message.unpack(), vector)


def test_sums_of_sparse_and_dense_answers() -> None:
    sparse_one, dense = np.array([0.0, 0.0, 0.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    total = add_answers(
        Answer(pack_vector(sparse_one)), Answer(pack_vector(dense)), Answer(pack_vector(sparse_one))
    )
    assert total.vector is not None
    np.testing.assert_array_equal(total.vector.unpack(), [1.0, 2.0, 3.0, 8.0])
    lost = add_answers(Answer(pack_vector(dense)), Answer(None, (1,)), Answer(None, (2,)))
    assert lost.vector is None
    assert lost.unprepared == (1, 2)
