"""Compiled files: saved classifiers predict as before; damaged files are refused or harmless."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from scipy import sparse

import unkernel
from reference import damage
from reference.kernels import EXACT, make_kernel_model, make_slots_model, polynomial, rows_for
from reference.models import make_model
from reference.processes import run_python
from unkernel import FormatError, load
from unkernel.engines.tables import builders
from unkernel.engines.tables.prefix_trie import export_trie, grow
from unkernel.models.kernel import Kernel

BIG = make_kernel_model(1, polynomial(3), vectors=200, features=40, scores=3, fixed_width=True)
# With little memory for the dense table, conjunctions are stored in tries. Rare features have postings.
SMALL = make_kernel_model(1, polynomial(3), vectors=14, share=0.3)
SOURCES = {
    **{engine: lambda e=engine: unkernel.compile(BIG, e, rare=50) for engine in EXACT},
    "auto": lambda: unkernel.compile(BIG),
    "pruned": lambda: unkernel.compile(BIG, "pruned", threshold=0.5),
    "real": lambda: unkernel.compile(make_kernel_model(2, real=True), "expanded"),
    "rbf": lambda: unkernel.compile(make_kernel_model(2, Kernel("rbf", gamma=0.2)), "bitsliced"),
    "linear": lambda: unkernel.compile(make_kernel_model(2, Kernel("linear"), scores=6)),
    "grouped": lambda: compile_with_head(BIG, builders.Head(grouped=12, sum_bytes=1e5), 50),
    "by frequency": lambda: compile_with_head(BIG, builders.Head(2e4, by_frequency=True), 50),
    "trie": lambda: unkernel.compile(
        BIG, "split", rare=50, trie=rows_for(BIG, extra_columns=0), trie_nodes=40
    ),
    "sets": lambda: unkernel.compile(make_model(2, degree=3, classes=["a", "ü", "猫"])),
    "monomials": lambda: unkernel.compile(make_model(2, degree=2, sets=False)),
}


def compile_with_head(model, head, rare):
    return unkernel.CompiledClassifier(
        model, builders.build_expanded(builders.Machine(model), head=head, rare_below=rare)
    )


every_source = pytest.mark.parametrize("source", SOURCES)


def save_small_file(layout, folder):
    """Return a small compiled file of each layout."""
    path = folder / f"{layout}.uk"
    if layout in ("inverted", "bitsliced"):
        fast = unkernel.compile(SMALL, layout)
    else:
        machine = builders.Machine(MODELS.get(layout, SMALL))
        head, rare = HEADS.get(layout, builders.Head(0.0)), RARE.get(layout, 0)
        tables = builders.build_expanded(machine, head=head, rare_below=rare)
        if layout == "prefixes":
            tables = add_trie(tables)
        fast = unkernel.CompiledClassifier(machine.model, tables)
    fast.save(path)
    return path


def many_common_features():
    """Return a model with rare features in the first twelve columns, and too many common ones for records."""
    S = np.zeros((8, 530))
    S[:5, 6:] = 1.0
    S[5:, :12] = np.random.default_rng(1).random((3, 12)) < 0.6
    model = make_kernel_model(1, polynomial(1), vectors=8, features=530)
    return dataclasses.replace(model, vectors=sparse.csr_matrix(S))


def add_trie(tables, limit=30):
    engine = tables.engine()
    grow(engine, sparse.csr_matrix(rows_for(SMALL, extra_columns=0, count=30)), limit, "counted", 1)
    return dataclasses.replace(tables, arrays=tables.arrays | export_trie(engine, limit))


MODELS = {
    "real": make_kernel_model(1, vectors=9, real=True),
    "items": many_common_features(),
    "grouped": make_slots_model(1, 3, vectors=60, slots=3, others=2),
}
HEADS = {
    "dense": builders.Head(4e6, 4),
    "split": builders.Head(200.0),
    "grouped": builders.Head(4e6, grouped=9, sum_bytes=500.0),
    "frequency": builders.Head(300.0, by_frequency=True),
    "prefixes": builders.Head(300.0, by_frequency=True),
}
RARE = {"split": 4, "rare": 10**6, "grouped": 12, "items": 4, "prefixes": 3}
LAYOUTS = (
    *("inverted", "bitsliced", "dense", "trie", "split", "rare", "real"),
    *("grouped", "items", "frequency", "prefixes"),
)
# Arrays that files of the first version do not have. Later files may lack them if they are empty.
NEWER_ARRAYS = ("posting_records", "group_begins", "state_begins", "states", "state_sums")
NEWER_ARRAYS += ("state_pair_sums", "state_triple_sums", "state_quadruple_sums")
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


# --- Round trips ---------------------------------------------------------------------------------------


@every_source
def test_a_loaded_classifier_answers_as_it_did(source, tmp_path):
    fast = SOURCES[source]()
    X = rows_for(fast.model, extra_columns=0)
    fast.save(tmp_path / "fast.uk")
    loaded = load(tmp_path / "fast.uk")
    for rows in (X, X * 0.7):
        assert np.array_equal(loaded.decision_function(rows), fast.decision_function(rows))
        assert np.array_equal(loaded.predict(rows), fast.predict(rows))
    row = np.flatnonzero(X[-1]).tolist()
    assert loaded.score_one(row) == fast.score_one(row)
    assert (loaded.engine, loaded.exact, loaded.nbytes) == (fast.engine, fast.exact, fast.nbytes)
    assert list(loaded.candidates) == list(fast.candidates)
    assert repr(loaded) == repr(fast)
    assert loaded.model.decision.to_json() == fast.model.decision.to_json()
    assert loaded.classes_.dtype == fast.classes_.dtype
    if fast.exact and source != "rbf":
        assert loaded.explain(row) == fast.explain(row)


@every_source
def test_loaded_arrays_are_mapped_from_the_file(source, tmp_path):
    SOURCES[source]().save(tmp_path / "fast.uk")
    loaded = load(tmp_path / "fast.uk")
    arrays = [array for array in loaded.tables.arrays.values() if array.size]
    assert arrays and all(isinstance(array, np.memmap) for array in arrays)
    assert not any(array.flags.writeable for array in arrays)


@every_source
def test_the_same_classifier_gives_the_same_bytes(source, tmp_path):
    fast = SOURCES[source]()
    fast.save(tmp_path / "one.uk")
    fast.save(tmp_path / "two.uk")
    load(tmp_path / "one.uk").save(tmp_path / "three.uk")
    content = (tmp_path / "one.uk").read_bytes()
    assert content == (tmp_path / "two.uk").read_bytes() == (tmp_path / "three.uk").read_bytes()
    assert len(list(tmp_path.iterdir())) == 3


def test_files_can_be_overwritten_while_they_are_in_use(tmp_path):
    fast = SOURCES["split"]()
    fast.save(tmp_path / "fast.uk")
    loaded = load(tmp_path / "fast.uk")
    expected = loaded.decision_function(rows_for(BIG, extra_columns=0))
    loaded.save(tmp_path / "fast.uk")
    SOURCES["linear"]().save(tmp_path / "fast.uk")
    assert np.array_equal(loaded.decision_function(rows_for(BIG, extra_columns=0)), expected)


@pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda fast: pickle.loads(pickle.dumps(fast))])
def test_copies_work_without_the_file(make_copy, tmp_path):
    SOURCES["split"]().save(tmp_path / "fast.uk")
    loaded = load(tmp_path / "fast.uk")
    X = rows_for(BIG, extra_columns=0)
    duplicate, expected = make_copy(loaded), loaded.decision_function(X)
    (tmp_path / "fast.uk").unlink()
    assert np.array_equal(duplicate.decision_function(X), expected)


def test_a_model_of_support_vectors_must_be_compiled_first(tmp_path):
    BIG.save(tmp_path / "model.uk")
    with pytest.raises(ValueError, match=r"unkernel\.compile"):
        load(tmp_path / "model.uk")
    with pytest.raises(ValueError, match=r"unkernel\.compile"):
        unkernel.CompiledClassifier(BIG).predict(rows_for(BIG, extra_columns=0))


# --- Damage --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "step"), [("inverted", 3), ("split", 11), ("grouped", 29), ("prefixes", 29)]
)
def test_every_truncation_is_refused(layout, step, tmp_path):
    content = save_small_file(layout, tmp_path).read_bytes()
    assert len(content) < 20_000
    path = tmp_path / "short.uk"
    for length in range(0, len(content), step):
        path.write_bytes(content[:length])
        with pytest.raises(FormatError):
            load(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(FormatError, match="after the arrays"):
        load(path)


@every_layout
def test_small_files_have_the_parts_that_are_damaged(layout, tmp_path):
    loaded = load(save_small_file(layout, tmp_path))
    sizes = {name: array.size for name, array in loaded.tables.arrays.items()}
    if layout in ("trie", "split", "real"):
        assert sizes["pairs_keys"] and sizes["owner_weights"]
    if layout in ("split", "rare", "grouped", "prefixes"):
        assert sizes["posting_records"] and not sizes["items"]
    if layout == "items":
        assert sizes["items"] and sizes["posting_weights"] and not sizes["posting_records"]
    if layout in ("dense", "split"):
        assert sizes["head_top"]
    if layout == "grouped":
        assert len(loaded.tables.arrays["group_begins"]) > 2
        assert sizes["states"] and sizes["state_pair_sums"] and sizes["state_triple_sums"]
    if layout == "prefixes":
        assert loaded.trie.nodes == 30 and sizes["trie_ranks"] == 31
    assert (loaded.tables.layout == "conjunctions") == all(name in sizes for name in NEWER_ARRAYS)


@pytest.mark.hostile
def test_damaged_files_are_refused_or_harmless(tmp_path):
    paths = [save_small_file(layout, tmp_path) for layout in LAYOUTS]
    for refused, answered in damage.run(damage, paths, tmp_path / "work", seed=1, count=120):
        assert refused > 20 and answered > 10  # otherwise the damage is too weak or too strong


@pytest.mark.slow
@every_layout
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_more_kinds_of_damage_are_refused_or_harmless(layout, seed, tmp_path):
    damage.run(damage, [save_small_file(layout, tmp_path)], tmp_path / "work", seed, count=5000)


def predict_in_subprocess(path):
    """Load a file and predict rows in another process. Return 'refused' or 'answered'."""
    program = """if True:
        import sys, numpy as np, unkernel
        try:
            fast = unkernel.load(sys.argv[1])
        except ValueError:
            sys.exit("refused")
        rng = np.random.default_rng(0)
        for _ in range(20):
            try:
                fast.predict(rng.random((5, 12)), n_jobs=1)
                fast.predict(np.ones((5, 12)), n_jobs=1)
            except ValueError:
                pass
        sys.exit("answered")
    """
    result_ = run_python(program, path, env=damage.environment())
    assert result_.stderr.strip() in ("refused", "answered"), (
        f"{result_.returncode}: {result_.stderr[-1500:]}"
    )
    return result_.stderr.strip()


def test_rare_features_of_real_support_vectors(tmp_path):
    """Rare features have postings only in tables of sets; in tables of monomials they are refused."""
    path = save_small_file("rare", tmp_path)
    damage.rewrite(path, lambda settings, _: settings["tables"]["parameters"].update(sets=False))
    assert predict_in_subprocess(path) == "refused"


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_columns_out_of_order(degree, tmp_path):
    """In tables with fused features, ranks must be ordered by column, because offsets depend on it."""
    model = make_kernel_model(1, polynomial(degree), features=degree + 2, share=0.9)
    tables = builders.build_expanded(builders.Machine(model), head=builders.Head(4e6, fused=1))
    columns = tables.arrays["columns"]
    assert len(columns) == degree + 1
    for shift in range(1, len(columns) - 1):
        shuffled = np.concatenate((columns[:1], np.roll(columns[1:], shift)))
        reordered = dataclasses.replace(tables, arrays=tables.arrays | {"columns": shuffled})
        with pytest.raises(ValueError, match="not a valid table"):
            reordered.engine()


# --- Tampering with the header ---------------------------------------------------------------------------

ARBITRARY_VALUES = (
    None,
    [],
    {},
    "x",
    "\ud800",
    True,
    1.5,
    -1,
    2**31,
    2**32,
    10**9,
    10**400,
    float("nan"),
    float("inf"),
)


def list_paths(table, path=()):
    """Return the paths to all values in a nested dict."""
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from list_paths(value, (*path, key))


def replace_value(table, path, value):
    change_array = copy.deepcopy(table)
    inner = change_array
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return change_array


@pytest.mark.hostile
@pytest.mark.parametrize("layout", ["inverted", "bitsliced", "split", "prefixes"])
def test_changed_settings_are_refused_or_harmless(layout, tmp_path):
    """A file in which any setting has any value is refused with a ValueError, or scores a row."""
    path = save_small_file(layout, tmp_path)
    header, arrays = damage.split_file(path.read_bytes())
    settings = damage.read_settings(header)
    setting_paths = [p for p in list_paths(settings) if p[:3] != ("model", "settings", "origin")]
    assert len(setting_paths) > 25
    for path_in_settings in setting_paths:
        for value in ARBITRARY_VALUES:
            change_array = replace_value(settings, path_in_settings, value)
            path.write_bytes(damage.join_file(damage.replace_settings(header, change_array), arrays))
            try:
                load(path).score_one([0, 3])
            except ValueError:
                pass
            except Exception as error:
                pytest.fail(f"{type(error).__name__} for {value!r:.40} at {path_in_settings}: {error!s:.200}")


TAMPERED = {
    "layout": ("tables", "layout", "tree"),
    "layout of another engine": ("tables", "layout", "inverted"),
    "a degree that is too large": ("tables", "parameters", "degree", 10**9),
    "a degree that is a float": ("tables", "parameters", "degree", 3.0),
    "a degree that is a bool": ("tables", "parameters", "degree", True),
    "gamma is not finite": ("tables", "parameters", "gamma", float("nan")),
    "gamma is too large": ("tables", "parameters", "gamma", 10**400),
    "no such map": ("tables", "parameters", "map", "cubic"),
    "a zone that is negative": ("tables", "numbers", "head", -1),
    "a zone that is huge": ("tables", "numbers", "head", 2**32),
    "a zone beyond the features": ("tables", "numbers", "rare", 13),
    "a zone that is not an int": ("tables", "numbers", "head", 1.0),
    "a zone that is a bool": ("tables", "numbers", "fused", True),
    "no list of candidates": ("candidates", {}),
    "a candidate without settings": ("candidates", [{}]),
    "a candidate that is a string": ("candidates", ["split"]),
    "no model": ("model", None),
    "another kind of model": ("model", "kind", "linear"),
    "an unknown kind of model": ("model", "kind", "tree"),
    "a kind of model that is a list": ("model", "kind", []),
    "a layout that is a list": ("tables", "layout", []),
    "no tables": ("tables", None),
    "no parameters": ("tables", "parameters", {}),
    "no numbers": ("tables", "numbers", {}),
}


@pytest.mark.parametrize("name_of_change", TAMPERED)
def test_settings_that_are_refused(name_of_change, tmp_path):
    path = save_small_file("split", tmp_path)
    *path_in_settings, value = TAMPERED[name_of_change]

    def change(settings, arrays):
        settings.update(replace_value(settings, path_in_settings, value))

    damage.rewrite(path, change)
    with pytest.raises(FormatError) as caught:
        load(path)
    assert caught.value.file == str(path)


@every_layout
def test_missing_arrays_are_refused(layout, tmp_path):
    path = save_small_file(layout, tmp_path)
    content = path.read_bytes()
    names = set(damage.split_file(content)[1]) - {"model.sv_values"}  # if missing, all values are 1
    required_newer = {
        f"engine.{name}" for name in NEWER_ARRAYS if damage.split_file(content)[1].get(f"engine.{name}")
    }
    assert bool(required_newer) == (layout in ("split", "rare", "grouped", "prefixes"))
    for name in sorted(names - {f"engine.{newer}" for newer in NEWER_ARRAYS} | required_newer):
        path.write_bytes(content)
        damage.rewrite(path, lambda settings, arrays, name=name: arrays.pop(name))
        with pytest.raises(FormatError):
            load(path)


@every_layout
def test_files_of_the_first_version_are_read(layout, tmp_path):
    """Such files lack the newer arrays and some fields of candidates."""
    path = save_small_file(layout, tmp_path)
    expected = load(path)

    def to_first_version(settings, arrays):
        for name in NEWER_ARRAYS:
            if not arrays.get(f"engine.{name}", b"x"):
                del arrays[f"engine.{name}"]
        for candidate in settings["candidates"]:
            del candidate["grouped"], candidate["trie_nodes"]

    damage.rewrite(path, to_first_version)
    first_version = load(path)
    X = rows_for(expected.model, extra_columns=0)
    assert np.array_equal(first_version.decision_function(X), expected.decision_function(X))
    assert list(first_version.candidates) == list(expected.candidates)


def test_files_without_arrays_of_groups_give_the_same_scores(tmp_path):
    """The sums of groups are computed from the dense table, which remains in the file."""
    path = save_small_file("grouped", tmp_path)
    original = load(path)
    damage.rewrite(path, lambda settings, arrays: [arrays.pop(f"engine.{name}") for name in NEWER_ARRAYS[1:]])
    X = rows_for(original.model, extra_columns=0)
    np.testing.assert_allclose(load(path).decision_function(X), original.decision_function(X), rtol=1e-11)


def change_array(name, change):
    def rewrite(settings, arrays):
        numbers = np.frombuffer(arrays[f"engine.{name}"], HOSTILE_TYPES[name]).copy()
        arrays[f"engine.{name}"] = np.asarray(change(numbers)).astype(numbers.dtype).tobytes()

    return rewrite


def set_item(index, value):
    def change(numbers):
        numbers[index] = value
        return numbers

    return change


HOSTILE_TYPES = {
    **dict.fromkeys(("trie_first_child", "trie_ranks", "trie_counts"), "<u4"),
    **dict.fromkeys(("group_begins", "state_begins"), "<u4"),
    **{"trie_sums": "<f8", "trie_limit": "<u8", "states": "<u8", "posting_records": "<u8"},
}
HOSTILE = {
    "a rank beyond the common": ("prefixes", "trie_ranks", set_item(-1, 12)),
    "a rank beyond all": ("prefixes", "trie_ranks", set_item(-1, 2**32 - 1)),
    "ranks that do not ascend": ("prefixes", "trie_ranks", lambda ranks: ranks[::-1]),
    "a child that is its own parent": ("prefixes", "trie_first_child", set_item(0, 0)),
    "children beyond the nodes": ("prefixes", "trie_first_child", set_item(-1, 32)),
    "children in between": ("prefixes", "trie_first_child", set_item(3, 2**32 - 1)),
    "no nodes": ("prefixes", "trie_ranks", lambda ranks: ranks[:0]),
    "one count less": ("prefixes", "trie_counts", lambda counts: counts[1:]),
    "one sum less": ("prefixes", "trie_sums", lambda sums: sums[1:]),
    "no limit": ("prefixes", "trie_limit", lambda limit: limit[:0]),
    "a limit of nothing": ("prefixes", "trie_limit", set_item(0, 0)),
    "an enormous limit": ("prefixes", "trie_limit", set_item(0, 2**31)),
    "groups beyond the dense table": ("grouped", "group_begins", set_item(-1, 13)),
    "groups that descend": ("grouped", "group_begins", set_item(1, 2**32 - 1)),
    "no first group": ("grouped", "group_begins", lambda begins: begins[1:]),
    "states beyond all": ("grouped", "state_begins", lambda begins: begins + (begins > 0)),
    "one state less": ("grouped", "states", lambda states: states[1:]),
    "states of no feature": ("grouped", "states", lambda states: states * 0),
    "the same state again": ("grouped", "states", lambda states: states * 0 + 1),
    "a vector beyond all": ("split", "posting_records", set_item(-1, 2**40)),
    "a vector that is the number of records": (
        "split",
        "posting_records",
        lambda r: set_item(-1, len(r) // 4)(r),
    ),
    "bits of rare features": ("split", "posting_records", set_item(0, 2**63)),
    "bits of the second word": ("split", "posting_records", set_item(1, 1)),
    "one word less": ("split", "posting_records", lambda records: records[:-1]),
    "all records of one vector": ("split", "posting_records", set_item(slice(3, None, 4), 0)),
}


@pytest.mark.parametrize("name_of_change", HOSTILE)
def test_hostile_arrays_are_refused(name_of_change, tmp_path):
    layout, name, change_numbers = HOSTILE[name_of_change]
    path = save_small_file(layout, tmp_path)
    damage.rewrite(path, change_array(name, change_numbers))
    with pytest.raises(FormatError):
        load(path)


HARMLESS = {
    "bits outside the group": ("grouped", "states", lambda states: states | 1 << 63),
    "counts of nothing": ("prefixes", "trie_counts", lambda counts: counts * 0),
    "enormous counts": ("prefixes", "trie_counts", lambda counts: counts * 0 - 1),
    "a limit below the nodes": ("prefixes", "trie_limit", set_item(0, 1)),
}


@pytest.mark.parametrize("name_of_change", HARMLESS)
def test_unused_arrays_do_not_change_scores(name_of_change, tmp_path):
    layout, name, change = HARMLESS[name_of_change]
    path = save_small_file(layout, tmp_path)
    X = rows_for(SMALL, extra_columns=0)
    expected = load(path).decision_function(X)
    damage.rewrite(path, change_array(name, change))
    loaded = load(path)
    if "again" not in name_of_change:
        np.testing.assert_allclose(loaded.decision_function(X), expected, rtol=1e-11)
    if loaded.trie is not None:
        assert loaded.trie.grow(X).nodes <= loaded.trie.limit
        np.testing.assert_allclose(loaded.decision_function(X), expected, rtol=1e-11)


@pytest.mark.parametrize("layout", ["inverted", "bitsliced", "dense", "grouped"])
def test_tries_in_files_of_other_engines_are_refused(layout, tmp_path):
    make_copy = damage.split_file(save_small_file("prefixes", tmp_path).read_bytes())
    path = save_small_file(layout, tmp_path)
    header, arrays = damage.split_file(path.read_bytes())
    for name in [name for name in make_copy[1] if name.startswith("engine.trie_")]:
        header[name], arrays[name] = make_copy[0][name], make_copy[1][name]
    path.write_bytes(damage.join_file(header, arrays))
    with pytest.raises(FormatError):
        load(path)


@every_layout
def test_arrays_of_another_type_are_refused(layout, tmp_path):
    path = save_small_file(layout, tmp_path)
    header, arrays = damage.split_file(path.read_bytes())
    make_copy = {"F64": "I64", "I64": "U64", "U32": "I32", "U16": "F32", "U64": "F64", "I32": "U32"}
    for name, array in arrays.items():
        if array and len(array) % 4 == 0:
            change_array = header | {name: header[name] | {"dtype": make_copy[header[name]["dtype"]]}}
            path.write_bytes(damage.join_file(change_array, arrays))
            with pytest.raises(FormatError):
                load(path)


def test_tables_with_another_number_of_scores_are_refused(tmp_path):
    tables = unkernel.compile(make_kernel_model(scores=3), "expanded").tables
    unkernel.CompiledClassifier(make_kernel_model(scores=1), tables).save(tmp_path / "mixed.uk")
    with pytest.raises(FormatError, match="do not fit the model"):
        load(tmp_path / "mixed.uk")
