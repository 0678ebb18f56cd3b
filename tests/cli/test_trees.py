"""Models of trees on the command line: every command accepts them or explains why not."""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from unkernel import TreeSVC, load, read_model, read_trees
from unkernel.cli import main
from unkernel.cli.inputs import trees as _trees
from unkernel.cli.options.estimator_options import derive_options
from unkernel.models.tree import COMBINATIONS, PAIRINGS, TREE_KERNELS, VECTOR_KERNELS

FAST = ("--seconds", "0.01")
QUESTIONS = [
    ("HUM", "(SBARQ (WHNP (WP Who)) (SQ (VBD wrote) (NP (NN it))))"),
    ("HUM", "(SBARQ (WHNP (WP Who)) (SQ (VBZ is) (NP (PRP she))))"),
    ("HUM", "(SBARQ (WHNP (WP Who)) (SQ (VBD ran)))"),
    ("LOC", "(SBARQ (WHADVP (WRB Where)) (SQ (VBZ is) (NP (NN it))))"),
    ("LOC", "(SBARQ (WHADVP (WRB Where)) (SQ (VBD went) (NP (PRP she))))"),
    ("LOC", "(SBARQ (WHNP (WDT Which) (NN city)) (SQ (VBZ is) (NP (NN it))))"),
    ("NUM", "(SBARQ (WHADVP (WRB When)) (SQ (VBD wrote) (NP (PRP she)) (NP (NN it))))"),
    ("NUM", "(SBARQ (WHNP (WHADJP (WRB How) (JJ many)) (NNS books)) (SQ (VBD wrote) (NP (PRP she))))"),
    ("NUM", "(SBARQ (WHADVP (WRB When)) (SQ (VBD ran)))"),
]


def write_questions(path, questions=QUESTIONS):
    path.write_text("".join(f"{label} |BT| {tree} |ET|\n" for label, tree in questions))
    return path


@pytest.fixture
def questions(tmp_path):
    """Return three classes with text labels."""
    return write_questions(tmp_path / "questions.dat")


@pytest.fixture
def tree_files(golden):
    """Return files of two classes for training and evaluation."""
    return golden / "trees.train.dat", golden / "trees.test.dat"


@pytest.fixture(scope="module")
def trained(tmp_path_factory, golden):
    path = tmp_path_factory.mktemp("trained") / "trees.uk"
    assert main(["train", "tree", str(golden / "trees.train.dat"), "-o", str(path), "--quiet"]) == 0
    return path


@pytest.fixture
def tree_model(tmp_path, trained):
    """Return a copy of the trained model, which the test may change."""
    return Path(shutil.copy(trained, tmp_path))


@pytest.fixture
def vector_files(golden):
    """Return files with several trees and vectors per example."""
    return golden / "svmlight-tk-multi.train.dat", golden / "svmlight-tk-multi.test.dat"


@pytest.fixture
def vector_model(tmp_path, vector_files, run):
    path = tmp_path / "vectors.uk"
    options = ("--vector-kernel", "polynomial", "--gamma", "0.5", "--tree-weight", "0.3")
    assert run("train", "tree", vector_files[0], "-o", path, *options, "--quiet").code == 0
    return path


# --- train --------------------------------------------------------------------------------------------


def test_train_reports_its_result(run, tree_files, tmp_path):
    result = run(
        "train",
        "tree",
        tree_files[0],
        "-o",
        tmp_path / "m.uk",
        "--kernel",
        "sst",
        "--C",
        "1",
        "--test",
        tree_files[1],
    )
    assert (result.code, result.err) == (0, "")
    for words in (
        "160 trees, 2 classes: -1, 1",
        "subset trees, decay 0.4",
        "support trees of",
        "of solver exact",
        "training accuracy",
        "test accuracy      71.67 % (43 of 60 trees)",
        "precision 68.97 %, recall 71.43 %",
    ):
        assert words in result.out


