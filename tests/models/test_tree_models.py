"""Models of trees in ``.uk`` files: exact round trips, and errors for damaged files.

UNKERNEL_FUZZ=100000 pytest tests/models/test_tree_models.py -k fuzz      tries more files.
"""

from __future__ import annotations

import copy
import io
import json
import os
import random
import sys

import numpy as np
import pytest
from scipy import sparse

import unkernel
from reference.models import join_file_parts, make_header
from reference.processes import run_program
from reference.tree_examples import make_problem
from unkernel import Forest, FormatError, TreeClassifier, TreeModel, TreeSVC, read_trees
from unkernel.data.trees.forest import Vectors
from unkernel.models import Decision, ExampleKernel, Kernel, load_model, read_model

FUZZ_ROUNDS = int(os.environ.get("UNKERNEL_FUZZ", "400"))
TYPES = {"f8": "F64", "i8": "I64", "i4": "I32", "u1": "U8"}


def make_model(*, scores=1, combination="sum"):
    """Return a model of two channels of trees and two of vectors, some of which lack an example."""
    rng = np.random.default_rng(1)
    trees = Forest(
        {"syntax": ["(S (NP a) (VP b))", "(S (NP a))", "(NP (NP c))"], "role": ["(R x)", None, "(R (R y))"]}
    )
    vectors = {
        "v": Vectors(sparse.csr_matrix([[0, 1.5], [2.0, 0], [0, 0]]), np.array([True, True, False])),
        "w": Vectors(sparse.csr_matrix((3, 4)), np.array([True, True, True])),
    }
    forest = Forest._from_table(trees.table, trees.trees, vectors, ["one", "two", "three", "four"])
    classes = np.array(["no", "yes"]) if scores == 1 else np.arange(scores)
    return TreeModel(
        ExampleKernel(
            "sst_bow", 0.3, combination=combination, tree_weight=0.7, vector=Kernel("polynomial", 2, 0.5, 1.0)
        ),
        forest,
        rng.normal(size=(3, scores)),
        rng.normal(size=scores),
        Decision("binary" if scores == 1 else "one_vs_rest", classes),
        {"learner": "none"},
    )


def make_small_model():
    return make_model(scores=3)


ASKED = ["(S (NP a) (VP b))", "(S (NP a) (VP (NP c)))", "(R x)", "(New)"]


def prediction_inputs():
    forest = Forest({"syntax": ASKED, "role": ASKED[::-1]}, vectors={"v": np.eye(4)})
    forest.features = ["two", "one", "four", "three"]
    return forest


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.uk"


# --- Round trips ------------------------------------------------------------------------------------


def assert_same_model(actual, model):
    assert actual.kernel == model.kernel
    assert actual.origin == model.origin
    assert np.array_equal(actual.coefficients, model.coefficients)
    assert np.array_equal(actual.intercept, model.intercept)
    assert actual.classes.tolist() == model.classes.tolist()
    assert actual.support.features == model.support.features
    assert list(actual.support.trees) == list(model.support.trees)
    for name in model.support.trees:
        assert actual.support.brackets(name) == model.support.brackets(name)
    assert list(actual.support.vectors) == list(model.support.vectors)
    for name, vectors in model.support.vectors.items():
        actual_vectors = actual.support.vectors[name]
        assert np.array_equal(actual_vectors.present, vectors.present)
        assert actual_vectors.matrix.shape == vectors.matrix.shape
        assert np.array_equal(actual_vectors.matrix.toarray(), vectors.matrix.toarray())


@pytest.mark.parametrize("combination", ["trees", "vectors", "sum", "product"])
@pytest.mark.parametrize("scores", [1, 3])
def test_models_are_read_back(combination, scores, path):
    model = make_model(scores=scores, combination=combination)
    expected = TreeClassifier(model).decision_function(prediction_inputs())
    for save in (model.save, TreeClassifier(model).save):
        save(path)
        for loaded in (load_model(path), read_model(path), unkernel.load(path).model):
            assert_same_model(loaded, model)
        for fast in (unkernel.load(path), unkernel.compile(path)):
            assert isinstance(fast, TreeClassifier)
            assert np.array_equal(fast.decision_function(prediction_inputs()), expected)


def test_saving_twice_gives_equal_bytes(path, tmp_path):
    texts, y = make_problem(1, 60)
    contents = []
    for _ in range(2):
        TreeSVC("ptk").fit(texts, y).save(path)
        contents.append(path.read_bytes())
    load_model(path).save(tmp_path / "again.uk")
    assert contents[0] == contents[1] == (tmp_path / "again.uk").read_bytes()


def test_arrays_are_mapped_into_memory(path):
    make_model().save(path)
    assert isinstance(load_model(path).coefficients, np.memmap)
    assert not load_model(path).coefficients.flags.writeable


