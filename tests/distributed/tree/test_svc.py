"""Training on trees on the workers of a cluster equals training on one machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.bag
import numpy as np
import pytest
from sklearn.base import clone

from reference.lost_workers import kill_a_worker
from reference.processes import run_program
from unkernel import Forest, TreeSVC, compile
from unkernel._core import kernel_matrix
from unkernel.distributed import DaskTreeSVC
from unkernel.distributed.tree.shards import ClusterCuts, ClusterExamples, ExamplePlaces, FetchedTrees
from unkernel.distributed.tree.tree_tasks import (
    ChosenPlaces,
    CutExamples,
    KnownCuts,
    SampleShare,
    TreePacking,
    TreePart,
    TreeSurvey,
    add_cut,
    make_cut_piece,
    make_tree_block,
    restore_cuts,
    score_sample,
)
from unkernel.models import ExampleKernel

SAMPLED: dict[str, Any] = {"solver": "sampled", "sample_size": 40, "random_state": 3, "tol": 1e-3, "C": 0.1}
EXACT: dict[str, Any] = {"solver": "exact", "tol": 1e-5}
# Scores are the same sums in another order.
CLOSE: dict[str, float] = {"rtol": 1e-9, "atol": 1e-9}


@dataclass(frozen=True)
class Trees:
    """Trees as text, with two kinds of labels."""

    X: list[str]
    binary: np.ndarray
    classes: np.ndarray
    weights: np.ndarray


@pytest.fixture(scope="module")
def trees() -> Trees:
    """Return trees in which a child of the root names the class, mostly correctly."""
    generator = np.random.default_rng(0)
    classes = generator.integers(0, 3, 180)
    visible_labels = np.where(generator.random(180) < 0.8, classes, generator.integers(0, 3, 180))
    words = generator.integers(0, 5, (180, 4))
    X = [
        f"(S (A (N w{a}) (N w{b}){' (V w' + str(c) + ')' if c % 2 else ''}) (L{label} x) (B (N w{d})))"
        for label, (a, b, c, d) in zip(visible_labels, words, strict=True)
    ]
    names = np.array(["red", "green", "blue"])[classes]
    weights = generator.integers(0, 3, 180).astype(float)
    weights[:70] = 0.0  # all rows of one worker
    return Trees(X, np.where(classes > 0, 1, -1), names, weights)


def assert_same(distributed: Any, local: Any, X: Any) -> None:
    assert distributed.n_iter_ == local.n_iter_ > 2
    assert distributed.n_support_ == local.n_support_ > 20
    assert distributed.objective_ == pytest.approx(local.objective_, rel=1e-9)
    np.testing.assert_array_equal(distributed.classes_, local.classes_)
    np.testing.assert_allclose(distributed.decision_function(X), local.decision_function(X), **CLOSE)


# --- The sampled learner -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["sst", "st", "sst_bow", "ptk"])
def test_sampled_cuts_equal_local_training(client: Any, trees: Trees, kernel: str) -> None:
    distributed = DaskTreeSVC(kernel, client=client, **SAMPLED).fit(trees.X, trees.binary)
    local = TreeSVC(kernel, **SAMPLED).fit(trees.X, trees.binary)
    assert_same(distributed, local, trees.X)
    assert distributed.n_parts_ == 3
    assert distributed.n_recoveries_ == 0
    assert distributed.traffic_["scores"] == 8 * 40 * (distributed.n_iter_ - 1)
    assert distributed.traffic_["cuts"] > 0


def test_classes_and_weights(client: Any, trees: Trees) -> None:
    options = {**SAMPLED, "imbalance": 2.0, "class_weight": {"red": 0.5}, "fit_intercept": False}
    distributed = DaskTreeSVC(client=client, **options).fit(trees.X, trees.classes, trees.weights)
    local = TreeSVC(**options).fit(trees.X, trees.classes, trees.weights)
    assert_same(distributed, local, trees.X)
    np.testing.assert_allclose(
        compile(distributed).decision_function(trees.X), local.decision_function(trees.X), **CLOSE
    )


@pytest.mark.parametrize("pairing", ["same", "all"])
def test_several_trees_per_example(client: Any, trees: Trees, pairing: str) -> None:
    forest = Forest({"a": trees.X, "b": [*trees.X[1:], None]})
    options = {**SAMPLED, "tree_pairing": pairing}
    distributed = DaskTreeSVC(client=client, **options).fit(forest, trees.binary)
    assert_same(distributed, TreeSVC(**options).fit(forest, trees.binary), forest)


def test_a_path(client: Any, trees: Trees) -> None:
    fitted = DaskTreeSVC(client=client, **SAMPLED).path(trees.X, trees.binary, [0.05, 0.1])
    for learner, C in zip(fitted, (0.05, 0.1), strict=True):
        assert_same(learner, TreeSVC(**{**SAMPLED, "C": C}).fit(trees.X, trees.binary), trees.X)


def test_estimators_are_copied_and_saved_without_the_client(
    client: Any, trees: Trees, tmp_path: Path
) -> None:
    learner = DaskTreeSVC(client=client, **SAMPLED)
    assert clone(learner).client is client
    learner.fit(trees.X, trees.binary)
    learner.save(tmp_path / "model.uk")
    for loaded in (DaskTreeSVC.load(tmp_path / "model.uk"), TreeSVC.load(tmp_path / "model.uk")):
        np.testing.assert_array_equal(loaded.predict(trees.X), learner.predict(trees.X))


# --- The exact learner -------------------------------------------------------------------------------------


@pytest.fixture
def small_working_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the working set to 64 examples, so that examples join it and leave it during training."""
    monkeypatch.setattr("unkernel.tree.svc._MAX_KERNEL_MATRIX_BYTES", 64 * 64 * 4)