def test_the_model_is_the_estimators(run, tree_files, tmp_path):
    options = ["--kernel", "ptk", "--decay", "0.3", "--width-decay", "0.5", "--no-normalize", "--C", "0.1"]
    options += ["--imbalance", "2", "--no-intercept", "--tol", "1e-4", "--jobs", "1"]
    output = run("train", "tree", tree_files[0], "-o", tmp_path / "m.uk", *options, "--json").json
    X, y = read_trees(tree_files[0])
    svc = TreeSVC(
        "ptk", decay=0.3, width_decay=0.5, normalize=False, C=0.1, imbalance=2, fit_intercept=False, tol=1e-4
    )
    model = svc.fit(X, y).to_model()
    trained = load(tmp_path / "m.uk").model
    assert trained.kernel == model.kernel
    assert np.array_equal(trained.coefficients, model.coefficients)
    assert output["objective"] == svc.objective_
    assert output["learner"] == "TreeSVC"
    assert (output["kernel"], output["decay"], output["solver"], output["combine"]) == (
        "ptk",
        0.3,
        "exact",
        "trees",
    )
    assert (output["rows"], output["support_trees"]) == (160, model.n_support)
    assert output["training_accuracy"] == pytest.approx(np.mean(svc.predict(X) == y))
    assert trained.origin | {"seed": 0, "rows": 160, "tol": 1e-4} == trained.origin


def test_sampled(run, tree_files, tmp_path):
    options = ("--solver", "sampled", "--sample-size", "50", "--seed", "3", "--C", "0.5")
    for name in ("a.uk", "b.uk"):
        result = run("train", "tree", tree_files[0], "-o", tmp_path / name, *options)
        assert "of solver sampled" in result.out
    a, b = (load(tmp_path / name).model for name in ("a.uk", "b.uk"))
    assert np.array_equal(a.coefficients, b.coefficients)
    assert a.origin["solver"] == "sampled"
    assert a.origin["seed"] == 3


def test_classes_that_are_texts(run, questions, tmp_path):
    path = tmp_path / "q.uk"
    output = run(
        "train", "tree", questions, "-o", path, "--C", "10", "--class-weight", "LOC=2,HUM=0.5", "--json"
    ).json
    assert output["classes"] == ["HUM", "LOC", "NUM"]
    assert output["training_accuracy"] == 1.0
    assert output["training_f1"] is None
    result = run("predict", path, questions, "--output", "-", "--quiet")
    assert result.out.split() == [label for label, _ in QUESTIONS]
    assert "one score per class" in run("inspect", path).out


def test_class_weights_are_by_label(run, questions, tree_files, tmp_path):
    X, y = read_trees(questions)
    expected = TreeSVC(class_weight={"LOC": 3}).fit(X, y).objective_
    output = run(
        "train", "tree", questions, "-o", tmp_path / "m.uk", "--class-weight", "LOC=3", "--json"
    ).json
    assert output["objective"] == pytest.approx(expected, rel=1e-12)
    X, y = read_trees(tree_files[0])
    expected = TreeSVC(class_weight={1: 3}).fit(X, y).objective_
    output = run(
        "train", "tree", tree_files[0], "-o", tmp_path / "m.uk", "--class-weight", "+1=3", "--json"
    ).json
    assert output["objective"] == pytest.approx(expected, rel=1e-12)
    message = run("train", "tree", questions, "-o", tmp_path / "m.uk", "--class-weight", "WHY=3").error()
    assert "do not occur: ['WHY']" in message
    assert (
        "--class-weight must be"
        in run("train", "tree", questions, "-o", tmp_path / "m.uk", "--class-weight", "=3").error()
    )


def test_vectors_are_combined_with_trees(run, vector_files, vector_model):
    kernel = load(vector_model).model.kernel
    assert (kernel.combination, kernel.tree_weight, kernel.vector.name) == ("sum", 0.3, "polynomial")
    assert (kernel.vector.degree, kernel.vector.gamma) == (2, 0.5)
    output = run("predict", vector_model, vector_files[1], "--json").json
    assert output["accuracy"] > 0.7
    result = run(
        "train", "tree", vector_files[0], "-o", vector_model, "--combine", "product", "--no-normalize-vectors"
    )
    assert "41 features" in result.out
    assert load(vector_model).model.kernel.combination == "product"


def test_trees_have_no_cache(run, vector_files, vector_model):
    result = run("predict", vector_model, vector_files[0], "--cache-rows", 10)
    assert "--cache-rows is for rows and records" in result.error()


