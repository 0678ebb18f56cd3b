"""Tree kernels on TREC's questions and on treebanks, compared with LIBSVM and SVM-light-TK."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import recall_score
from sklearn.svm import SVC

from reference import golden, real_data
from unkernel import Forest, TreeClassifier, TreeKernel, TreeSVC, read_trees

pytestmark = pytest.mark.slow

# Dual objectives of SVM-light-TK, -t 5 -C T -F 1 -L 0.4 -N 1 -c 1, one class against the others
SVM_LIGHT_TK = {
    "ABBR": 107.0902,
    "DESC": 947.9495,
    "ENTY": 1591.9707,
    "HUM": 945.9824,
    "LOC": 706.9531,
    "NUM": 549.3647,
}


@cache
def questions(part):
    """Return trees and coarse classes."""
    with lzma.open(real_data.path("trec-const", part), "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return Forest([row[2] for row in rows]), np.array([row[0] for row in rows])


def test_descriptions_are_learned_as_libsvm_learns_them():
    (X, y), (test_trees, test_classes) = questions("train"), questions("test")
    clf = TreeSVC(n_jobs=2).fit(X, y == "DESC")
    assert clf.gap_ <= 1e-3
    K = TreeKernel(n_jobs=2)(X)
    peer = SVC(kernel="precomputed", cache_size=1000).fit(K, y == "DESC")
    coefficients = peer.dual_coef_[0]
    inner = K[np.ix_(peer.support_, peer.support_)]
    dual = np.abs(coefficients).sum() - 0.5 * coefficients @ inner @ coefficients
    assert dual * (1 - 1e-6) <= clf.objective_ <= dual * (1 + 2e-3)
    assert dual == pytest.approx(SVM_LIGHT_TK["DESC"], rel=1e-5)
    peer_labels = peer.predict(TreeKernel(n_jobs=2)(test_trees, X))
    labels = clf.predict(test_trees)
    assert np.mean(labels == peer_labels) > 0.99
    assert clf.score(test_trees, test_classes == "DESC") == pytest.approx(0.978, abs=0.003)


def test_six_classes():
    (X, y), (test_trees, test_classes) = questions("train"), questions("test")
    clf = TreeSVC(n_jobs=2).fit(X, y)
    assert clf.classes_.tolist() == sorted(SVM_LIGHT_TK)
    assert clf.objective_ == pytest.approx(sum(SVM_LIGHT_TK.values()), rel=1e-3)
    assert clf.score(test_trees, test_classes) == pytest.approx(0.862, abs=0.003)
    scores = clf.decision_function(test_trees)
    fast = TreeClassifier(clf.to_model())
    np.testing.assert_allclose(
        [fast.score_one(tree) for tree in test_trees.brackets()], scores, rtol=0, atol=1e-11
    )
    np.testing.assert_allclose(clf.to_model().scores(test_trees[:50]), scores[:50], rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", ["st", "sst_bow", "ptk"])
def test_other_kernels(kind):
    (X, y), (test_trees, test_classes) = questions("train"), questions("test")
    clf = TreeSVC(kind, n_jobs=2).fit(X, y == "HUM")
    assert clf.gap_ <= 1e-3
    assert clf.score(test_trees, test_classes == "HUM") > {"st": 0.9, "sst_bow": 0.94, "ptk": 0.94}[kind]


@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_rare_questions_are_found_where_they_weigh_more(solver):
    """ABBR is 1:60."""
    (X, y), (test_trees, test_classes) = questions("train"), questions("test")
    options = {"solver": solver, "C": 0.01, "sample_size": 1000, "tol": 1e-2, "random_state": 0, "n_jobs": 2}
    unweighted, weighted = (
        recall_score(
            test_classes == "ABBR", TreeSVC(imbalance=j, **options).fit(X, y == "ABBR").predict(test_trees)
        )
        for j in (1.0, 20.0)
    )
    assert weighted > unweighted + 0.2


def test_sampled_training_nearly_reaches_exact_accuracy():
    (X, y), (test_trees, test_classes) = questions("train"), questions("test")
    exact = TreeSVC(C=0.1, n_jobs=2).fit(X, y == "DESC")
    sampled = TreeSVC(C=0.1, solver="sampled", sample_size=2000, tol=5e-3, random_state=0, n_jobs=2)
    sampled.fit(X, y == "DESC")
    assert (
        sampled.score(test_trees, test_classes == "DESC")
        > exact.score(test_trees, test_classes == "DESC") - 0.02
    )


def test_questions_of_kelp():
    train, test = (read_trees(real_data.path("kelp-trec", part)) for part in ("train", "test"))
    assert (len(train.X), len(test.X)) == (5452, 500)
    assert len(train.X.trees) == 5
    assert set(train.y) == set(SVM_LIGHT_TK)
    name = next(iter(train.X.trees))
    single_channel = Forest({name: train.X.brackets(name)})
    clf = TreeSVC(n_jobs=2).fit(single_channel, train.y == "LOC")
    assert clf.score(Forest({name: test.X.brackets(name)}), test.y == "LOC") > 0.93


def test_a_treebank_survives_a_round_trip():
    with lzma.open(real_data.path("ewt-propbank", "dev"), "rt", encoding="utf-8") as file:
        texts = [line.rstrip("\n").split("\t")[2] for line in file if not line.startswith("P\t")]
    forest = Forest(texts)
    assert len(forest) > 1900
    assert forest.nodes < sum(text.count("(") for text in texts)
    reread = Forest(forest.brackets())
    assert reread.brackets() == forest.brackets()
    assert [" ".join(text.split()) for text in texts] == [
        " ".join(bracket.split()) for bracket in forest.brackets()
    ]


def test_a_treebank_of_dependencies():
    data = read_trees(real_data.path("en_ewt", "dev"))
    assert len(data.X) == 2001
    assert data.X.compact().brackets() == data.X.brackets()


def test_the_shared_golden_files_are_ours():
    folder = Path(__file__).resolve().parents[3] / "shared" / "golden"
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}")
    for kind in ("st", "sst", "ptk"):
        for suffix in ("model", "margins"):
            name = f"svmlight-tk-{kind}.{suffix}"
            assert (folder / name).read_bytes() == (golden.FOLDER / name).read_bytes()