def test_features_with_names(path):
    forest = read_trees(io.BytesIO(b"1 |BV:v| x:1 z:2 |EV|\n-1 |BV:v| y:3 |EV| |BV:w| x:1 |EV|\n")).X
    model = TreeModel(
        ExampleKernel(combination="vectors"),
        forest,
        np.array([[1.0], [-1.0]]),
        np.zeros(1),
        Decision("binary", np.array([0, 1])),
        {},
    )
    model.save(path)
    assert_same_model(load_model(path), model)
    by_name = read_trees(io.BytesIO(b"1 |BV:v| y:1 new:5 x:4 |EV|\n")).X
    assert unkernel.load(path).decision_function(by_name).tolist() == [1.0]  # 4 - 3
    with pytest.raises(ValueError, match="have names"):
        unkernel.load(path).predict(Forest({}, vectors={"v": np.eye(1)}))


def test_models_of_unusual_shapes_are_read_back(path):
    decision = Decision("binary", np.array([0, 1]))
    for forest in (
        Forest([]),
        Forest({}, vectors=np.eye(2)),
        Forest([None, "(A)"]),
        Forest({"a": ["(A \0)"]}),
    ):
        kernel = ExampleKernel(combination="trees" if forest.trees else "vectors")
        model = TreeModel(kernel, forest, np.ones((len(forest), 1)), np.zeros(1), decision, {})
        model.save(path)
        assert_same_model(load_model(path), model)
        assert unkernel.load(path).decision_function(Forest(["(A b)"], vectors=[[1.0]])).shape == (1,)


def test_labels_that_are_no_text(path):
    forest = read_trees(io.BytesIO(b"(A \xff)")).X
    model = TreeModel(
        ExampleKernel(), forest, np.ones((1, 1)), np.zeros(1), Decision("binary", np.array([0, 1])), {}
    )
    model.save(path)
    assert load_model(path).support.brackets() == ["(A \udcff)"]


def test_a_deep_model(path):
    deep = "(X " * 20_000 + "x" + ")" * 20_000
    model = TreeModel(
        ExampleKernel("st"),
        Forest([deep]),
        np.ones((1, 1)),
        np.zeros(1),
        Decision("binary", np.array([0, 1])),
        {},
    )
    model.save(path)
    assert load_model(path).support.brackets() == [deep]


def test_inconsistent_parts_are_refused():
    model = make_model()
    for changes in (
        {"coefficients": model.coefficients[:2]},
        {"coefficients": np.ones((3, 2))},
        {"intercept": np.ones(2)},
        {"decision": Decision("one_vs_rest", np.arange(3))},
        {"support": model.support[:2]},
    ):
        parts = {
            name: getattr(model, name)
            for name in ("kernel", "support", "coefficients", "intercept", "decision", "origin")
        }
        with pytest.raises(ValueError, match="number of scores"):
            TreeModel(**parts | changes)


# --- Damaged ----------------------------------------------------------------------------------------


def split_model(model):
    arrays, model_settings = model.to_container()
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}, model_settings