def test_a_kelp_file(run, tmp_path):
    lines = [f"{label} |BT:tree| {tree} |ET| |BV:bow| word:1 |EV|\n" for label, tree in QUESTIONS]
    (tmp_path / "q.klp.gz").write_bytes(gzip.compress("".join(lines).encode()))
    result = run(
        "train", "tree", tmp_path / "q.klp.gz", "-o", tmp_path / "m.uk", "--combine", "trees", "--C", "10"
    )
    assert "training accuracy  100.00 %" in result.out
    result = run("predict", tmp_path / "m.uk", write_questions(tmp_path / "q.dat"))
    assert result.out.splitlines() == [str(label) for label, _ in QUESTIONS]
    assert "100.00 % (9 of 9 trees)" in result.err


@pytest.mark.parametrize(
    ("content", "name", "trees"),
    [
        (b"1 |BT| (A b) |ET|\n", "a", True),
        (b"\n# of trees\nDESC |BT:x| (A b) |ET|\n", "a", True),
        (b"1 3:1 |BV| 2:1\n", "a", True),
        (b"(S (NP dogs))\n", "a", True),
        (b"1 word:1\n", "a.klp", True),
        (b"1 1:1 # |BT| is no mark here\n", "a", False),
        (b"1 1:1\n1 |BT| (A b) |ET|\n", "a", False),
        (b"", "a", False),
    ],
)
def test_files_of_trees_are_recognised(content, name, trees, tmp_path):
    for compress in (bytes, gzip.compress):
        (tmp_path / name).write_bytes(compress(content))
        assert _trees.is_tree_file(str(tmp_path / name)) is trees
    assert not _trees.is_tree_file(str(tmp_path / "missing"))
    assert not _trees.is_tree_file(str(tmp_path))
    assert not _trees.is_tree_file("-")


def test_from_stdin(run, stdin, tree_files, tmp_path):
    """Input from a pipe cannot be examined before it is read."""
    stdin(tree_files[0].read_bytes())
    assert run("train", "tree", "-", "-o", tmp_path / "m.uk", "--json").json["learner"] == "TreeSVC"
    stdin(tree_files[0].read_bytes())
    message = run("train", "poly", "-", "-o", tmp_path / "m.uk", "--json").error()
    assert message == (
        "/dev/stdin:1:4: this is a line of trees, not of features; train on trees with unkernel train tree"
    )


TRAINING_REFUSED = {
    "rows": ("binary.test.svm", "binary.test.svm: has no trees .* --combine vectors"),
    "rows, an option of trees": ("poly binary.test.svm --decay 0.4", "No such option: --decay"),
    "trees for rows": (
        "linear trees.train.dat",
        "holds trees, not rows of features; train on trees",
    ),
    "tests of rows": ("trees.train.dat --test binary.test.svm", "binary.test.svm: has no trees"),
    "tests of trees": ("poly binary.test.svm --test trees.test.dat", "trees.test.dat: holds trees"),
    "no labels": ("brackets.txt", "brackets.txt: has trees and no labels; a line is, for example: 1 "),
    "a word for gamma": ("trees.train.dat --gamma scale", "'--gamma': .*valid"),
    "mu": ("trees.train.dat --width-decay 0.2", "--width-decay is for --kernel ptk"),
    "samples": ("trees.train.dat --solver exact --sample-size 9", "--sample-size is for --solver sampled"),
    "solver": ("trees.train.dat --solver dual", "'--solver': .*'dual' is not one of"),
    "decay": ("trees.train.dat --decay 0", "--decay must be a float in the range .* got 0.0"),
    "kernel": ("trees.train.dat --kernel poly", "'poly' is not one of"),
    "objective": ("trees.train.dat --objective f1", "No such option: --objective"),
    "features": ("trees.train.dat --n-features 3", "No such option: --n-features"),
    "counting": ("trees.train.dat --zero-based", "No such option: --zero-based"),
    "cores": ("trees.train.dat --out-of-core", "No such option: --out-of-core"),
    "no vectors": ("trees.train.dat --combine sum", "has no vectors behind |ET|, which --combine sum needs"),
    "kernel of rows": ("poly binary.test.svm --kernel sst", "No such option: --kernel"),
    "damaged": ("damaged.dat", "damaged.dat:2:"),
    "one class": ("one.dat", "only one class"),
    "missing": ("missing.dat", "missing.dat: No such file"),
}


