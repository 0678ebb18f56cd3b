"""write_svmlight: exact round trips, and no partial files."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from unkernel import _core
from unkernel.data import read_svmlight, write_svmlight
from unkernel.data.rows import svmlight_writer

finite = st.floats(allow_nan=False, allow_infinity=False)
matrices = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.one_of(st.just(0.0), finite),
)


@given(matrices, st.data(), st.booleans(), st.booleans())
def test_written_rows_are_read_back_exactly(X, data, zero_based, wide):
    y = data.draw(hnp.arrays(np.float64, len(X), elements=finite))
    qid = data.draw(st.none() | hnp.arrays(np.int64, len(X)))
    matrix = sparse.csr_matrix(X)
    if wide:
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    stream = io.BytesIO()
    write_svmlight(stream, matrix, y, qid=qid, zero_based=zero_based, comment="first\nsecond é")
    stream.seek(0)
    reread = read_svmlight(stream, n_features=X.shape[1], zero_based=zero_based)
    np.testing.assert_array_equal(reread.X.toarray(), X)
    assert np.signbit(reread.y).tolist() == np.signbit(y).tolist()
    np.testing.assert_array_equal(reread.y, y)
    assert (reread.qid is None) if qid is None else reread.qid.tolist() == qid.tolist()
    assert reread.comments == 2


def test_the_text_is_the_shortest():
    stream = io.StringIO()
    write_svmlight(stream, [[0.1, 0, 1e300], [0, 0, 0]], [1, -1.5], qid=[7, 8])
    assert stream.getvalue() == "1 qid:7 1:0.1 3:1e+300\n-1.5 qid:8\n"


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_any_sparse_matrix(kind):
    stream = io.BytesIO()
    write_svmlight(stream, kind(np.array([[0, 2], [3, 0]])), [0, 1])
    assert stream.getvalue() == b"0 2:2\n1 1:3\n"


def test_disorder_repetitions_and_zeros_are_tidied_up_in_a_copy():
    X = sparse.csr_matrix((np.array([1.0, 2, 3, 0]), np.array([2, 0, 2, 1]), np.array([0, 4])), shape=(1, 3))
    stream = io.BytesIO()
    write_svmlight(stream, X, [1])
    assert stream.getvalue() == b"1 1:2 3:4\n"
    assert X.indices.tolist() == [2, 0, 2, 1]


def test_many_rows_are_written_in_blocks():
    X = sparse.random(60_000, 30, density=0.2, random_state=0, format="csr")
    y = np.arange(60_000)
    stream = io.BytesIO()
    write_svmlight(stream, X, y)
    stream.seek(0)
    reread = read_svmlight(stream, n_features=30, n_jobs=2)
    assert (reread.X != X).nnz == 0
    np.testing.assert_array_equal(reread.y, y)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_compression_goes_by_the_suffix(suffix, tmp_path):
    path = tmp_path / f"rows.svm{suffix}"
    write_svmlight(path, np.eye(50), np.arange(50))
    assert path.read_bytes().startswith(b"0 1:1") == (suffix == "")
    np.testing.assert_array_equal(read_svmlight(path).X.toarray(), np.eye(50))
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("X", "y", "qid", "message"),
    [
        ([[np.nan]], [1], None, "NaN"),
        ([[1]], [np.inf], None, "y contains NaN or infinity"),
        ([[1]], [1, 2], None, "inconsistent"),
        ([[1]], [1], [1, 2], "inconsistent"),
        ([[1]], [1], [1.5], "qid must be integers"),
        ([[1]], [1], np.array([2**63], dtype=np.uint64), "64 bits"),
        ([[2**53 + 1]], [1], None, "X has integers beyond"),
        ([[1]], [2**60], None, "y has integers beyond"),
        ([1, 2], [1, 2], None, "2D"),
        (np.empty((0, 3)), [], None, "0 sample"),
    ],
)
def test_rows_that_cannot_be_written_leave_the_old_file(X, y, qid, message, tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n")
    with pytest.raises(ValueError, match=message):
        write_svmlight(path, X, y, qid=qid)
    assert path.read_text() == "1 1:1\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2", ".zst"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_while_writing_leaves_the_old_file(failure, suffix, tmp_path, monkeypatch):
    path = tmp_path / f"rows.svm{suffix}"
    path.write_text("old")
    format_rows = _core.format_svmlight
    calls = []

    def fail_later(*arguments):
        calls.append(arguments)
        if len(calls) > 2:
            raise failure
        return format_rows(*arguments)

    monkeypatch.setattr(svmlight_writer, "format_svmlight", fail_later)
    with pytest.raises(type(failure)):
        write_svmlight(path, np.ones((100_000, 10)), np.ones(100_000))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_failure_at_the_end_leaves_no_files(where, tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync") if where == "fsync" else (Path, "replace")), fail)
    with pytest.raises(OSError, match="No space"):
        write_svmlight(tmp_path / "rows.svm", np.eye(2), [0, 1])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_full_devices_are_reported():
    with pytest.raises(OSError, match="No space"):
        write_svmlight("/dev/full", np.eye(1000), np.arange(1000))
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_paths_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_svmlight(tmp_path / "missing" / "rows.svm", np.eye(2), [0, 1])
    with pytest.raises(IsADirectoryError):
        write_svmlight(tmp_path, np.eye(2), [0, 1])
    with pytest.raises(TypeError, match="path or an open file"):
        write_svmlight(7, np.eye(2), [0, 1])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        write_svmlight(tmp_path / "rows.svm", np.eye(2), [0, 1])
    tmp_path.chmod(0o700)


def test_links_and_permissions_are_kept(tmp_path):
    target, link = tmp_path / "target.svm", tmp_path / "link.svm"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_svmlight(link, np.eye(2), [0, 1])
    assert link.is_symlink()
    assert target.read_text() == "0 1:1\n1 2:1\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
