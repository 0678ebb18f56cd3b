"""Invalid files raise a FormatError, without a crash and without allocating much memory.

UNKERNEL_FUZZ=100000 pytest tests/models/test_damaged_files.py -k fuzz      tries more files.
"""

from __future__ import annotations

import copy
import json
import os
import random
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy import sparse

from reference.models import (
    join_arrays,
    join_file_parts,
    make_header,
    make_model,
    model_arrays,
    settings_of,
    uk_bytes,
)
from reference.processes import run_program
from unkernel import FormatError, load
from unkernel.models import container, load_model

pytestmark = pytest.mark.hostile

FUZZ_ROUNDS = int(os.environ.get("UNKERNEL_FUZZ", "500"))


def check_refused(path, content, match=None):
    """Check that the file is refused by name."""
    path.write_bytes(content)
    with pytest.raises(FormatError, match=match) as caught:
        load(path)
    assert caught.value.file == str(path)
    assert caught.value.reason in str(caught.value)


def check_refused_or_predicts(path, content):
    """Check that the file is refused, or that the loaded model predicts. Return whether it does."""
    path.write_bytes(content)
    try:
        classifier = load(path)
    except FormatError:
        return False
    columns = classifier.model.columns[:2].astype(np.int64)
    X = sparse.csr_array(
        (np.ones(len(columns)), columns, np.array([0, 0, len(columns)])), shape=(2, classifier.n_features_in_)
    )
    assert len(classifier.decision.choose(classifier.score_csr(X, 1))) == 2
    return True


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.uk"


SMALL = make_model(share=0.6, classes=["a", "b", "c"])


def test_a_file_cut_anywhere(path):
    SMALL.save(path)
    content = path.read_bytes()
    assert len(content) < 1500
    for length in range(len(content)):
        check_refused(path, content[:length])


def test_a_file_with_something_after_it(path):
    for extra in (b"\0", b"\0" * 8, uk_bytes(SMALL)):
        check_refused(path, uk_bytes(SMALL) + extra, "after the arrays")


def test_any_byte_of_the_header_changed(path):
    content = uk_bytes(SMALL)
    header = 8 + int.from_bytes(content[:8], "little")
    answered = 0
    for place in range(header):
        for byte in {content[place] ^ 1, content[place] ^ 128, ord("9")} - {content[place]}:
            answered += check_refused_or_predicts(
                path, content[:place] + bytes([byte]) + content[place + 1 :]
            )
    assert answered < header  # changes of a label, a space or a digit of gamma are valid; most others are not


def test_any_byte_of_the_arrays_changed(path):
    content = uk_bytes(SMALL)
    header = 8 + int.from_bytes(content[:8], "little")
    for place in range(header, len(content)):
        for byte in {content[place] ^ 1, content[place] ^ 128, 255} - {content[place]}:
            check_refused_or_predicts(path, content[:place] + bytes([byte]) + content[place + 1 :])


NUMBERS = [0, -1, 1, 2, 3.5, 2**31, 2**53, 2**63, 2**64, 10**400, 1e308, float("nan"), float("inf")]
TEXTS = ["", "x", "\ud800", "F32", "U64", "(,f8", "O", "<U9", "f16"]
ODD = [None, True, False, *NUMBERS, *TEXTS, [], [0], [1, 2, 3], {}, {"dtype": "F64"}]