def assert_same_optimum(distributed: Any, local: Any, X: Any) -> None:
    """Check that both models have the same optimum; rounding may choose other working sets.

    The distance of the weights from the optimum is at most sqrt(2 (P - D)), and every tree has norm 1.
    """
    assert distributed.solver_ == local.solver_ == "exact"
    assert min(distributed.n_iter_, local.n_iter_) > 2
    assert min(distributed.n_support_, local.n_support_) > 20
    assert max(distributed.gap_, local.gap_) <= distributed.tol == local.tol
    assert distributed.objective_ == pytest.approx(local.objective_, rel=distributed.tol)
    np.testing.assert_array_equal(distributed.classes_, local.classes_)
    shift = distributed.model_.intercept - local.model_.intercept
    max_difference = 2 * np.sqrt(2 * distributed.tol * distributed.objective_) + np.abs(shift).max()
    assert max_difference < 0.2
    np.testing.assert_allclose(
        distributed.decision_function(X), local.decision_function(X), atol=max_difference
    )


@pytest.mark.usefixtures("small_working_set")
@pytest.mark.parametrize("kernel", ["sst", "st", "sst_bow", "ptk"])
def test_exact_training_equals_local_training(client: Any, trees: Trees, kernel: str) -> None:
    distributed = DaskTreeSVC(kernel, client=client, **EXACT).fit(trees.X, trees.binary)
    assert_same_optimum(distributed, TreeSVC(kernel, **EXACT).fit(trees.X, trees.binary), trees.X)
    assert distributed.n_parts_ == 3
    assert distributed.traffic_["scores"] >= 8 * 180 + 8 * (180 - 64) * distributed.n_iter_


@pytest.mark.usefixtures("small_working_set")
def test_exact_training_of_classes_weights_and_several_trees(client: Any, trees: Trees) -> None:
    forest = Forest({"a": trees.X, "b": [*trees.X[1:], None]})
    options = {"imbalance": 2.0, "class_weight": {"red": 0.5}, "fit_intercept": False, "tol": 1e-5}
    arguments = forest, trees.classes, trees.weights
    assert_same_optimum(
        DaskTreeSVC(client=client, **options).fit(*arguments), TreeSVC(**options).fit(*arguments), forest
    )


@pytest.mark.usefixtures("small_working_set")
def test_an_exact_path_fetches_trees_once(client: Any, trees: Trees) -> None:
    first, second = DaskTreeSVC(client=client, **EXACT).path(trees.X, trees.binary, [0.5, 0.5])
    assert_same_optimum(second, TreeSVC(**{**EXACT, "C": 0.5}).fit(trees.X, trees.binary), trees.X)
    assert first.traffic_["trees"] == second.traffic_["trees"] > 0
    assert second.traffic_["scores"] == 2 * first.traffic_["scores"]


def test_drawn_examples_are_sent_in_few_bytes() -> None:
    for size, places in ((9, [0, 8]), (9, [0, 1, 2, 4, 5, 6, 7, 8]), (3, [0, 1, 2]), (3, []), (0, [])):
        message = ChosenPlaces.from_places(np.array(places, np.int32), size)
        assert len(message.listed) <= size / 2
        result = message.places(size)
        assert result.tolist() == places
        assert result.dtype == np.int32


# --- Sources of trees
# ----------------------------------------------------------------------------------------