@pytest.mark.parametrize(("words", "reason"), TRAINING_REFUSED.values(), ids=TRAINING_REFUSED)
def test_bad_options_and_files_are_refused_by_train(run, golden, tmp_path, words, reason):
    (tmp_path / "brackets.txt").write_text("(S (NP dogs) (VP bark))\n")
    (tmp_path / "damaged.dat").write_text("1 |BT| (A b) |ET|\n-1 |BT| (A b |ET|\n")
    (tmp_path / "one.dat").write_text("1 |BT| (A b) |ET|\n1 |BT| (A c) |ET|\n")
    own_files = {path.name for path in tmp_path.iterdir()}
    folders = {word: tmp_path if word in own_files else golden for word in words.split() if "." in word[1:]}
    arguments = [
        str(folders[word] / word) if word in folders and not word[0].isdigit() else word
        for word in words.split()
    ]
    kind = arguments.pop(0) if arguments[0] in ("poly", "linear") else "tree"
    message = run("train", kind, *arguments, "-o", tmp_path / "m.uk").error()
    assert "Traceback" not in message
    assert re.search(reason, message), message
    assert not (tmp_path / "m.uk").exists()


def test_several_files_of_trees(run, tree_files, tmp_path):
    message = run("train", "tree", *tree_files, "-o", tmp_path / "m.uk").error()
    assert "trees are read from one file" in message


def test_labels_of_the_test_file_that_are_unknown(run, questions, tree_files, tmp_path):
    output = run("train", "tree", questions, "-o", tmp_path / "m.uk", "--test", tree_files[1], "--json").json
    assert output["test"]["accuracy"] is None
    note = "not known: 60 trees of 60 have labels that the model does not know (-1, 1)"
    assert output["test"]["accuracy_note"].startswith(note)


def test_a_warning_is_one_line(run, tree_files, tmp_path):
    result = run("train", "tree", tree_files[0], "-o", tmp_path / "m.uk", "--max-iter", "1", "--tol", "1e-9")
    assert result.code == 0
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith("unkernel: warning: TreeSVC stopped")


def test_progress(run, tree_files, tmp_path):
    result = run(
        "train", "tree", tree_files[0], "-o", tmp_path / "m.uk", "--verbose", "--test", tree_files[1]
    )
    assert result.err.splitlines()[:3] == [f"reading {tree_files[0]}", f"reading {tree_files[1]}", "training"]


def test_the_options_equal_the_parameters_of_the_estimator(run, monkeypatch):
    kinds = {option.name: option.kind for option in derive_options(TreeSVC)}
    assert {name.value for name in kinds["kernel"]} == set(TREE_KERNELS)
    assert {name.value for name in kinds["tree_pairing"]} == set(PAIRINGS)
    assert {name.value for name in kinds["combine"]} == {"auto", *COMBINATIONS}
    assert {name.value for name in kinds["vector_kernel"]} == set(VECTOR_KERNELS)
    monkeypatch.setenv("COLUMNS", "200")
    text = run("train", "tree", "--help").out
    for option in ("--kernel", "--decay", "--sample-size", "--imbalance", "--combine", "--tree-pairing"):
        assert option in text
    assert "--normalize" in text
    assert "--no-normalize" in text


# --- predict ------------------------------------------------------------------------------------------


def test_predict(run, tree_model, tree_files, tmp_path):
    result = run("predict", tree_model, tree_files[1], "--output", tmp_path / "out", "--scores")
    assert (result.code, result.err) == (0, "")
    assert "accuracy      71.67 % (43 of 60 trees)" in result.out
    assert "F1            70.18 % of class 1 (precision 68.97 %, recall 71.43 %)" in result.out
    assert "trees/s" in result.out
    labels, scores = np.loadtxt(tmp_path / "out").T
    X, _ = read_trees(tree_files[1])
    fast = load(tree_model)
    assert np.array_equal(labels, fast.predict(X))
    assert np.array_equal(scores, fast.decision_function(X))


def test_predict_as_json(run, tree_model, tree_files):
    output = run("predict", tree_model, tree_files[1], "--json").json
    assert (output["rows"], output["correct"], output["engine"], output["exact"]) == (60, 43, "forest", True)
    X, y = read_trees(tree_files[1])
    answers = load(tree_model).predict(X)
    hits = np.sum((answers == 1) & (y == 1))
    assert output["precision"] == hits / np.sum(answers == 1)
    assert output["recall"] == hits / np.sum(y == 1)
    assert output["f1"] == pytest.approx(2 * hits / (np.sum(answers == 1) + np.sum(y == 1)))