def uk_bytes(arrays, model_settings):
    """Return a file of these arrays and settings, in an order that keeps them aligned."""
    ordered = dict(sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize))
    header = make_header({}, model_settings, kind="tree")
    offset = 0
    for name, array in ordered.items():
        entry = {"dtype": TYPES[array.dtype.str[1:]], "shape": list(array.shape)}
        header[name] = entry | {"data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    return join_file_parts(header, b"".join(array.tobytes() for array in ordered.values()))


def check_refused(path, content, match=None):
    path.write_bytes(content)
    with pytest.raises(FormatError, match=match) as caught:
        unkernel.load(path)
    assert caught.value.file == str(path)


def check_refused_or_predicts(path, content):
    """Check that the file is refused, or that the loaded model predicts. Return whether it does."""
    path.write_bytes(content)
    try:
        fast = unkernel.load(path)
    except FormatError:
        return False
    examples = Forest(dict.fromkeys(fast.model.support.trees or ["0"], ASKED), vectors={"v": np.eye(4)})
    try:
        assert len(fast.predict(examples)) == 4
    except ValueError as error:
        # The changed file has a very large decay or value, or lacks names of features.
        assert "finite" in str(error) or "names" in str(error)
    fast.model.support.brackets()
    return True


def test_a_file_put_together_by_hand(path):
    model = make_small_model()
    path.write_bytes(uk_bytes(*split_model(model)))
    assert_same_model(load_model(path), model)


@pytest.mark.hostile
def test_a_file_cut_anywhere(path):
    make_small_model().save(path)
    content = path.read_bytes()
    for length in [*range(0, len(content), 7), len(content) - 1]:
        check_refused(path, content[:length])


@pytest.mark.hostile
def test_any_byte_changed(path):
    content = uk_bytes(*split_model(make_small_model()))
    answered = 0
    for place in range(0, len(content), 3):
        answered += check_refused_or_predicts(
            path, content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        )
    assert 0 < answered < len(content) // 3  # a digit of a coefficient, or of a name


@pytest.mark.parametrize("name", sorted(split_model(make_small_model())[0]))
def test_an_array_that_is_missing_or_of_another_kind(name, path):
    arrays, model_settings = split_model(make_small_model())
    check_refused(
        path, uk_bytes({key: array for key, array in arrays.items() if key != name}, model_settings)
    )
    for dtype in (np.float64, np.int64, np.int32, np.uint8):
        if arrays[name].dtype != dtype:
            check_refused(
                path, uk_bytes(arrays | {name: np.zeros(arrays[name].shape, dtype)}, model_settings)
            )
    check_refused(path, uk_bytes(arrays | {name: arrays[name][..., None]}, model_settings))
    shorter = arrays[name][:-1]
    if len(arrays[name]):
        check_refused(path, uk_bytes(arrays | {name: shorter}, model_settings))


def changed_array(name, place, value):
    arrays, model_settings = split_model(make_small_model())
    array = arrays[name].copy()
    array.reshape(-1)[place] = value
    return uk_bytes(arrays | {name: array}, model_settings)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("roots", 0, 10_000),
        ("roots", 1, -2),
        ("roots", 0, 2**31 - 1),
        ("children", 0, 10_000),
        ("children", 0, -1),
        ("children", -1, 2**31 - 1),
        ("node_labels", 0, 10_000),
        ("node_labels", 0, -1),
        ("child_begins", 0, 1),
        ("child_begins", 1, -1),
        ("child_begins", -1, 10_000),
        ("child_begins", -1, 2**62),
        ("child_begins", 2, 2**62),
        ("label_ends", 0, -1),
        ("label_ends", 0, 2**62),
        ("label_ends", -1, 0),
        ("coefficients", 0, np.nan),
        ("coefficients", 0, np.inf),
        ("intercepts", 0, np.nan),
        ("vectors0.columns", 0, -1),
        ("vectors0.columns", 0, 2),
        ("vectors0.offsets", 0, 1),
        ("vectors0.offsets", 1, -1),
        ("vectors0.offsets", -1, 2**62),
        ("vectors0.values", 0, np.nan),
        ("vectors0.values", 0, np.inf),
    ],
)
def test_numbers_out_of_range_are_refused(name, place, value, path):
    check_refused(path, changed_array(name, place, value))


def test_repeated_nodes_are_refused(path):
    """Every subtree must occur once; otherwise equal trees would have different roots."""
    model = TreeModel(
        ExampleKernel(),
        Forest(["(A b)"]),
        np.ones((1, 1)),
        np.zeros(1),
        Decision("binary", np.array([0, 1])),
        {},
    )
    arrays, model_settings = split_model(model)
    twice = arrays | {
        "node_labels": np.append(arrays["node_labels"], arrays["node_labels"][-1:]),
        "child_begins": np.append(arrays["child_begins"], arrays["child_begins"][-1:] + 1),
        "children": np.append(arrays["children"], arrays["children"][-1:]),
    }
    check_refused(path, uk_bytes(twice, model_settings), "trees are damaged")