def sources(client: Any, trees: Trees, folder: Path) -> dict[str, tuple[Any, ...]]:
    """Return the same examples in the same order, in all possible forms."""
    bounds = [(0, 70), (70, 70), (70, 100), (100, 180)]
    blocks = [(trees.X[begin:end], trees.binary[begin:end]) for begin, end in bounds]
    for number, (X, y) in enumerate(blocks):
        lines = [f"{label} |BT| {tree} |ET|\n" for tree, label in zip(X, y, strict=True)]
        if lines:
            (folder / f"part-{number}.dat").write_text("".join(lines))
    pairs = list(zip(trees.X, trees.binary.tolist(), strict=True))
    workers = sorted(client.nthreads())
    backwards = [
        client.submit(tuple, block, workers=[worker], pure=False)
        for block, worker in zip(blocks, [*workers[::-1], workers[0]], strict=True)
    ]
    return {
        "forest": (Forest(trees.X), trees.binary),
        "files": (str(folder / "part-*.dat"),),
        "paths": (sorted(folder.glob("part-*.dat")),),
        "delayed": ([dask.delayed(block) for block in blocks],),
        "futures": (backwards,),
        "bag": (dask.bag.from_sequence(pairs, npartitions=5),),
        "fewer trees than workers are parts": ([dask.delayed((trees.X, trees.binary))],),
    }


def test_all_sources_give_the_same_model(client: Any, trees: Trees, tmp_path: Path) -> None:
    local = TreeSVC(**SAMPLED).fit(trees.X, trees.binary)
    for source in sources(client, trees, tmp_path).values():
        assert_same(DaskTreeSVC(client=client, **SAMPLED).fit(*source), local, trees.X)


def test_refusals(client: Any, trees: Trees, tmp_path: Path) -> None:
    def refused(message: str, *arguments: Any) -> None:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            DaskTreeSVC(client=client, **SAMPLED).fit(*arguments)

    (tmp_path / "bare").write_text("(S (A a))")
    tree, other_tree = "(S (A a))", "(S (B b))"
    refused("target y is None", trees.X)
    refused("inconsistent numbers of samples", trees.X, trees.binary[1:])
    refused("only one class", [tree, other_tree], [1, 1])
    refused("at least one non-zero", [tree, other_tree], [0, 1], [0.0, 0.0])
    refused("there are no trees to train on", [dask.delayed(([], []))])
    refused("have vectors", Forest([tree, other_tree], vectors=[[1.0], [2.0]]), [0, 1])
    refused("no example has a tree", Forest([None] * 20), [0, 1] * 10)
    refused(r"partition \d: a bag of trees has pairs", dask.bag.from_sequence([tree, other_tree]))
    refused("block 0: a block is a tuple", [dask.delayed(3)])
    refused("numbers, and those of others are text", [dask.delayed(([tree], [k])) for k in (1, "a")])
    refused("some have none", [dask.delayed(([tree], [0])), dask.delayed(([other_tree], [1], [1.0]))])
    refused("trees without labels", tmp_path / "bare")
    refused("no file matches", str(tmp_path / "*.none"))
    refused("X only", str(tmp_path / "bare"), [1])
    refused(
        r"trees\[7\]:1:1: this bracket is never closed", [*[tree] * 7, "(S (A a)", other_tree], [0] * 8 + [1]
    )
    refused(
        r"block 1, trees\[1\]:1:1: this bracket",
        [dask.delayed(([tree, x], [0, 1])) for x in (other_tree, "(S")],
    )


# --- Lost workers ------------------------------------------------------------------------------------------


