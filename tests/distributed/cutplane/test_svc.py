"""DaskCuttingPlaneSVC gives the result of CuttingPlaneSVC, up to the gap."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import unkernel
from reference.selection import slow_after
from unkernel import CuttingPlaneSVC, RankSVM, write_svmlight
from unkernel.distributed import (
    DaskCuttingPlaneSVC,
    DaskPolyLogisticRegression,
    DaskPolySVC,
    DaskRankSVM,
)

TOL = 1e-3
C = 0.03  # few passes


def make_local_svc(**options: Any) -> CuttingPlaneSVC:
    return CuttingPlaneSVC(**{"C": C, "tol": TOL, "solver": "cutting_plane"} | options)


def make_dask_svc(**options: Any) -> DaskCuttingPlaneSVC:
    return DaskCuttingPlaneSVC(**{"C": C, "tol": TOL} | options)


def assert_equally_good(distributed: Any, local: Any) -> None:
    assert distributed.gap_ <= TOL
    assert distributed.objective_ == pytest.approx(local.objective_, rel=2 * TOL)


@pytest.mark.parametrize(
    "options",
    slow_after(
        6,
        [
            {},
            {"loss": "squared_hinge", "fit_intercept": False},
            {"class_weight": {"yes": 3.0}},
            {"objective": "roc_area"},
            {"objective": "f1"},
            {"objective": "precision_at_k", "k": 50},
            {"loss": "squared_hinge"},
            {"fit_intercept": False},
            {"intercept_scaling": 5.0, "C": 0.01},
            {"class_weight": "balanced"},
            {"objective": "break_even"},
        ],
    ),
    ids=str,
)
def test_binary(client: Any, data: Any, options: dict[str, Any]) -> None:
    distributed = make_dask_svc(client=client, **options).fit(data.X, data.binary)
    local = make_local_svc(**options).fit(data.X, data.binary)
    assert_equally_good(distributed, local)
    assert np.mean(distributed.predict(data.X) == local.predict(data.X)) > 0.98
    assert distributed.n_parts_ == 3
    assert distributed.n_recoveries_ == 0


@pytest.mark.parametrize("objective", ["error_rate", "f1"])
def test_several_classes(client: Any, data: Any, objective: str) -> None:
    distributed = make_dask_svc(objective=objective).fit(data.X, data.classes)
    local = make_local_svc(objective=objective).fit(data.X, data.classes)
    assert_equally_good(distributed, local)
    assert distributed.coef_.shape == (3, 60)
    np.testing.assert_array_equal(distributed.classes_, [0, 1, 2])


@pytest.mark.parametrize("several", [False, True])
def test_pairs_are_counted(client: Any, data: Any, several: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """For many rows, neither scores nor labels are sent to the client."""
    monkeypatch.setattr("unkernel.distributed.cutplane.risks._MAX_SCORED_ROWS", 0)
    monkeypatch.setattr("unkernel.distributed.cutplane.svc.get_targets", None)
    y = data.classes if several else data.binary
    distributed = make_dask_svc(objective="roc_area").fit(data.X, y)
    local = make_local_svc(objective="roc_area").fit(data.X, y)
    assert_equally_good(distributed, local)
    assert distributed.traffic_["counts"] > 0
    assert "scores" not in distributed.traffic_
    assert np.mean(distributed.predict(data.X) == local.predict(data.X)) > 0.98
    if not several:  # the right number of rows are positive
        assert (distributed.predict(data.X) == "yes").sum() == (y == "yes").sum()


def test_weights(client: Any, data: Any) -> None:
    distributed = make_dask_svc(class_weight="balanced").fit(data.X, data.binary, data.weights)
    local = make_local_svc(class_weight="balanced").fit(data.X, data.binary, data.weights)
    assert_equally_good(distributed, local)


def test_a_class_whose_rows_have_no_weight_does_not_count(client: Any, data: Any) -> None:
    weights = (data.classes != 2).astype(float)
    distributed = make_dask_svc().fit(data.X, data.classes, weights)
    np.testing.assert_array_equal(distributed.classes_, [0, 1])
    assert_equally_good(distributed, make_local_svc().fit(data.X, data.classes, weights))


def test_warm_start_needs_few_passes(client: Any, data: Any) -> None:
    distributed = make_dask_svc(warm_start=True).fit(data.X, data.binary)
    cold_iterations = distributed.n_iter_
    distributed.fit(data.X, data.binary)
    assert distributed.gap_ <= 1e-3
    assert distributed.objective_ == pytest.approx(
        make_local_svc().fit(data.X, data.binary).objective_, rel=2e-3
    )
    assert distributed.n_iter_ <= cold_iterations


def test_a_checkpoint_is_used(client: Any, data: Any, tmp_path: Path) -> None:
    options = {"checkpoint": tmp_path / "kept"}
    with pytest.warns(ConvergenceWarning):
        make_dask_svc(max_iter=5, **options).fit(data.X, data.binary)
    distributed = make_dask_svc(**options).fit(data.X, data.binary)
    assert_equally_good(distributed, make_local_svc().fit(data.X, data.binary))
    with pytest.warns(ConvergenceWarning):
        make_dask_svc(max_iter=5, **options).fit(data.X, data.binary)
    with pytest.raises(ValueError, match="other rows"):
        make_dask_svc(**options).fit(data.X * 2, data.binary)


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_ranking(client: Any, data: Any, groups: bool, weighted: bool) -> None:
    qid, weights = data.groups if groups else None, data.weights if weighted else None
    distributed = DaskRankSVM(C, tol=TOL, pair_weight={(4.0, 0.0): 2.0}).fit(data.X, data.ranks, qid, weights)
    local = RankSVM(C, tol=TOL, pair_weight={(4.0, 0.0): 2.0}).fit(data.X, data.ranks, qid, weights)
    assert_equally_good(distributed, local)
    share = local.score(data.X, data.ranks, qid)
    assert distributed.score(data.X, data.ranks, qid) == pytest.approx(share, abs=0.01)
    distributed.fit_thresholds(data.X, data.ranks)
    assert set(distributed.predict(data.X)) <= set(data.ranks)


# --- Every kind of input ---------------------------------------------------------------------------------


def make_blocks(data: Any, *columns: np.ndarray) -> list[tuple[Any, ...]]:
    bounds = [0, 100, 250, 400, 410, 600]
    return [(data.X[a:b], *(column[a:b] for column in columns)) for a, b in itertools.pairwise(bounds)]


def inputs(data: Any, client: Any, kind: str) -> tuple[Any, ...]:  # noqa: PLR0911 (one a kind)
    blocks = make_blocks(data, data.binary)
    match kind:
        case "list of arrays":
            return data.X.toarray().tolist(), data.binary.tolist()
        case "dense chunks":
            return da.from_array(data.X.toarray(), chunks=(170, 25)), da.from_array(data.binary, chunks=300)
        case "sparse chunks":
            X = da.from_array(data.X.toarray(), chunks=(170, 60)).map_blocks(type(data.X))
            return X, data.binary
        case "persisted chunks":
            X = da.from_array(data.X.toarray(), chunks=(90, 60))
            return tuple(client.persist([X, da.from_array(data.binary, chunks=90)]))
        case "bag":
            return (db.from_sequence(blocks, npartitions=4),)
        case "delayed":
            return ([dask.delayed(block) for block in blocks],)
        case _:
            return (client.scatter(blocks),)


@pytest.mark.parametrize(
    "kind",
    ["list of arrays", "dense chunks", "sparse chunks", "persisted chunks", "bag", "delayed", "futures"],
)
def test_inputs(client: Any, data: Any, kind: str) -> None:
    distributed = make_dask_svc().fit(*inputs(data, client, kind))
    assert_equally_good(distributed, make_local_svc().fit(data.X, data.binary))
    assert distributed.n_features_in_ == 60


@pytest.mark.parametrize(
    "learner",
    slow_after(2, [DaskCuttingPlaneSVC, DaskPolySVC, DaskPolyLogisticRegression, DaskRankSVM]),
)
def test_blocks_of_weight_zero_are_ignored(client: Any, data: Any, learner: Any) -> None:
    X, y, weights = data.X, data.ranks > 1, np.ones(600)
    blocks = [dask.delayed((X, y, None, weights)), dask.delayed((X, ~y, None, 0 * weights))]
    distributed, on_first_block = learner(tol=TOL).fit(blocks), learner(tol=TOL).fit(blocks[:1])
    assert distributed.objective_ == pytest.approx(on_first_block.objective_, rel=2 * TOL)
    with pytest.raises(ValueError, match=r"positive sample_weight|no pair to order"):
        learner().fit(blocks[1:])


def test_blocks_with_groups_and_weights(client: Any, data: Any) -> None:
    blocks = [dask.delayed(block) for block in make_blocks(data, data.ranks, data.groups, data.weights)]
    distributed = DaskRankSVM(C, tol=TOL).fit(blocks)
    assert_equally_good(distributed, RankSVM(C, tol=TOL).fit(data.X, data.ranks, data.groups, data.weights))


def write_files(folder: Path, data: Any, **options: Any) -> None:
    suffixes = ["svm", "svm.gz", "svm.xz", "svm.zst", "svm"]
    blocks = make_blocks(data, data.ranks, data.groups)
    for number, ((X, y, qid), suffix) in enumerate(zip(blocks, suffixes, strict=True)):
        write_svmlight(folder / f"part-{number}.{suffix}", X, y, qid=qid, **options)


@pytest.mark.parametrize("zero_based", [False, True])
def test_files(client: Any, data: Any, tmp_path: Path, zero_based: bool) -> None:
    write_files(tmp_path, data, zero_based=zero_based)
    distributed = DaskRankSVM(C, tol=TOL).fit(str(tmp_path / "part-*"))
    assert_equally_good(distributed, RankSVM(C, tol=TOL).fit(data.X, data.ranks, data.groups))
    assert distributed.n_features_in_ == 60
    distributed = make_dask_svc().fit(sorted(tmp_path.glob("part-*")))
    local = make_local_svc().fit(data.X, data.ranks.astype(int))
    assert_equally_good(distributed, local)
    assert distributed.classes_.dtype.kind == "i"
    # Columns have the same meaning, so the weights are about the same.
    np.testing.assert_allclose(distributed.coef_, local.coef_, atol=0.1)


def test_all_files_have_the_same_first_index(client: Any, tmp_path: Path) -> None:
    """If one file has index 0, the indices of all files count from 0."""
    (tmp_path / "a.svm").write_text("1 1:1 2:1\n-1 2:1\n" * 20)
    (tmp_path / "b.svm").write_text("1 0:1 1:1\n-1 9:1\n" * 20)
    distributed = make_dask_svc().fit(str(tmp_path / "*.svm"))
    X = np.zeros((4, 10))
    X[0, [1, 2]] = X[1, 2] = X[2, [0, 1]] = X[3, 9] = 1.0
    local = make_local_svc().fit(np.tile(X, (20, 1)), [1, -1, 1, -1] * 20)
    assert distributed.n_features_in_ == 10
    assert_equally_good(distributed, local)
    np.testing.assert_allclose(distributed.coef_, local.coef_, atol=0.05)


def test_zero_based_applies_to_files(client: Any, tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:1 2:1\n-1 2:1\n" * 20)
    distributed = make_dask_svc().fit_reporting(
        str(tmp_path / "a.svm"), None, None, on_progress=None, zero_based=True
    )
    assert distributed.n_features_in_ == 3
    assert distributed.coef_[0, 0] == 0.0
    assert distributed.coef_[0, 1] > 0.0


def test_remote_files(client: Any, data: Any) -> None:
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")  # workers are threads of this process, and see it
    for number, (X, y) in enumerate(make_blocks(data, data.classes)):
        with files.open(f"/unkernel/part-{number}.svm", "wb") as file:
            write_svmlight(file, X, y)
    distributed = make_dask_svc().fit("memory://unkernel/part-*.svm")
    assert_equally_good(distributed, make_local_svc().fit(data.X, data.classes))


# --- Errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda data: (data.X, None), "y is None"),
        (lambda data: (data.X, data.binary[:-1]), "inconsistent numbers"),
        (lambda data: (data.X, np.zeros(600)), "one class"),
        (lambda data: (da.from_array(data.X.toarray()), data.binary[:-1]), "599 entries"),
        (lambda data: (da.from_array(data.X.toarray()), da.from_array(data.binary[:-1])), "599 entries"),
        (lambda data: (da.from_array(np.full((4, 2), np.nan)), [0, 1, 0, 1]), "NaN"),
        (lambda data: ([dask.delayed((data.X, data.binary))], data.binary), "their own labels"),
        (lambda data: ([dask.delayed(data.X)],), "is a tuple"),
        (lambda data: ([data.X, data.X], [data.binary, data.binary]), "list of matrices"),
        (lambda data: (data.X, data.binary, -data.weights), "[Nn]egative"),
    ],
)
def test_mistakes_are_named(client: Any, data: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DaskCuttingPlaneSVC().fit(*arguments(data))


def test_missing_files(client: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file matches"):
        DaskCuttingPlaneSVC().fit(str(tmp_path / "*.svm"))
    with pytest.raises(ValueError, match="their own labels"):
        DaskCuttingPlaneSVC().fit(str(tmp_path / "a.svm"), [1])


def test_a_bad_line_is_named(client: Any, tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2:x\n")
    with pytest.raises(unkernel.FormatError, match=r"a\.svm"):
        DaskCuttingPlaneSVC().fit(str(tmp_path / "a.svm"))


# --- State after training --------------------------------------------------------------------------------


def test_models_are_ordinary(client: Any, data: Any, tmp_path: Path) -> None:
    distributed = make_dask_svc(client=client).fit(data.X, data.binary)
    distributed.save(tmp_path / "model.uk")
    np.testing.assert_array_equal(
        unkernel.load(tmp_path / "model.uk").predict(data.X), distributed.predict(data.X)
    )
    unpickled = pickle.loads(pickle.dumps(distributed))
    assert unpickled.client is None
    np.testing.assert_array_equal(unpickled.predict(data.X), distributed.predict(data.X))
    copied = clone(distributed)
    assert copied.client is client
    assert not hasattr(copied, "model_")


def test_bytes_are_counted(client: Any, data: Any) -> None:
    distributed = make_dask_svc(client=client).fit(data.X, data.binary)
    rounds, weights = distributed.n_iter_ + 1, 61 * 8 * distributed.n_parts_
    assert distributed.traffic_["gradient"] == rounds * (weights + 8 * distributed.n_parts_)
    assert 0 < distributed.traffic_["weights"] <= rounds * weights
    assert distributed.traffic_["line"] >= rounds
    ranker = DaskRankSVM(C, client=client).fit(data.X, data.ranks)
    assert ranker.traffic_["scores"] == 8 * 600 * ranker.n_iter_


def test_progress_is_shown(client: Any, data: Any, capsys: pytest.CaptureFixture[str]) -> None:
    gaps: list[float] = []
    distributed = make_dask_svc(tol=1e-5, verbose=1)
    distributed.fit_reporting(
        data.X, data.binary, None, on_progress=lambda progress: gaps.append(progress.relative_gap)
    )
    assert gaps
    assert "passes, objective" in capsys.readouterr().out


def test_large_weights_are_broadcast_along_a_tree(
    client: Any, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unkernel.distributed.cluster.coordinator._MAX_BYTES_BY_CLIENT", 0)
    monkeypatch.setattr("unkernel.distributed.cluster.coordinator._MAX_BYTES_WITH_TASKS", 0)
    monkeypatch.setattr(
        "unkernel.distributed.cluster.coordinator._TREE_FAN_OUT", 2
    )  # so that sums are computed on workers, too
    distributed = make_dask_svc().fit(data.X, data.binary)
    assert_equally_good(distributed, make_local_svc().fit(data.X, data.binary))


def test_a_regularisation_path_equals_local_training(client: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    ranks, Cs = np.digitize(X[:, 0], [-0.5, 0.5]), [0.1, 1.0]
    pairs = [
        (DaskCuttingPlaneSVC(client=client), CuttingPlaneSVC()),
        (DaskCuttingPlaneSVC(objective="roc_area", client=client), CuttingPlaneSVC(objective="roc_area")),
        (DaskRankSVM(client=client), RankSVM()),
    ]
    for distributed, on_one_machine in pairs:
        for actual, expected in zip(
            distributed.path(X, ranks, Cs), on_one_machine.path(X, ranks, Cs), strict=True
        ):
            assert actual.objective_ == pytest.approx(expected.objective_, rel=2e-3)
            assert actual.gap_ <= actual.tol and actual.n_parts_ >= 1
