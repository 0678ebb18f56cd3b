"""read_svmlight_parts: the parts together equal what read_svmlight returns."""

from __future__ import annotations

import io
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from unkernel.data import read_svmlight, read_svmlight_parts
from unkernel.errors import FormatError


def write_text(rows, *, queries=False, first=1):
    rng = np.random.default_rng(rows)
    lines = []
    for i in range(rows):
        columns = np.sort(rng.choice(40, rng.integers(0, 9), replace=False)) + first
        entries = " ".join(f"{column}:{rng.normal():.3g}" for column in columns)
        query = f"qid:{i // 4} " if queries else ""
        lines.append(f"{i % 3} {query}{entries}  # row {i}\n")
    return "".join(lines).encode()


def join_parts(parts):
    parts = list(parts)
    width = parts[-1].X.shape[1]
    rows = [part.X.copy() for part in parts]
    for X in rows:
        X.resize(X.shape[0], width)
    qid = None if parts[0].qid is None else np.concatenate([part.qid for part in parts])
    return sparse.vstack(rows).tocsr(), np.concatenate([part.y for part in parts]), qid


@given(st.integers(1, 60), st.integers(1, 2000), st.booleans(), st.integers(0, 1), st.integers(1, 3))
def test_equals_the_whole_file(rows, part_bytes, queries, first, n_jobs):
    text = write_text(rows, queries=queries, first=first)
    expected = read_svmlight(io.BytesIO(text))
    parts = list(read_svmlight_parts(io.BytesIO(text), part_bytes=part_bytes, n_jobs=n_jobs))
    X, y, qid = join_parts(parts)
    assert parts[-1].has_zero_index == expected.zero_based
    assert (
        parts[-1].largest_index + 1 == X.shape[1] == expected.X.shape[1] + (0 if expected.zero_based else 1)
    )
    np.testing.assert_array_equal(X.toarray()[:, 0 if expected.zero_based else 1 :], expected.X.toarray())
    np.testing.assert_array_equal(y, expected.y)
    if queries:
        np.testing.assert_array_equal(qid, expected.qid)
    else:
        assert qid is None and expected.qid is None


def test_parts_have_about_the_requested_size():
    text = write_text(2000)
    parts = list(read_svmlight_parts(io.BytesIO(lzma.compress(text)), part_bytes=10_000))
    assert len(text) / 10_000 - 1 <= len(parts) <= len(text) / 10_000 + 1


@pytest.mark.parametrize("part_bytes", [1, 50, 10**6])
@pytest.mark.parametrize(
    ("text", "options"),
    [
        (b"1 1:1\n2 3:1\n\n# note\n1 3:x\n", {}),
        (b"1 1:1\n2 3:1\n3 9:1\n1 3:1\n", {"n_features": 8}),
        (b"1 1:1\n2 0:1\n3 8:1\n1 3:1\n", {"n_features": 8}),
        (b"1 1:1\n2 0:1\n", {"zero_based": False}),
        (b"1 qid:1 1:1\n2 qid:1 1:1\n2 1:1\n", {}),
        (b"1 1:1\n2 1:1\n2 qid:4 1:1\n", {}),
        (b"\n# nothing\n", {}),
        (b"", {}),
        (lzma.compress(b"1 1:1\n" * 100)[:-20], {}),
    ],
)
def test_parts_and_the_whole_file_have_the_same_errors(text, options, part_bytes):
    with pytest.raises(FormatError) as whole_error:
        read_svmlight(io.BytesIO(text), **options)
    with pytest.raises(FormatError) as parts_error:
        list(read_svmlight_parts(io.BytesIO(text), part_bytes=part_bytes, **options))
    assert str(parts_error.value) == str(whole_error.value)


def test_wide_indices():
    parts = list(read_svmlight_parts(io.BytesIO(b"1 1:1\n1 5000000000:1\n1 2:1\n"), part_bytes=1))
    assert [part.X.indices.tolist() for part in parts] == [[1], [5_000_000_000], [2]]
    assert [part.largest_index_line for part in parts] == [1, 2, 2]


@pytest.mark.parametrize("options", [{"part_bytes": 0}, {"n_features": 0}, {"zero_based": "yes"}])
def test_options_are_checked_before_the_first_part(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        read_svmlight_parts(io.BytesIO(b"1 1:1\n"), **options)
