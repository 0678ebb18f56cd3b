"""Errors of read_svmlight, and their messages."""

from __future__ import annotations

import errno
import io
import os
import pickle

import numpy as np
import pytest

from unkernel.data import read_svmlight
from unkernel.errors import FormatError

MALFORMED = [
    # text, options, line, column, a piece of the message
    ("x 1:1\n", {}, 1, 1, "'x' is not a label"),
    ("1:1 2:1\n", {}, 1, 1, "has no label"),
    ("qid:1 2:1\n", {}, 1, 1, "has no label"),
    ("1,2 3:1\n", {}, 1, 1, "more than one label"),
    ("nan 3:1\n", {}, 1, 1, "'nan' is not a finite number"),
    ("-Infinity 3:1\n", {}, 1, 1, "not a finite number"),
    ("1e999 3:1\n", {}, 1, 1, "too large for a double"),
    ("1.5.2 3:1\n", {}, 1, 1, "not a label"),
    ("1 1:1\n\n# note\n  x 1:1\n", {}, 4, 3, "not a label"),
    ("1 1:1\r\n1 2:\r\n", {}, 2, 5, "no value after the colon"),
    ("1 3: 1\n", {}, 1, 5, "no value after the colon"),
    ("1 3 :1\n", {}, 1, 3, "'3' has no value"),
    ("1 12\n", {}, 1, 3, "'12' has no value"),
    ("1 3:1 4\n", {}, 1, 7, "'4' has no value"),
    ("1 1.5:2\n", {}, 1, 3, "whole index"),
    ("1 3x:1\n", {}, 1, 3, "whole index"),
    ("1 -3:1\n", {}, 1, 3, "negative index"),
    ("1 +3:1\n", {}, 1, 3, "is not a feature"),
    ("1 abc\n", {}, 1, 3, "'abc' is not a feature"),
    ("1 :5\n", {}, 1, 3, "is not a feature"),
    ("1 1:1 é:1\n", {}, 1, 7, r"'\xc3\xa9:1' is not a feature"),
    ("1 1:1\0 2:1\n", {}, 1, 5, r"'1\x00' is not a value"),
    ("\0\n", {}, 1, 1, r"'\x00' is not a label"),
    ("1 3:x\n", {}, 1, 5, "'x' is not a value"),
    ("1 3:1x\n", {}, 1, 5, "'1x' is not a value"),
    ("1 3:1:2\n", {}, 1, 5, "'1:2' is not a value"),
    ("1 3:1e\n", {}, 1, 5, "'1e' is not a value"),
    ("1 3:--1\n", {}, 1, 5, "'--1' is not a value"),
    ("1 3:0x10\n", {}, 1, 5, "is not a value"),
    ("1 3:NaN\n", {}, 1, 5, "not a finite number"),
    ("1 3:+inf\n", {}, 1, 5, "not a finite number"),
    ("1 3:-1e999\n", {}, 1, 5, "too large for a double"),
    ("1 3:" + "9" * 400 + "\n", {}, 1, 5, "too large for a double"),
    ("1 3:1 3:2\n", {}, 1, 7, "index 3 is in this line twice"),
    ("1 3:1 2:1 cost:3 003:2 2:5\n", {}, 1, 18, "index 3 is in this line twice"),
    ("1 9223372036854775808:1\n", {}, 1, 3, "is beyond 9223372036854775806"),
    ("1 9223372036854775807:1\n", {}, 1, 3, "is beyond 9223372036854775806"),
    ("1 18446744073709551616:1\n", {}, 1, 3, "does not fit into 64 bits"),
    ("1 qid:x 3:1\n", {}, 1, 3, "'x' is not a query number"),
    ("1 qid: 3:1\n", {}, 1, 3, "is not a query number"),
    ("1 qid:1.5 3:1\n", {}, 1, 3, "is not a query number"),
    ("1 qid:9223372036854775808\n", {}, 1, 3, "is not a query number"),
    ("1 qid:1 3:1 qid:1\n", {}, 1, 13, "second qid"),
    ("1 qid:1 3:1\n1 3:1\n", {}, 2, 0, "has no qid"),
    ("1 3:1\n1 3:1\n1 qid:1 3:1\n", {}, 3, 0, "has a qid"),
    ("1 1:1\n1 2:1 0:1\n", {"zero_based": False}, 2, 7, "index 0 is below 1"),
    ("1 1:1\n1 4:1\n", {"n_features": 3}, 2, 3, "index 4 is beyond 3"),
    ("1 1:1 3:1\n", {"n_features": 3, "zero_based": True}, 1, 7, "index 3 is beyond 2"),
    ("1 1:1\n1 3:1\n1 0:1\n", {"n_features": 3}, 2, 0, "index 3 is beyond 2"),
    ("1 2:1 " + "y" * 100 + "\n", {}, 1, 7, "yyy...'"),
]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_lines_are_named(case, n_jobs):
    text, options, line, column, message = case
    stream = io.BytesIO(text.encode())
    stream.name = "rows.svm"
    with pytest.raises(FormatError) as caught:
        read_svmlight(stream, n_jobs=n_jobs, **options)
    error = caught.value
    assert (error.file, error.line, error.column) == ("rows.svm", line, column)
    assert message in error.reason
    place = "rows.svm:" + ":".join(str(number) for number in (line, column) if number)
    assert str(error).startswith(place + ": ")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# only a remark\n", b"\xef\xbb\xbf", b"   "])
def test_a_file_without_rows_is_an_error(content, tmp_path):
    path = tmp_path / "empty.svm"
    path.write_bytes(content)
    with pytest.raises(FormatError, match="no rows") as caught:
        read_svmlight(path)
    assert caught.value.file == str(path)


def test_the_error_survives_pickling():
    with pytest.raises(FormatError) as caught:
        read_svmlight(io.BytesIO(b"1 1:x\n"))
    unpickled = pickle.loads(pickle.dumps(caught.value))
    assert (unpickled.file, unpickled.line, unpickled.column) == ("<stream>", 1, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features"),
        ({"n_features": -1}, "n_features"),
        ({"n_features": 2.5}, "n_features"),
        ({"n_features": 2**63}, "n_features"),
        ({"zero_based": "yes"}, "zero_based"),
        ({"dtype": np.int64}, "dtype"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        read_svmlight(io.BytesIO(b"1 1:1\n"), **options)


def test_system_errors_are_passed_on_unchanged(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_svmlight(tmp_path / "missing.svm")
    with pytest.raises(IsADirectoryError):
        read_svmlight(tmp_path)
    with pytest.raises(TypeError, match="BytesIO"):
        read_svmlight(b"1 1:1\n")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    path = tmp_path / "secret.svm"
    path.write_text("1 1:1\n")
    path.chmod(0)
    with pytest.raises(PermissionError):
        read_svmlight(path)


class _FailingFile(io.RawIOBase):
    def readable(self):
        return True

    def read(self, size=-1):
        raise OSError(errno.EIO, "the disk is broken")


def test_a_failing_read_is_passed_on():
    with pytest.raises(OSError, match="broken") as caught:
        read_svmlight(_FailingFile())
    assert caught.value.errno == errno.EIO


class _NonBlockingFile(io.RawIOBase):
    def read(self, size=-1):
        return None


def test_a_read_that_would_block_does_not_end_the_file():
    with pytest.raises(BlockingIOError):
        read_svmlight(_NonBlockingFile())
