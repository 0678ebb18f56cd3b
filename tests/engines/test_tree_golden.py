"""SVM-light-TK's kernel values and margins, for its trees, vectors and combinations of both."""

from __future__ import annotations

import io

import numpy as np
import pytest

from reference import golden
from unkernel import TreeClassifier, TreeModel, TreeSVC, read_trees
from unkernel._core import kernel_matrix
from unkernel.models import Decision, ExampleKernel, Kernel

SETS = sorted(path.stem for path in golden.FOLDER.glob("svmlight-tk-*.kernels"))
ONE_TREE = ["svmlight-tk-st", "svmlight-tk-sst", "svmlight-tk-ptk"]
KINDS = ("st", "sst", "sst_bow", "ptk")
HEADER_LINES = 21


def read_golden_model(name):
    """Return the content of the file, read like a data file: a line is alpha*y, trees and vectors."""
    head, lines = [], golden.content(name).splitlines(keepends=True)
    head = {line.split(b"-")[-1][:1].decode(): line.split(b"#")[0].strip().decode() for line in lines[5:16]}
    head |= {
        letter: lines[place].split(b"#")[0].strip().decode()
        for letter, place in zip("dgsr", range(2, 6), strict=True)
    }
    data = read_trees(io.BytesIO(b"".join(lines[HEADER_LINES:])), format="lines")
    kernel = ExampleKernel(
        tree=KINDS[int(head["F"])],
        decay=float(head["L"]),
        width_decay=float(np.float32(head["M"])),
        normalize=head["N"] in "13",
        tree_pairing={"S": "same", "A": "all"}[head["W"]],
        combination={"T": "trees", "V": "vectors", "+": "sum", "*": "product"}[head["C"]],
        tree_weight=float(head["T"]),
        vector=Kernel(
            ("linear", "polynomial", "rbf")[int(head["S"])],
            int(head["d"]),
            float(head["g"] if head["S"] == "2" else head["s"]),
            float(head["r"]),
        ),
        normalize_vectors=head["N"] in "23",
        vector_pairing={"S": "same", "A": "all"}[head["V"]],
    )
    threshold = float(lines[HEADER_LINES - 1].split()[0])
    decision = Decision("binary", np.array([-1, 1]))
    return TreeModel(kernel, data.X, data.y[:, None].astype(float), np.array([-threshold]), decision, {})


def test_data(name):
    part = "one" if "-one-" in name else "multi"
    return read_trees(golden.FOLDER / f"svmlight-tk-{part}.test.dat").X


test_data.__test__ = False


def test_all_golden_models_are_present():
    assert len(SETS) == 23
    combinations = {read_golden_model(name).kernel.combination for name in SETS}
    assert combinations == {"trees", "vectors", "sum", "product"}


@pytest.mark.parametrize("name", SETS)
def test_kernel_values(name):
    """Compares values before the program rounds them to float32. Its dot products of vectors are float32
    sums.
    """
    kernel = read_golden_model(name).kernel
    rows, columns, expected = np.loadtxt(golden.FOLDER / f"{name}.kernels", unpack=True)
    examples = kernel.examples(test_data(name)[:12], indexed=True)
    result = np.asarray(
        kernel_matrix(kernel.core(), examples, examples, symmetric=True, threads=1, on_progress=None)
    )[rows.astype(int), columns.astype(int)]
    tolerance = 1e-12 if kernel.combination == "trees" else 1e-6
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
    assert len(expected) == 78


@pytest.mark.parametrize("name", SETS)
def test_margins(name):
    """The program rounds kernel values to float32, and prints margins with eight digits."""
    model, examples = read_golden_model(name), test_data(name)
    expected = golden.margins(name).ravel()
    np.testing.assert_allclose(TreeClassifier(model).decision_function(examples), expected, rtol=0, atol=2e-6)
    np.testing.assert_allclose(model.scores(examples).ravel(), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", ONE_TREE)
def test_margins_of_one_tree_each(name):
    fast = TreeClassifier(read_golden_model(name))
    examples = read_trees(golden.FOLDER / "trees.test.dat").X
    expected = golden.margins(name).ravel()
    np.testing.assert_allclose(fast.decision_function(examples), expected, rtol=0, atol=1e-6)
    result = [fast.score_one(tree) for tree in examples.brackets()]
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("svmlight-tk-one-bow", {"kernel": "sst_bow"}),
        ("svmlight-tk-one-sst-j2", {"C": 0.5, "imbalance": 2.0}),
        ("svmlight-tk-one-sst-b0", {"fit_intercept": False}),
        ("svmlight-tk-one-ptk-ml", {"kernel": "ptk", "width_decay": 0.3, "decay": 0.6}),
        ("svmlight-tk-multi-T-A", {"combine": "trees", "tree_pairing": "all"}),
        ("svmlight-tk-multi-plus-lin", {"C": 0.5, "normalize_vectors": False}),
        ("svmlight-tk-multi-times-poly2", {"C": 0.5, "combine": "product", "vector_kernel": "polynomial",
                                           "normalize_vectors": False}),
    ],
)  # fmt: skip
def test_training_gives_the_margins_of_svm_light_tk(name, options):
    """The program stops when no condition is violated by more than 1e-3."""
    part = "one" if "-one-" in name else "multi"
    X, y = read_trees(golden.FOLDER / f"svmlight-tk-{part}.train.dat")
    clf = TreeSVC(**{"decay": 0.4, "tol": 1e-5} | options).fit(X, y)
    np.testing.assert_allclose(
        clf.decision_function(test_data(name)), golden.margins(name).ravel(), atol=5e-3
    )
