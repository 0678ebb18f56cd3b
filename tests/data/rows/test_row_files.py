"""Rows in files behave like rows in memory; damaged and changed files are noticed.

UNKERNEL_FUZZ=100000 pytest tests/data/rows/test_row_files.py -k damage      tries more files.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import json
import lzma
import os

import numpy as np
import pytest
import zstandard
from scipy import sparse

from reference.processes import run_program
from reference.row_damage import damage_bytes, damage_footer, sign_footer, split_footer
from unkernel._core import pack_rows
from unkernel.data import read_svmlight, write_svmlight
from unkernel.data.rows import row_files
from unkernel.data.rows.csr import CsrRows
from unkernel.data.rows.row_files import open_rows
from unkernel.errors import FormatError

FUZZ_ROUNDS = int(os.environ.get("UNKERNEL_FUZZ", "400"))


def random_rows(rows=3000, features=80, seed=0, binary=False):
    X = sparse.random(rows, features, density=0.1, format="csr", random_state=seed, dtype=np.float64)
    if binary:
        X.data[:] = 1.0
    return X, np.random.default_rng(seed).integers(0, 3, rows).astype(float)


@pytest.fixture
def svm(tmp_path):
    path = tmp_path / "rows.svm"
    write_svmlight(path, *random_rows())
    return path


def pack_in_memory(X, *, zero_based=False):
    """Return the rows packed in memory, with the column numbers that the file has."""
    first_index = 0 if zero_based else 1
    rows = CsrRows(
        X.indptr, X.indices + np.int32(first_index), X.data, (X.shape[0], X.shape[1] + first_index)
    )
    return pack_rows(rows, threads=1)


def assert_same_passes(stored, expected):
    for count in ("rows", "features", "entries"):
        assert getattr(stored, count) == getattr(expected, count)
    rng = np.random.default_rng(1)
    weights, coefficients = rng.normal(size=stored.features + 1), rng.normal(size=stored.rows)
    for threads in (1, 2):
        np.testing.assert_array_equal(stored.scores(weights, 1.0, threads), expected.scores(weights, 1.0, 1))
        np.testing.assert_array_equal(
            stored.transposed(coefficients, 1.0, threads), expected.transposed(coefficients, 1.0, 1)
        )


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


# --- Reading -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("zero_based", [True, False])
def test_equals_rows_in_memory(tmp_path, monkeypatch, binary, zero_based):
    monkeypatch.setattr(row_files, "_PART_BYTES", 10_000)
    X, y = random_rows(5000, binary=binary)
    write_svmlight(tmp_path / "a.svm", X, y, zero_based=zero_based)
    for _ in range(2):  # built, then reused
        rows = open_rows(tmp_path / "a.svm")
        assert_same_passes(rows.store, pack_in_memory(X, zero_based=zero_based))
        np.testing.assert_array_equal(rows.y, y)
        assert rows.qid is None and rows.zero_based == zero_based and rows.n_features == X.shape[1]
        assert rows.path == tmp_path / "a.svm.rows" and rows.sources == (tmp_path / "a.svm",)
    assert list_names(tmp_path) == ["a.svm", "a.svm.rows"]


@pytest.mark.parametrize(
    "compress", [gzip.compress, lzma.compress, bz2.compress, zstandard.ZstdCompressor().compress]
)
def test_compressed_sources(svm, compress):
    expected = read_svmlight(svm)
    svm.write_bytes(compress(svm.read_bytes()))
    reports = []
    rows = open_rows(svm, on_progress=lambda fraction, count: reports.append((fraction, count)))
    assert_same_passes(rows.store, pack_in_memory(expected.X))
    assert reports[-1] == (1.0, 3000)


def test_several_files_are_one_data_set(tmp_path):
    X, y = random_rows(900)
    qid = np.arange(900) // 7
    for k, name in enumerate(("b-1.svm", "a-2.svm.gz", "c-3.svm")):
        part = slice(300 * k, 300 * (k + 1))
        write_svmlight(tmp_path / name, X[part], y[part], qid=qid[part])
    names = [tmp_path / name for name in ("b-1.svm", "a-2.svm.gz", "c-3.svm")]
    rows = open_rows(names, cache=tmp_path / "all")
    assert_same_passes(rows.store, pack_in_memory(X))
    np.testing.assert_array_equal(rows.qid, qid)
    for _ in range(2):  # the cache matches the pattern, too
        actual = open_rows(str(tmp_path / "*"))
        assert actual.sources == tuple(sorted(names))
        np.testing.assert_array_equal(actual.y, y[np.r_[300:600, 0:300, 600:900]])


def test_an_index_0_in_any_file_makes_all_files_zero_based(tmp_path):
    (tmp_path / "1").write_text("1 1:1 4:1\n")
    (tmp_path / "2").write_text("2 0:1\n")
    rows = open_rows([tmp_path / "1", tmp_path / "2"])
    assert rows.zero_based and rows.n_features == rows.store.features == 5
    with pytest.raises(FormatError, match=r"1:1: index 4 is beyond 3, the last that n_features=4 allows"):
        open_rows([tmp_path / "1", tmp_path / "2"], n_features=4)


def test_rows_without_entries(tmp_path):
    (tmp_path / "a").write_text("1\n-1\n")
    rows = open_rows(tmp_path / "a")
    assert rows.n_features == 0 and rows.store.scores(np.zeros(1), 0.0, 1).tolist() == [0, 0]
    assert open_rows(tmp_path / "a", n_features=3, zero_based=True).store.features == 3


def test_n_features_can_exceed_the_largest_index(svm):
    open_rows(svm)
    assert open_rows(svm, n_features=500).store.features == 501


# --- Rebuilding ---------------------------------------------------------------------------------------


def is_packed_again(*arguments, **options):
    calls = []
    open_rows(*arguments, on_progress=lambda *call: calls.append(call), **options)
    return bool(calls)


def test_the_packed_file_is_built_once(svm):
    assert is_packed_again(svm)
    assert not is_packed_again(svm)
    assert not is_packed_again([svm], n_features=100, n_jobs=2)
    assert is_packed_again(svm, cache=svm.with_name("other"))


def test_the_packed_file_is_rebuilt_when_a_source_changes(svm):
    open_rows(svm)
    with svm.open("a") as file:
        file.write("7 3:1\n")
    assert open_rows(svm).y[-1] == 7
    status = svm.stat()
    svm.write_bytes(svm.read_bytes().replace(b"\n7 3:1", b"\n8 3:1"))
    os.utime(svm, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert open_rows(svm).y[-1] == 8
    assert is_packed_again([svm, svm], cache=f"{svm}.rows")


def test_packed_files_with_rounded_values_are_rebuilt(svm):
    path = open_rows(svm).path
    body, footer = split_footer(path.read_bytes())
    path.write_bytes(sign_footer(body, footer | {"rounded": True}))
    assert is_packed_again(svm)
    assert not is_packed_again(svm)


def test_packed_files_of_another_version_are_rebuilt(svm):
    path = open_rows(svm).path
    path.write_bytes(b"unkernel rows 7\n" + path.read_bytes()[16:])
    assert is_packed_again(svm)


def test_packed_rows_stay_readable_after_their_file_is_replaced(svm):
    old_rows = open_rows(svm)
    with svm.open("a") as file:
        file.write("7 3:1\n")
    new_rows = open_rows(svm)
    assert old_rows.store.rows + 1 == new_rows.store.rows
    assert len(old_rows.store.scores(np.zeros(81), 0.0, 1)) == 3000


def test_sources_and_packed_rows_can_be_moved_together(svm, tmp_path):
    open_rows(svm)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for path in (svm, svm.with_name("rows.svm.rows")):
        path.rename(folder / path.name)
    assert not is_packed_again(folder / "rows.svm")


# --- Refused inputs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        ("", {}, "no rows"),
        ("# nothing\n", {}, "no rows"),
        ("1 1:1\n1 2:x\n", {}, "a:2:"),
        ("1 1:1\n1 9:1\n", {"n_features": 8}, "a:2:.*9"),
        ("1 1:1\n1 0:1\n", {"zero_based": False}, "a:2"),
        ("1 1:1\n1 4294967295:1\n", {}, "a:2: index 4294967295 is beyond"),
    ],
)
def test_bad_sources(tmp_path, text, options, match):
    (tmp_path / "a").write_text(text)
    with pytest.raises(FormatError, match=match):
        open_rows(tmp_path / "a", **options)
    assert list_names(tmp_path) == ["a"]


@pytest.mark.parametrize(("options", "match"), [({"n_features": 8}, "a:2"), ({"zero_based": False}, "a:3")])
def test_bad_options_for_existing_packed_rows_are_refused(tmp_path, options, match):
    (tmp_path / "a").write_text("1 1:1\n1 9:1\n1 0:1\n")
    open_rows(tmp_path / "a")
    with pytest.raises(FormatError, match=match):
        open_rows(tmp_path / "a", **options)
    assert len(open_rows(tmp_path / "a").y) == 3
    with pytest.raises(ValueError, match="n_features"):
        open_rows(tmp_path / "a", n_features=-1)


def test_uneven_queries(tmp_path):
    (tmp_path / "1").write_text("1 qid:1 1:1\n")
    (tmp_path / "2").write_text("2 1:1\n")
    with pytest.raises(FormatError, match="2: its rows have no qid:"):
        open_rows([tmp_path / "1", tmp_path / "2"])


def test_missing_sources(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_rows(tmp_path / "a")
    with pytest.raises(FileNotFoundError, match="pattern"):
        open_rows(str(tmp_path / "a*"))
    with pytest.raises(ValueError, match="empty"):
        open_rows([])


def test_files_that_are_not_packed_rows_are_not_replaced(svm, tmp_path):
    content = svm.read_bytes()
    precious = tmp_path / "precious.svm"
    precious.write_bytes(content)
    with pytest.raises(FormatError, match=r"not a file of rows.*cache="):
        open_rows(svm, cache=precious)
    with pytest.raises(ValueError, match="one of the sources"):
        open_rows(svm, cache=svm)
    with pytest.raises(IsADirectoryError, match="folder"):
        open_rows(svm, cache=tmp_path)
    assert svm.read_bytes() == precious.read_bytes() == content


def test_missing_folders_are_named(svm, tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot be written here"):
        open_rows(svm, cache=tmp_path / "no" / "rows")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(svm):
    svm.parent.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="cannot be written here"):
            open_rows(svm)
    finally:
        svm.parent.chmod(0o700)


# --- Failed builds -------------------------------------------------------------------------------------


def fail_with(error):
    def watch(fraction, rows):
        raise error(errno.ENOSPC, "No space left on device")

    return watch


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("made_before", [True, False])
def test_an_interrupted_build_leaves_no_files(svm, error, made_before):
    if made_before:
        open_rows(svm)
        svm.write_bytes(svm.read_bytes() * 2)
    old_names = list_names(svm.parent)
    with pytest.raises(error, match="cache=" if error is OSError else None):
        open_rows(svm, on_progress=fail_with(error))
    assert list_names(svm.parent) == old_names
    assert len(open_rows(svm).y) == (6000 if made_before else 3000)


LIMITED = """
import resource, signal, sys
from unkernel.data.rows.row_files import open_rows
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
try:
    open_rows(sys.argv[1])