def places(node, route=()):
    """Return all places in nested dicts and lists."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield (*route, key)
        yield from places(child, (*route, key))


def changed(table, rng):
    """Return the dict with an odd value somewhere, or with something removed."""
    table = copy.deepcopy(table)
    *route, key_or_index = rng.choice(list(places(table)))
    node = table
    for key in route:
        node = node[key]
    if rng.random() < 0.2:
        del node[key_or_index]
    else:
        node[key_or_index] = rng.choice(ODD)
    return table


def mutated_header(rng):
    settings, arrays = settings_of(SMALL), model_arrays(SMALL)
    if rng.random() < 0.5:
        return join_file_parts(make_header(arrays, changed(settings, rng)), join_arrays(arrays))
    return join_file_parts(changed(make_header(arrays, settings), rng), join_arrays(arrays))


def mutated_bytes(rng):
    content = bytearray(uk_bytes(SMALL))
    for _ in range(rng.randint(1, 4)):
        begin = rng.randrange(len(content))
        end = min(len(content), begin + rng.choice([0, 1, 8, 40]))
        piece = rng.choice(
            [b"", rng.randbytes(1), rng.randbytes(8), bytes(content[begin : begin + 30]), b"[[[[", b"9" * 30]
        )
        content[begin:end] = piece
    if rng.random() < 0.5:  # keep the length, so that checks after the check of the length run
        end = content.find(b"}}", 8) + 2
        content[:8] = max(end - 8, 0).to_bytes(8, "little")
    return bytes(content)


@pytest.mark.parametrize("mutated", [mutated_header, mutated_bytes])
def test_fuzz(mutated, path):
    for seed in range(FUZZ_ROUNDS):
        try:
            check_refused_or_predicts(path, mutated(random.Random(seed)))
        except BaseException:
            print(f"seed {seed}")
            raise


REFUSED = {
    "degree": [None, True, 0, 4, -1, 2.0, "2", [2], 10**400],
    "sets": [None, 0, 1, "true", []],
    "feature_map": [None, "", "rbf", "\ud800", ["kernel"], {}],
    "gamma": [None, True, 0, -1.0, float("nan"), float("inf"), 10**400, "1", []],
    "coef0": [None, True, -1, -1e-300, float("nan"), float("inf"), 10**400, "1", []],
    "n_features": [None, True, 0, -1, 1, 6.0, 1 << 63, 1 << 64, 10**400, "6", []],
    "origin": [None, [], "x", 1],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key in REFUSED for value in REFUSED[key]])
def test_a_setting_out_of_range(key, value, path):
    check_refused(path, uk_bytes(SMALL, settings={key: value}))


@pytest.mark.parametrize(
    "settings",
    [
        {"degree": 3},
        {"feature_map": "plain"},
        {"gamma": 1},
        {"gamma": 1e-300},
        {"coef0": 0},
        {"n_features": 1 << 61},
        {"origin": {}},
        {"origin": {"note": ["anything", None]}},
        {"something": "of a later version"},
    ],
    ids=repr,
)
def test_a_setting_within_its_range(settings, path):
    assert check_refused_or_predicts(path, uk_bytes(SMALL, settings=settings))


def test_a_setting_that_is_missing(path):
    for key in settings_of(SMALL):
        settings = settings_of(SMALL)
        del settings[key]
        arrays = model_arrays(SMALL)
        check_refused(
            path,
            join_file_parts(make_header(arrays, settings), join_arrays(arrays)),
            key if key != "classes" else "class labels",
        )


@pytest.mark.parametrize(
    "classes",
    [
        {"dtype": "<i8", "values": [1]},
        {"dtype": "<i8", "values": [1, 2]},
        {"dtype": "<i8", "values": [1, 2, 3, 4]},
        {"dtype": "<i8", "values": [1, 1, 2]},
        {"dtype": "<i8", "values": [1, 2, "3"]},
        {"dtype": "<i8", "values": [1, 2, 3.5]},
        {"dtype": "<i8", "values": [1, 2, 2**63]},
        {"dtype": "|i1", "values": [1, 2, 257]},
        {"dtype": "<f2", "values": [1, 2, 1e10]},
        {"dtype": "<f4", "values": [0.1, 0.2, 0.3]},
        {"dtype": "<f8", "values": [1, 2, 10**400]},
        {"dtype": "<f8", "values": [1, 2, float("nan")]},
        {"dtype": "<f16", "values": [1, 2, 3]},
        {"dtype": "<U1", "values": ["a", "b", None]},
        {"dtype": "<U1", "values": ["a", "b", "a\0"]},
        {"dtype": "O", "values": ["a", "b", 3]},
        {"dtype": "O", "values": ["a", "b", ["c"]]},
        {"dtype": "V8", "values": ["a", "b", "c"]},
        {"dtype": "M8[D]", "values": [1, 2, 3]},
        {"dtype": "i8,i8", "values": [1, 2, 3]},
        {"dtype": "(,f8", "values": [1, 2, 3]},
        {"dtype": "\ud800", "values": [1, 2, 3]},
        {"dtype": 8, "values": [1, 2, 3]},
        {"dtype": "<i8", "values": {"0": 1}},
        {"values": [1, 2, 3]},
        {"dtype": "<i8"},
    ],
    ids=lambda classes: json.dumps(classes)[:60],
)
def test_invalid_labels_are_refused(classes, path):
    check_refused(path, uk_bytes(SMALL, settings={"classes": classes}), "class")


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"version": "4"}, "format version 4, and this unkernel reads up to 3: upgrade"),
        ({"version": "99999999"}, "format version 99999999"),
        ({"version": "1.0"}, "no format version"),
        ({"version": "-1"}, "no format version"),
        ({"version": ""}, "no format version"),
        ({"version": "9" * 5000}, "no format version"),
        ({"version": None}, "no format version"),
        ({"version": 1}, "no format version"),
        ({"kind": "forest"}, "a model of kind 'forest', which this unkernel does not know: upgrade"),
        ({"kind": None}, "kind"),
        ({"kind": ["conjunctions"]}, "kind"),
        ({"format": "onnx"}, "not one of unkernel's models"),
        ({"format": None}, "not one of unkernel's models"),
        ({"settings": ""}, "settings are not JSON"),
        ({"settings": None}, "settings are not JSON"),
        ({"settings": "[" * 100_000}, "settings are not JSON"),
        ({"settings": "9" * 10_000}, "settings are not JSON"),
        ({"settings": "[]"}, "settings are not a table"),
    ],
)
def test_metadata_of_other_programs_are_refused(metadata, reason, path):
    arrays = model_arrays(SMALL)
    header = make_header(arrays, **{"settings": settings_of(SMALL)} | metadata)
    check_refused(path, join_file_parts(header, join_arrays(arrays)), reason)


@pytest.mark.parametrize("metadata", [None, [], "unkernel", 1])
def test_metadata_that_are_not_a_table_are_refused(metadata, path):
    arrays = model_arrays(SMALL)
    header = make_header(arrays, settings_of(SMALL)) | {"__metadata__": metadata}
    check_refused(path, join_file_parts(header, join_arrays(arrays)), "not one of unkernel's models")


def test_a_plain_safetensors_file(path):
    save_file({"weights": np.zeros((3, 4))}, path)
    check_refused(path, path.read_bytes(), "a safetensors file, but not one of unkernel's models")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        b"\0" * 8,
        b"\0" * 1000,
        b"\xff" * 1000,
        b"+1 3:1 7:1\n-1 4:1\n" * 50,
        b"PK\x03\x04" + b"\0" * 100,
        b"\x80\x04\x95" + b"." * 100,
    ],
)
def test_files_of_other_kinds_are_refused(content, path):
    check_refused(path, content, "not a model file")


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"null", b"1", b'"x"', b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000, b"9" * 10_000],
)
def test_headers_that_are_not_a_table_are_refused(text, path):
    check_refused(path, join_file_parts(text, b"\0" * 64), "not a model file")


def change_entry(name, **changes):
    arrays = model_arrays(SMALL)
    header = make_header(arrays, settings_of(SMALL))
    header[name] = header[name] | changes
    return join_file_parts(header, join_arrays(arrays))


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "F32"},
        {"dtype": "I64"},
        {"dtype": "BOOL"},
        {"dtype": ["F64"]},
        {"dtype": {}},
        {"dtype": None},
        {"shape": [1 << 60]},
        {"shape": [1 << 61, 1 << 61]},
        {"shape": [10**400]},
        {"shape": [-1, -3]},
        {"shape": [3.0, 1]},
        {"shape": [True, 3]},
        {"shape": "3"},
        {"shape": None},
        {"shape": [1] * 40},
        {"shape": []},
        {"data_offsets": [0, 0]},
        {"data_offsets": [-8, 16]},
        {"data_offsets": [16, -8]},
        {"data_offsets": [0, 1 << 62]},
        {"data_offsets": [1 << 62, (1 << 62) + 24]},
        {"data_offsets": [0]},
        {"data_offsets": [0, 8, 16]},
        {"data_offsets": [0.0, 24.0]},
        {"data_offsets": None},
        {"shape": [0, 3], "data_offsets": [0, 0]},
        {"shape": [1 << 61, 0], "data_offsets": [0, 0]},
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", ["weights", "keys"])
def test_arrays_that_contradict_the_header_are_refused(name, changes, path):
    if name == "keys" and changes == {"dtype": "I64"}:
        changes = {"dtype": "F64"}
    check_refused(path, change_entry(name, **changes))


def test_overlapping_arrays_and_gaps_are_refused(path):
    arrays = model_arrays(SMALL)
    header = make_header(arrays, settings_of(SMALL))
    data = join_arrays(arrays)
    overlapping = copy.deepcopy(header)
    begin, end = header["keys"]["data_offsets"]
    overlapping["keys"]["data_offsets"] = [begin - 8, end - 8]
    check_refused(path, join_file_parts(overlapping, data), "overlap")
    with_gap = copy.deepcopy(header)
    for name in ("weights", "constants"):
        with_gap[name]["data_offsets"] = [offset + 8 for offset in with_gap[name]["data_offsets"]]
    begin = with_gap["weights"]["data_offsets"][0]
    check_refused(
        path, join_file_parts(with_gap, data[: begin - 8] + b"\0" * 8 + data[begin - 8 :]), "between them"
    )
    duplicated = copy.deepcopy(header)
    duplicated["another"] = duplicated["keys"]
    check_refused(path, join_file_parts(duplicated, data), "overlap")


def test_arrays_in_another_order_are_fine(path):
    arrays = dict(reversed(model_arrays(SMALL).items()))
    path.write_bytes(join_file_parts(make_header(arrays, settings_of(SMALL)), join_arrays(arrays)))
    assert np.array_equal(load(path).model.weights, SMALL.weights)


def test_a_header_that_is_not_padded(path):
    """Without padding, the arrays would be at unaligned addresses."""
    arrays = model_arrays(SMALL)
    text = json.dumps(make_header(arrays, settings_of(SMALL))).encode()
    text += b" " * (-len(text) % 8 + 1)
    check_refused(path, len(text).to_bytes(8, "little") + text + join_arrays(arrays), "padded")


@pytest.mark.parametrize("name", ["columns", "keys", "weights", "constants"])
def test_an_array_that_is_missing(name, path):
    check_refused(path, uk_bytes(SMALL, arrays={name: None}), f"no proper array '{name}'")


@pytest.mark.parametrize(
    "arrays",
    [
        {"weights": SMALL.weights[:, :2]},
        {"weights": SMALL.weights[1:]},
        {"weights": SMALL.weights.T},
        {"weights": SMALL.weights.reshape(-1)},
        {"weights": SMALL.weights.astype(np.int64)},
        {"keys": SMALL.keys[1:]},
        {"keys": SMALL.keys.astype(np.int64)},
        {"keys": SMALL.keys[:, None]},
        {"constants": SMALL.intercept[:1]},
        {"constants": SMALL.intercept[:0]},
        {"constants": SMALL.intercept[:1], "weights": SMALL.weights[:, :1]},
        {"columns": SMALL.columns.astype(np.uint64)},
        {"columns": SMALL.columns.astype(np.float64)},
    ],
    ids=lambda arrays: "-".join(f"{k}{v.shape}{v.dtype}" for k, v in arrays.items()),
)
def test_arrays_that_do_not_fit_together(arrays, path):
    check_refused(
        path, uk_bytes(SMALL, arrays={name: np.ascontiguousarray(array) for name, array in arrays.items()})
    )


def test_files_that_cannot_be_read_are_the_systems_errors(tmp_path):
    for read in (load, load_model):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "missing.uk")
        with pytest.raises(OSError, match=str(tmp_path)):
            read(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_claimed_sizes_are_not_allocated(tmp_path):
    """The files are loaded in a process that may allocate only 64 MB more."""
    excessive = {
        "header": (1 << 62).to_bytes(8, "little") + b"{}" * 100,
        "header-within-limits": (1 << 24).to_bytes(8, "little") + b"{}" * 100,
        "array": change_entry("weights", shape=[1 << 57, 1], data_offsets=[0, 1 << 60]),
        "empty-array": change_entry("weights", shape=[1 << 59, 0], data_offsets=[0, 0]),
        "label-width": uk_bytes(SMALL, settings={"classes": {"dtype": "<U2000000000", "values": ["a", "b"]}}),
        "wide-label": uk_bytes(
            SMALL, settings={"classes": {"dtype": "<U400000000", "values": ["a", "b", "a"]}}
        ),
        "features": uk_bytes(SMALL, settings={"n_features": 1 << 63}),
        "degree": uk_bytes(SMALL, settings={"degree": 3}, arrays={"keys": SMALL.keys + np.uint64(1 << 60)}),
    }
    valid = {
        "features-that-are-fine": uk_bytes(SMALL, settings={"n_features": (1 << 63) - 2}),
        "width-that-is-fine": uk_bytes(
            SMALL, settings={"classes": {"dtype": "<U500000000", "values": ["a", "b", "c"]}}
        ),
    }
    for name, content in (excessive | valid).items():
        (tmp_path / name).write_bytes(content)
    program = """
        import resource, sys
        from pathlib import Path
        import unkernel, unkernel.engines.classifier_files
        from scipy import sparse
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (64 << 20),) * 2)
        for path in sorted(Path(sys.argv[1]).iterdir()):
            try:
                fast = unkernel.load(path)
                fast.predict(sparse.csr_array((1, fast.n_features_in_)))
                print(path.name, "answers")
            except unkernel.FormatError:
                print(path.name, "refused")
    """
    printed = run_program(program, tmp_path)
    expected = dict.fromkeys(excessive, "refused") | dict.fromkeys(valid, "answers")
    assert dict(line.split() for line in printed.splitlines()) == expected


def test_settings_too_large_for_a_file_are_refused(tmp_path):
    """Settings that could not be read again are not written."""
    with pytest.raises(ValueError, match="cannot be written: names and settings take"):
        container.write(tmp_path / "m.uk", "conjunctions", {}, {"names": "x" * (1 << 24)})
    assert not any(tmp_path.iterdir())
