"""Compiled classifiers predict Dask collections lazily, with the same bits as for rows in memory."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

import unkernel
from reference.processes import run_program
from unkernel import CuttingPlaneSVC, PolyLogisticRegression, PolySVC, RecordEncoder
from unkernel.distributed.collections import scoring

METHODS = ("predict", "decision_function", "predict_proba")


@pytest.fixture(scope="module")
def rows() -> Any:
    return (np.random.default_rng(0).random((101, 12)) < 0.4).astype(np.float64)


@pytest.fixture(scope="module")
def classifiers(rows: Any) -> dict[str, Any]:
    """Return a classifier for each kind of predictions."""
    binary = np.where(rows[:, 0] + rows[:, 1] > 0.5, "yes", "no")
    ternary = (rows[:, 0] + rows[:, 1]).astype(int)
    return {
        "two": unkernel.compile(PolySVC(gamma=1).fit(rows, binary)),
        "three": unkernel.compile(PolyLogisticRegression().fit(rows, ternary)),
        "linear": unkernel.compile(CuttingPlaneSVC().fit(rows, binary)),
    }


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    generator = np.random.default_rng(1)
    ages = np.where(generator.random(90) < 0.1, np.nan, generator.integers(18, 70, 90))
    jobs = generator.choice(["clerk", "pilot", "cook"], 90)
    return pd.DataFrame({"job": jobs, "age": ages, "id": range(90)})


@pytest.fixture(scope="module")
def of_records(people: pd.DataFrame) -> Any:
    rich = np.where((people["job"] == "pilot") | (people["age"] > 50), "rich", "poor")
    learner = make_pipeline(RecordEncoder(kinds={"id": "drop"}), PolyLogisticRegression())
    return unkernel.compile(learner.fit(people, rich))


def assert_same_array(lazy: Any, expected: Any, **options: Any) -> None:
    """Check that a lazy array, before and after it is computed, is of the expected type and shape."""
    assert isinstance(lazy, da.Array)
    assert (lazy.dtype, lazy.ndim) == (expected.dtype, expected.ndim)
    assert lazy.shape[1:] == expected.shape[1:]
    computed = lazy.compute(**{"scheduler": "threads"} | options)
    assert computed.dtype == expected.dtype
    np.testing.assert_array_equal(computed, expected)


@pytest.mark.parametrize("kind", ["two", "three", "linear"])
@pytest.mark.parametrize("chunks", [(30, 12), (101, 12), (7, 5)])
def test_arrays(classifiers: Any, rows: Any, kind: str, chunks: tuple[int, int]) -> None:
    fast, X = classifiers[kind], da.from_array(rows, chunks=chunks)
    for method in METHODS:
        if hasattr(fast, method):
            result = getattr(fast, method)(X)
            assert result.chunks[0] == X.chunks[0]
            assert_same_array(result, getattr(fast, method)(rows))


def test_output_does_not_depend_on_the_workers(client: Any, classifiers: Any, rows: Any) -> None:
    fast, X = classifiers["three"], da.from_array(rows, chunks=(30, 12))
    assert_same_array(fast.predict_proba(X, n_jobs=2), fast.predict_proba(rows), scheduler=client)
    future = client.compute(fast.predict(X))
    np.testing.assert_array_equal(future.result(), fast.predict(rows))


def test_chunks_of_unknown_and_of_zero_size_are_predicted(classifiers: Any, rows: Any) -> None:
    fast, X = classifiers["two"], da.from_array(rows, chunks=(20, 12))
    assert_same_array(fast.predict(X[X[:, 0] > 0.5]), fast.predict(rows[rows[:, 0] > 0.5]))
    assert_same_array(fast.decision_function(X[X[:, 0] > 5]), fast.decision_function(rows)[:0])


def test_sparse_chunks(classifiers: Any, rows: Any) -> None:
    fast = classifiers["two"]
    assert_same_array(
        fast.predict(da.from_array(rows, chunks=(40, 12)).map_blocks(sparse.csr_matrix)), fast.predict(rows)
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("partitions", [1, 4])
def test_frames_of_records(of_records: Any, people: pd.DataFrame, method: str, partitions: int) -> None:
    frame = dd.from_pandas(people, npartitions=partitions)
    result = getattr(of_records, method)(frame)
    assert result.numblocks[0] == partitions
    assert_same_array(result, getattr(of_records, method)(people))


def test_frames_of_rows(classifiers: Any, rows: Any) -> None:
    frame = dd.from_pandas(pd.DataFrame(rows, columns=[f"x{k}" for k in range(12)]), npartitions=3)
    assert_same_array(classifiers["two"].predict(frame), classifiers["two"].predict(rows))


def test_only_columns_of_the_model_are_read(of_records: Any, people: pd.DataFrame, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    people.assign(other="long " * 10).to_parquet(tmp_path / "people.parquet")
    predictions = of_records.predict(dd.read_parquet(tmp_path / "people.parquet"))
    assert_same_array(predictions, of_records.predict(people))
    assert "other" not in str(predictions.__dask_graph__().to_dict())


def test_files_are_mapped_by_each_process(classifiers: Any, rows: Any, tmp_path: Path) -> None:
    classifiers["two"].save(tmp_path / "model.uk")
    fast = unkernel.load(tmp_path / "model.uk")
    assert_same_array(fast.predict(da.from_array(rows, chunks=(30, 12))), fast.predict(rows))
    opened = scoring.open_model(*fast.mapped_file)
    sent = pickle.dumps(opened)
    assert len(sent) < 300
    unpickled = pickle.loads(sent)
    assert unpickled.classifier.mapped_file == fast.mapped_file
    np.testing.assert_array_equal(unpickled.classifier.predict(rows), fast.predict(rows))


@pytest.mark.parametrize("mapped", [True, False])
def test_all_chunks_share_one_task_for_the_model(
    classifiers: Any, rows: Any, tmp_path: Path, mapped: bool
) -> None:
    classifiers["two"].save(tmp_path / "model.uk")
    fast = unkernel.load(tmp_path / "model.uk", mmap=mapped)
    X = da.from_array(rows, chunks=(2, 12))
    predictions = fast.predict(X)
    assert predictions.name == fast.predict(X).name  # Dask recognises that they are equal
    all_chunks = pickle.dumps(predictions.__dask_graph__().to_dict())
    one_chunk = pickle.dumps(fast.predict(X[:2]).__dask_graph__().to_dict())
    assert len(all_chunks) - len(one_chunk) < 50 * 1000  # of 50 chunks, with their rows
    assert (b"CompiledClassifier" in all_chunks) == (not mapped)
    assert len(pickle.dumps(fast)) > 1000


def test_models_that_are_not_mapped_are_sent(classifiers: Any, rows: Any, tmp_path: Path) -> None:
    classifiers["two"].save(tmp_path / "model.uk")
    assert unkernel.load(tmp_path / "model.uk", mmap=False).mapped_file is None
    assert unkernel.load(tmp_path / "model.uk").with_cache(10).mapped_file is None
    fast = unkernel.load(tmp_path / "model.uk", mmap=False)
    (tmp_path / "model.uk").unlink()
    assert_same_array(fast.predict(da.from_array(rows, chunks=(30, 12))), fast.predict(rows))


def test_a_file_that_is_gone_or_another_is_named(classifiers: Any, rows: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.uk"
    classifiers["two"].save(path)
    predictions = unkernel.load(path).predict(da.from_array(rows, chunks=(30, 12)))
    classifiers["three"].save(path)
    with pytest.raises(ValueError, match=r"no longer the model that was loaded"):
        predictions.compute(scheduler="synchronous")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"file system that all workers.*model\.uk"):
        predictions.compute(scheduler="synchronous")


def test_mistakes_are_reported_before_any_task_runs(
    classifiers: Any, of_records: Any, people: pd.DataFrame
) -> None:
    with pytest.raises(ValueError, match="features"):
        classifiers["two"].predict(da.zeros((10, 5)))
    with pytest.raises(ValueError, match="2D"):
        classifiers["two"].predict(da.zeros(10))
    with pytest.raises(TypeError, match="must be a Dask array or data frame"):
        classifiers["two"].predict(dask.delayed([1]))
    with pytest.raises(AttributeError, match="no parameters of probabilities"):
        _ = classifiers["two"].predict_proba
    with pytest.raises(TypeError, match="names of columns"):
        of_records.predict(dd.from_pandas(people.set_axis([0, 1, 2], axis=1), npartitions=2))


def test_without_collections_dask_is_not_imported(classifiers: Any, tmp_path: Path) -> None:
    classifiers["two"].save(tmp_path / "model.uk")
    program = (
        "import sys, numpy, unkernel\n"
        f"unkernel.load({str(tmp_path / 'model.uk')!r}).predict(numpy.zeros((2, 12)))\n"
        "print('dask' in sys.modules)"
    )
    assert run_program(program).strip() == "False"