except OSError as error:
    print(error)
"""


def test_files_that_exceed_a_limit_of_the_system_are_named(svm):
    printed = run_program(LIMITED, svm)
    assert "do not fit here" in printed and "cache=" in printed
    assert list_names(svm.parent) == ["rows.svm"]


# --- Damage --------------------------------------------------------------------------------------------


def answers(svm):
    rows = open_rows(svm)
    if rows.store.features > 10**6:  # a false count in the footer: the weights would take 32 GB
        return None
    scores = rows.store.scores(np.arange(rows.store.features) % 7.0, 0.0, 1)
    return scores, rows.store.transposed(rows.y, 0.0, 2), rows.y, rows.qid


@pytest.fixture
def queries(tmp_path):
    X, y = random_rows(2500, 20)
    write_svmlight(tmp_path / "q.svm", X, y, qid=np.arange(2500) // 5)
    return tmp_path / "q.svm"


def test_damaged_packed_files_are_refused_or_read_unchanged(queries):
    """Checksums detect random damage; malicious changes are tested below."""
    expected = answers(queries)
    path = queries.with_name("q.svm.rows")
    content = path.read_bytes()
    rng = np.random.default_rng(5)
    n_refused = 0
    for _ in range(FUZZ_ROUNDS):
        path.unlink()
        path.write_bytes(damage_bytes(content, rng))
        try:
            for answer, expected_answer in zip(answers(queries), expected, strict=True):
                np.testing.assert_array_equal(answer, expected_answer)
        except FormatError as error:
            n_refused += 1
            assert error.file == str(path) and "elete" in error.reason
            path.unlink(missing_ok=True)
            path.write_bytes(content)
    assert n_refused > FUZZ_ROUNDS // 2


@pytest.mark.hostile
def test_a_file_cut_anywhere(tmp_path):
    (tmp_path / "a").write_text("1 qid:1 1:1 3:2\n-1 qid:2 2:1\n")
    path = open_rows(tmp_path / "a").path
    content = path.read_bytes()
    assert len(content) < 1500
    for length in range(16, len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(FormatError, match="elete"):
            answers(tmp_path / "a")


def test_false_statements_in_signed_footers_are_refused(queries):
    """The digests of these footers match, so only a check of the contents can notice the changes."""
    answers(queries)
    path = queries.with_name("q.svm.rows")
    content = path.read_bytes()
    rng = np.random.default_rng(6)
    for _ in range(FUZZ_ROUNDS // 2):
        path.unlink()
        path.write_bytes(damage_footer(content, rng))
        try:
            answers(queries)
        except FormatError as error:
            assert error.file in (str(path), str(queries))
        path.unlink()
        path.write_bytes(content)


def test_a_file_that_shrinks_while_it_is_used(svm):
    rows = open_rows(svm)
    os.truncate(rows.path, 1000)
    with pytest.raises(FormatError, match="changed while it was in use; delete"):
        rows.store.scores(np.zeros(81), 0.0, 1)


CUT_WHILE_READ = """
import os, sys, threading
import numpy as np
from unkernel.data.rows.row_files import open_rows
from unkernel.errors import FormatError