def test_a_model_of_svmlight_tk(run, golden, tree_files, tmp_path):
    source = golden / "svmlight-tk-sst.model"
    result = run("predict", source, tree_files[1], "--output", tmp_path / "out", "--scores", "--json")
    assert result.err == ""
    expected = np.loadtxt(golden / "svmlight-tk-sst.margins")
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out")[:, 1], expected, atol=2e-6)
    assert "tree, read from SVM-light-TK" in run("inspect", source).out


def test_trees_without_labels(run, tree_model, tmp_path):
    (tmp_path / "b.mrg").write_text("(S (NP dogs)\n  (VP bark))\n(FunctionDef (name x))\n")
    result = run("predict", tree_model, tmp_path / "b.mrg", "--output", tmp_path / "out")
    assert "not known: the file has no labels" in result.out
    assert len((tmp_path / "out").read_text().splitlines()) == 2
    assert run("predict", tree_model, tmp_path / "b.mrg", "--json").json["accuracy"] is None


@pytest.mark.parametrize(
    ("other_parts", "words"),
    [
        ("|BT| (A b) |ET|", "compares 1 of 2 trees per example"),
        ("|ET| 1:0.5 2:1 |EV|", "compares no vectors"),
    ],
)
def test_parts_that_the_model_ignores_are_named(run, tree_model, tmp_path, other_parts, words):
    file = tmp_path / "more.dat"
    file.write_text(f"1 |BT| (S (NP dogs) (VP bark)) {other_parts}\n")
    result = run("predict", tree_model, file)
    assert (result.code, len(result.out.splitlines())) == (0, 1)
    assert words in result.err
    assert "more.dat" in result.err


def test_labels_that_happen_to_be_numbers(run, tmp_path):
    """Labels of a file are numbers if all of them are, although the classes of the model are texts."""
    trees = [tree for _, tree in QUESTIONS]
    train = write_questions(tmp_path / "train.dat", zip(["7", "x", "7"] * 3, trees, strict=True))
    test = write_questions(tmp_path / "test.dat", [("7", trees[0]), ("7", trees[2])])
    assert run("train", "tree", train, "-o", tmp_path / "m.uk", "--C", "1000", "--quiet").code == 0
    assert run("predict", tmp_path / "m.uk", test, "--json").json["accuracy"] == 1.0
    write_questions(test, [("7", trees[0]), ("8", trees[2])])
    note = run("predict", tmp_path / "m.uk", test, "--json").json["accuracy_note"]
    assert note.startswith("not known: 1 tree of 2 have labels that the model does not know (8)")


def test_answers_that_are_never_positive(run, tree_model, tmp_path):
    """Precision is undefined without positive predictions, and recall without positive trees."""
    X, y = read_trees_where(tree_model, lambda answers, y: answers == -1)
    (tmp_path / "t.dat").write_text(
        "".join(f"{label} |BT| {tree} |ET|\n" for tree, label in zip(X, y, strict=True))
    )
    output = run("predict", tree_model, tmp_path / "t.dat", "--json").json
    assert (output["precision"], output["recall"], output["f1"]) == (None, 0.0, 0.0)
    (tmp_path / "t.dat").write_text("".join(f"-1 |BT| {tree} |ET|\n" for tree in X))
    output = run("predict", tree_model, tmp_path / "t.dat", "--json").json
    assert (output["accuracy"], output["recall"], output["f1"]) == (1.0, None, None)
    assert "F1" not in run("predict", tree_model, tmp_path / "t.dat").out


def read_trees_where(model, select):
    golden = Path(__file__).resolve().parents[1] / "golden"
    X, y = read_trees(golden / "trees.test.dat")
    selection = select(load(model).predict(X), y)
    return X[selection].brackets(), y[selection]