KERNEL = {
    "tree": ["", "tree", None, 1, ["sst"]],
    "decay": [0, -1, 0.0, 1e-9, float("nan"), float("inf"), None, "0.4", True, 10**400],
    "width_decay": [0, float("nan"), None],
    "normalize": [0, 1, None, "true"],
    "tree_pairing": ["some", None],
    "combination": ["both", None, {}],
    "tree_weight": [-1.0, float("nan"), float("inf"), None, True],
    "normalize_vectors": [0, None],
    "vector_pairing": ["N", None],
    "vector": [
        None, {}, [], "linear",
        {"name": "precomputed", "degree": 2, "gamma": 1.0, "coef0": 0.0},
        {"name": "linear", "degree": -1, "gamma": 1.0, "coef0": 0.0},
        {"name": "polynomial", "degree": 2**40, "gamma": 1.0, "coef0": 0.0},
        {"name": "polynomial", "degree": 2.0, "gamma": 1.0, "coef0": 0.0},
        {"name": "polynomial", "degree": True, "gamma": 1.0, "coef0": 0.0},
        {"name": "polynomial", "degree": 2, "gamma": float("nan"), "coef0": 0.0},
        {"name": "polynomial", "degree": 2, "gamma": 1.0, "coef0": float("inf")},
        {"name": "polynomial", "degree": 2, "gamma": 10**400, "coef0": 0.0},
        {"name": "rbf", "degree": 2, "gamma": -1.0, "coef0": 0.0},
        {"name": "polynomial", "degree": 2, "gamma": 1.0},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"),
    [(key, value) for key, values in KERNEL.items() for value in values],
    ids=lambda v: str(v)[:40],
)
def test_invalid_kernels_are_refused(key, value, path):
    arrays, model_settings = split_model(make_small_model())
    kernel = model_settings["kernel"] | {key: value}
    check_refused(path, uk_bytes(arrays, model_settings | {"kernel": kernel}), "kernel")


SETTINGS = {
    "kernel": [None, [], {}, "sst", {"tree": "sst"}],
    "decision": [None, {}, []],
    "origin": [None, [], 1],
    "tree_channels": [None, [], ["a"], ["a", "a"], ["a", 1], "ab", {"a": 1}, ["a", "b", "c"]],
    "vector_channels": [
        None, {}, "v", [["v", 2]] * 2, [["v"], ["w"]], [["v", -1], ["w", 4]], [["v", 1], ["w", 4]],
        [["v", 2**31], ["w", 4]], [["v", 2.0], ["w", 4]], [["v", True], ["w", 4]], [[1, 2], ["w", 4]],
        [["v", 2], ["w", 4], ["x", 1]],
    ],
    "features": ["one", [1], ["one", "one"], {}, [], ["one"], ["one", "two", "three"]],  # fewer than columns
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value"),
    [(key, value) for key, values in SETTINGS.items() for value in values],
    ids=lambda v: str(v)[:40],
)
def test_invalid_settings_are_refused(key, value, path):
    arrays, model_settings = split_model(make_small_model())
    check_refused(path, uk_bytes(arrays, model_settings | {key: value}))


def test_settings_that_are_missing(path):
    arrays, model_settings = split_model(make_small_model())
    for key in model_settings:
        if key != "features":
            check_refused(
                path, uk_bytes(arrays, {name: v for name, v in model_settings.items() if name != key})
            )


# --- Fuzzing ----------------------------------------------------------------------------------------

NUMBERS = [0, -1, 1, 2, 3.5, 2**31, 2**63, 10**400, float("nan"), float("inf")]
ODD = [None, True, *NUMBERS, "", "x", "\ud800", "sst", "vectors", [], [0], ["v", 2], {}]


def places(node, route=()):
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield (*route, key)
        yield from places(child, (*route, key))


def changed_settings(rng):
    arrays, model_settings = split_model(make_small_model())
    table = json.loads(json.dumps(model_settings))
    *route, key_or_index = rng.choice(list(places(table)))
    node = table
    for key in route:
        node = node[key]
    if rng.random() < 0.2:
        del node[key_or_index]
    else:
        node[key_or_index] = copy.deepcopy(rng.choice(ODD))
    return uk_bytes(arrays, table)


def changed_arrays(rng):
    arrays, model_settings = split_model(make_small_model())
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(sorted(arrays))
        array = arrays[name].copy()
        if not array.size:
            continue
        if rng.random() < 0.3:
            array = np.delete(array, rng.randrange(len(array)), axis=0)
        elif array.dtype.kind == "f":
            array.reshape(-1)[rng.randrange(array.size)] = rng.choice([0.0, -1.0, 1e300, 1e-300, np.nan])
        else:
            limits = np.iinfo(array.dtype)
            value = rng.choice([0, 1, 2, 5, int(limits.max), int(limits.min), rng.randint(0, 20)])
            array.reshape(-1)[rng.randrange(array.size)] = value
        arrays[name] = array
    return uk_bytes(arrays, model_settings)


@pytest.mark.hostile
@pytest.mark.parametrize("changed", [changed_settings, changed_arrays])
def test_fuzz(changed, path):
    answered = 0
    for seed in range(FUZZ_ROUNDS):
        try:
            answered += check_refused_or_predicts(path, changed(random.Random(seed)))
        except BaseException:
            print(f"seed {seed}")
            raise
    assert 0 < answered < FUZZ_ROUNDS


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_large_column_numbers_take_little_memory(tmp_path):
    """A column number of 2^31 does not allocate an array of 2^31 entries."""
    arrays, model_settings = split_model(make_small_model())
    columns = arrays["vectors0.columns"].copy()
    columns[-1] = 2**31 - 3
    wide = model_settings | {"vector_channels": [["v", 2**31 - 2], ["w", 4]], "features": None}
    path = tmp_path / "far.uk"
    path.write_bytes(uk_bytes(arrays | {"vectors0.columns": np.sort(columns)}, wide))
    program = """
        import resource, sys
        from pathlib import Path
        import numpy as np
        import unkernel, unkernel.engines.classifier_files
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (200 << 20),) * 2)
        fast = unkernel.load(sys.argv[1])
        print(fast.predict(unkernel.Forest({"syntax": ["(S (NP a))"]}, vectors={"v": np.eye(1)}), n_jobs=1))
    """
    run_program(program, path)