@pytest.mark.hostile
@pytest.mark.parametrize("when", ["score", "add"])
def test_a_killed_worker(
    process_client: Any, trees: Trees, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killing = kill_a_worker(process_client, 3)
    monkeypatch.setattr(ClusterCuts, when, killing(getattr(ClusterCuts, when)))
    distributed = DaskTreeSVC(client=process_client, **SAMPLED).fit(trees.X, trees.binary)
    assert distributed.n_recoveries_ >= 1
    assert distributed.traffic_["restored"] > 0
    assert_same(distributed, TreeSVC(**SAMPLED).fit(trees.X, trees.binary), trees.X)


@pytest.mark.hostile
@pytest.mark.usefixtures("small_working_set")
@pytest.mark.parametrize(
    ("kind", "when"),
    [(ClusterExamples, "self_kernels"), (ClusterExamples, "scores"), (FetchedTrees, "_fetch")],
)
def test_a_killed_worker_of_the_exact_learner(
    process_client: Any, trees: Trees, kind: type, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killing = kill_a_worker(process_client, 1 if when == "self_kernels" else 2)
    monkeypatch.setattr(kind, when, killing(getattr(kind, when)))
    distributed = DaskTreeSVC(client=process_client, **EXACT).fit(trees.X, trees.binary)
    assert distributed.n_recoveries_ >= 1
    assert_same_optimum(distributed, TreeSVC(**EXACT).fit(trees.X, trees.binary), trees.X)


def test_repeated_tasks_and_rebuilt_parts_do_not_change_results(trees: Trees) -> None:
    def new_part() -> TreePart:
        return TreePart(
            [make_tree_block(0, trees.X, trees.binary)], TreePacking(0, ExampleKernel(), ["0"], 1)
        )

    generator = np.random.default_rng(1)
    cuts = [CutExamples(np.arange(k, 60, 7, dtype=np.int32), generator.normal(size=9)) for k in range(3)]
    cuts = [CutExamples(cut.places, cut.coefficients[: len(cut.places)]) for cut in cuts]
    alphas = np.array([0.5, 0.0, 2.0])
    sample = SampleShare(np.arange(180, dtype=np.int32), trees.binary.astype(np.int8), 0.0, 1 / 180)

    def scores_of(part: TreePart, known_cuts: KnownCuts) -> Any:
        scores = score_sample(part, known_cuts, alphas, sample)
        return None if scores is None else scores[0]

    steady, shaken, lost = new_part(), new_part(), new_part()
    for part, repeats in ((steady, 1), (shaken, 2)):
        for count, cut in enumerate(cuts):
            for _ in range(repeats):
                known_cuts = KnownCuts("p", count)
                products = add_cut(
                    part, known_cuts, [make_cut_piece(part, cut) if repeats > 1 else None], cut
                )
                assert products is not None
                assert len(products) == count + 1
    known_cuts = KnownCuts("p", 3)
    expected = scores_of(steady, known_cuts)
    np.testing.assert_array_equal(scores_of(shaken, known_cuts), expected)
    matrix = ExampleKernel().examples(Forest(trees.X), indexed=True)
    gram = np.asarray(
        kernel_matrix(ExampleKernel().core(), matrix, matrix, symmetric=True, threads=1, on_progress=None)
    )
    expected_scores = sum(
        alpha * gram[:, cut.places] @ cut.coefficients for alpha, cut in zip(alphas, cuts, strict=True)
    )
    np.testing.assert_allclose(expected, expected_scores, **CLOSE)

    assert scores_of(lost, known_cuts) is None
    late = KnownCuts("p", 2)
    assert add_cut(lost, late, [None], cuts[2]) is None
    restore_cuts(lost, known_cuts, [[make_cut_piece(steady, cut)] for cut in cuts])
    np.testing.assert_array_equal(scores_of(lost, known_cuts), expected)
    assert scores_of(lost, late) is None
    assert scores_of(lost, KnownCuts("q", 3)) is None


def test_the_examples_of_a_sample_inside_the_margin() -> None:
    sample = SampleShare(
        np.array([4, 4, 4, 1, 2, 7, 7], np.int32), np.array([1, 1, 1, 1, -1, -1, -1], np.int8), 0.5, 0.1
    )
    inside = sample.select_inside_margin(np.array([0.4, 0.4, 0.4, 0.6, -2.0, 0.0, 0.0]))
    assert inside.places.tolist() == [4, 7]
    assert inside.coefficients.tolist() == [0.1 + 0.1 + 0.1, -0.1 - 0.1]
    assert len(sample.select_inside_margin(np.array([1.0, 1.0, 1.0, 1.0, -2.0, -2.0, -2.0])).places) == 0


def test_examples_are_numbered_as_they_were_given() -> None:
    def make_survey(number: int, size: int) -> TreeSurvey:
        return TreeSurvey(number, np.array([0]), np.zeros(size, np.uint8), None, ["0"], [], True)

    places = ExamplePlaces(
        [[make_survey(1, 3), make_survey(4, 2)], [make_survey(0, 2), make_survey(2, 0), make_survey(3, 1)]]
    )
    assert places.examples == 8
    (first, in_first), (second, in_second) = places.group_by_part(np.arange(8))
    assert first.tolist() == [2, 3, 4, 6, 7]
    assert in_first.tolist() == [0, 1, 2, 3, 4]
    assert second.tolist() == [0, 1, 5]
    assert in_second.tolist() == [0, 1, 2]


INTERRUPTED = """
    import signal, os
    import numpy as np
    from dask.distributed import Client
    from unkernel.distributed import DaskTreeSVC

    words = np.random.default_rng(0).integers(0, 9, (200, 3))
    X = [f"(S (A w{a}) (B w{b}) (C w{c}))" for a, b, c in words]
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        learner = DaskTreeSVC(solver=SOLVER, sample_size=20, tol=1e-12, max_iter=10**6)
        presses = iter([lambda: os.kill(os.getpid(), signal.SIGINT)])
        press = lambda _progress: next(presses, int)()
        try:
            learner.fit_reporting(X, words[:, 0] % 2, None, on_progress=press)
        except KeyboardInterrupt:
            print("stopped")
"""


@pytest.mark.hostile
@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_ctrl_c_stops(solver: str) -> None:
    assert "stopped" in run_program(INTERRUPTED.replace("SOLVER", repr(solver)))