INVALID_REQUESTS = {
    "rows": (
        "predict trees.uk binary.test.svm",
        "binary.test.svm: has no trees, and the model .*trees.uk compares",
    ),
    "rows, bench": ("bench trees.uk binary.test.svm", "has no trees"),
    "rows, explain": ("explain trees.uk binary.test.svm", "has no trees"),
    "trees": (
        "predict libsvm-poly2.model trees.test.dat",
        "holds trees, .*libsvm-poly2.model answers for rows",
    ),
    "trees, bench": ("bench libsvm-poly2.model trees.test.dat", "holds trees"),
    "trees, explain": ("explain libsvm-poly2.model trees.test.dat", "holds trees"),
    "trees to measure on": ("compile libsvm-poly2.model -o new.uk --sample trees.test.dat", "holds trees"),
    "no vectors": (
        "predict svmlight-tk-multi-V-S-lin.model trees.test.dat",
        "has no vectors .* compares vectors",
    ),
    "probability": ("predict trees.uk trees.test.dat --probability -o new.txt", "no probabilities.*--scores"),
    "counting": ("predict trees.uk trees.test.dat --one-based", "are for rows, not for trees"),
    "counting, bench": ("bench trees.uk trees.test.dat --one-based", "are for rows, not for trees"),
    "engine": (
        "compile trees.uk -o new.uk --engine split",
        "models of trees have one engine; leave out --engine",
    ),
    "sample": ("compile trees.uk -o new.uk --sample trees.test.dat", "leave out --sample"),
    "memory": ("compile trees.uk -o new.uk --memory 1G", "leave out --memory"),
    "features": ("inspect trees.uk --features trees.test.dat", "--features is for models of rows"),
    "features, explain": ("explain trees.uk trees.test.dat --features trees.test.dat", "--features is for"),
    "tree": ("explain trees.uk trees.test.dat --row 60", "has 60 trees, so there is no tree 60"),
    "class": ("explain trees.uk trees.test.dat --of 7", "--of must be one of -1, 1, got '7'"),
    "class of rows": ("explain libsvm-poly2.model binary.test.svm --of 7", "--of must be one of 1, -1"),
    "product": (
        "explain svmlight-tk-multi-times-lin.model svmlight-tk-multi.test.dat",
        "not sums over fragments",
    ),
    "product, inspect": ("inspect svmlight-tk-multi-times-lin.model --top 3", "leave out --top"),
    "an unknown kernel": (
        "predict svmlight-tk-multi-T-N.model trees.test.dat",
        "model:16: kernel parameter -W",
    ),
}


@pytest.mark.parametrize("case", INVALID_REQUESTS.values(), ids=INVALID_REQUESTS)
def test_bad_options_and_files_are_refused_by_other_commands(run, golden, tree_model, tmp_path, case):
    words, reason = case
    places = {"trees.uk": tree_model, "new.uk": tmp_path / "new.uk", "new.txt": tmp_path / "new.txt"}
    arguments = [
        places.get(word, golden / word if (golden / word).is_file() else word) for word in words.split()
    ]
    message = run(*arguments).error()
    assert re.search(reason, message), message
    assert not (tmp_path / "new.uk").exists()


# --- the other commands -------------------------------------------------------------------------------


def test_compile(run, golden, tree_files, tmp_path):
    path = tmp_path / "m.uk"
    output = run("compile", golden / "svmlight-tk-ptk.model", "-o", path, "--json").json
    assert (output["engine"], output["exact"], output["candidates"]) == ("forest", True, [])
    assert output["read"]["kernel"] == "ptk"
    assert output["read"]["format"] == "svmlight-tk"
    X, _ = read_trees(tree_files[1])
    expected = read_model(golden / "svmlight-tk-ptk.model").scores(X)[:, 0]
    np.testing.assert_allclose(load(path).decision_function(X), expected, rtol=1e-12, atol=1e-14)
    result = run("compile", golden / "svmlight-tk-ptk.model", "-o", path)
    assert "partial trees, decay 0.4, width decay 0.4" in result.out
    assert "forest, exact" in result.out
    assert run("compile", path, "-o", tmp_path / "again.uk", "--quiet").out == ""


def test_inspect(run, vector_model, golden):
    result = run("inspect", vector_model)
    for words in (
        "0.3 times subset trees, decay 0.4",
        "plus vectors",
        "trees: yes, vectors: yes",
        "at most 3",
        "TreeSVC",
    ):
        assert words in result.out
    output = run("inspect", vector_model, "--json").json
    assert output["vector_kernel"] == {"kernel": "polynomial", "degree": 2, "gamma": 0.5, "coef0": 1.0}
    assert output["tree_channels"] == ["0", "1", "2"]
    model = load(vector_model).model
    assert (output["support_trees"], output["subtrees"]) == (model.n_support, model.support.nodes)
    assert output["compiled_bytes"] > output["file_bytes"] > 0
    without_vectors = run("inspect", golden / "svmlight-tk-sst.model", "--json").json
    assert (
        without_vectors["width_decay"],
        without_vectors["tree_weight"],
        without_vectors["vector_kernel"],
    ) == (None, None, None)