source, cache, rounds = sys.argv[1], sys.argv[2], 30
open_rows(source, cache=cache)
whole = open(cache, "rb").read()
expected = None
for i in range(rounds):
    os.unlink(cache)
    with open(cache, "wb") as file:
        file.write(whole)
    store = open_rows(source, cache=cache).store
    if expected is None:
        expected = store.scores(np.ones(store.features), 0.0, 2)
    started = threading.Event()
    def cut():
        started.set()
        os.truncate(cache, len(whole) * i // rounds)
    thread = threading.Thread(target=cut)
    thread.start()
    started.wait()
    try:
        for _ in range(20):
            assert np.array_equal(store.scores(np.ones(store.features), 0.0, 2), expected)
    except FormatError as error:
        assert "changed while it was in use" in str(error)
    thread.join()
print("survived")
"""


@pytest.mark.hostile
def test_a_file_that_is_cut_in_the_middle_of_a_pass(tmp_path):
    """A file truncated at any moment gives the result or an error; a mapped file would crash the process."""
    source = tmp_path / "large.svm"
    write_svmlight(source, *random_rows(rows=60_000))
    assert run_program(CUT_WHILE_READ, str(source), str(tmp_path / "cache.rows")).strip() == "survived"


def test_the_footer_is_as_documented(svm):
    content = open_rows(svm).path.read_bytes()
    assert content[:16] == content[-16:] == b"unkernel rows 1\n"
    length = int.from_bytes(content[-32:-24], "little")
    footer = json.loads(content[-32 - length : -32])
    assert footer["rows"] == 3000 and footer["n_features"] == 81 and not footer["rounded"]
    assert footer["sources"] == [
        {"path": "rows.svm", "size": svm.stat().st_size, "mtime_ns": svm.stat().st_mtime_ns}
    ]