def test_the_heaviest_fragments(run, tree_model, questions, tmp_path):
    output = run("inspect", tree_model, "--top", 5, "--json").json["top"]
    expected = load(tree_model).heaviest(5)
    assert [entry["fragment"] for entry in output] == [fragment.label for fragment in expected]
    result = run("inspect", tree_model, "--top", 5)
    assert "heaviest fragments" in result.out
    assert expected[0].label in result.out
    run("train", "tree", questions, "-o", tmp_path / "q.uk", "--quiet", "--C", 10)
    output = run("inspect", tmp_path / "q.uk", "--top", 30, "--json").json["top"]
    assert {entry["class"] for entry in output} == {"HUM", "LOC", "NUM"}
    weights = [abs(entry["weight"]) for entry in output]
    assert weights == sorted(weights, reverse=True)
    assert "not HUM" in run("inspect", tmp_path / "q.uk", "--top", 30).out


def test_explain(run, tree_model, tree_files):
    output = run("explain", tree_model, tree_files[1], "--row", 2, "--top", 4, "--json").json
    X, y = read_trees(tree_files[1])
    fast = load(tree_model)
    assert output["score"] == fast.explain(X[2], 4).score
    assert (output["label"], output["prediction"]) == (y[2], fast.predict(X)[2])
    assert len(output["contributions"]) == 4
    parts = sum(part["value"] for part in output["contributions"])
    assert output["intercept"] + parts + output["rest"] == pytest.approx(output["score"], rel=1e-12)
    reverse = run("explain", tree_model, tree_files[1], "--row", 2, "--top", 4, "--of", -1, "--json").json
    assert reverse["score"] == pytest.approx(fast.explain(X[2], 4, of=-1).score)
    result = run("explain", tree_model, tree_files[1], "--row", 2, "--top", 4)
    assert output["contributions"][0]["fragment"] in result.out
    assert "(all others)" in result.out
    without_parts = run("explain", tree_model, tree_files[1], "--row", 2, "--top", 0, "--json").json
    assert without_parts["contributions"] == []
    assert without_parts["intercept"] + without_parts["rest"] == pytest.approx(output["score"], rel=1e-12)


def test_explain_without_labels(run, tree_model, tmp_path):
    (tmp_path / "b.mrg").write_text("(FunctionDef (name x))\n")
    assert run("explain", tree_model, tmp_path / "b.mrg", "--json").json["label"] is None
    assert "label in the file" not in run("explain", tree_model, tmp_path / "b.mrg").out


def test_bench(run, tree_model, tree_files):
    output = run("bench", tree_model, tree_files[1], "--json", "--jobs", 2, *FAST).json
    assert (output["rows"], output["engine"], output["threads"]) == (60, "forest", 2)
    assert output["score_one_microseconds"]["best"] > 0
    result = run("bench", tree_model, tree_files[1], *FAST)
    assert "µs/tree" in result.out
    assert "one tree, Python" in result.out


def test_bench_measures_trees_that_brackets_cannot_represent(
    run, vector_model, vector_files, tmp_path, tree_model
):
    """Vectors, several trees, and labels that brackets cannot represent."""
    output = run("bench", vector_model, vector_files[1], "--json", *FAST).json
    assert output["score_one_microseconds"]["best"] > 0
    (tmp_path / "s.conllu").write_text(
        "1\tdogs\tdog\tNOUN\tNN\t_\t2\tnsubj\t_\t_\n2\t(\t(\tVERB\tVB\t_\t0\troot\t_\t_\n\n"
    )
    assert run("bench", tree_model, tmp_path / "s.conllu", "--json", *FAST).json["rows"] == 1
    (tmp_path / "e.dat").write_text("1 |BT| |ET|\n1 |BT| (A b) |ET|\n")
    assert run("bench", tree_model, tmp_path / "e.dat", "--json", *FAST).json["rows"] == 2
