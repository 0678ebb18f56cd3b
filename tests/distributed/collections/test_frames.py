"""Encoders fitted to Dask collections equal encoders fitted to all records in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster
from sklearn.pipeline import make_pipeline

import unkernel
from unkernel import CuttingPlaneSVC, RecordEncoder
from unkernel.distributed import DaskCuttingPlaneSVC
from unkernel.distributed.collections import frames

ROWS = 240


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    words = ["red", "blue", "green", "tea", "milk"]
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(generator.integers(0, 10**8, ROWS), "s")
    return pd.DataFrame(
        {
            "job": generator.choice(["clerk", "pilot", "cook", None], ROWS),
            "age": np.where(generator.random(ROWS) < 0.1, np.nan, generator.integers(18, 70, ROWS)),
            "size": generator.normal(size=ROWS),
            "when": when,
            "member": generator.random(ROWS) < 0.5,
            "note": [" ".join(generator.choice(words, 6)) for _ in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def labels(people: pd.DataFrame) -> Any:
    return np.where((people["job"] == "pilot") | (people["size"] > 1), "yes", "no")


def assert_same_plan(actual: RecordEncoder, expected: RecordEncoder) -> None:
    assert actual.kinds_ == expected.kinds_
    assert actual.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    (distributed, our_settings), (local, their_settings) = (
        encoder.plan_.to_container("") for encoder in (actual, expected)
    )
    assert our_settings == their_settings
    assert distributed.keys() == local.keys()
    for name, array in distributed.items():
        np.testing.assert_array_equal(array, local[name])


@pytest.mark.parametrize("partitions", [1, 3, 20])
def test_encodings_of_partitions_equal_the_local_encoding(people: pd.DataFrame, partitions: int) -> None:
    kinds = {"size": "number"}
    frame = dd.from_pandas(people, npartitions=partitions)
    expected = RecordEncoder(kinds=kinds).fit(people)
    encoder = RecordEncoder(kinds=kinds)
    lazy = encoder.fit_transform(frame)
    assert_same_plan(encoder, expected)
    assert lazy.shape[1] == encoder.plan_.n_features
    for encoded in (lazy, expected.transform(frame)):
        assert (encoded.compute(scheduler="threads") != expected.transform(people)).nnz == 0


def test_output_does_not_depend_on_the_workers(client: Any, people: pd.DataFrame) -> None:
    frame = dd.from_pandas(people, npartitions=9)
    with client.as_current():
        encoder = RecordEncoder().fit(frame)
    assert_same_plan(encoder, RecordEncoder().fit(people))


def test_too_many_distinct_numbers_are_counted_in_ranges_for_any_partitions(
    people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MAX_NUMBER_GROUPS", 20)
    of_2_partitions, of_15_partitions = (
        RecordEncoder().fit(dd.from_pandas(people, npartitions=count)) for count in (2, 15)
    )
    assert_same_plan(of_2_partitions, of_15_partitions)
    assert of_2_partitions.kinds_ == RecordEncoder().fit(people).kinds_
    exact = RecordEncoder(kinds={"age": "category"}, min_count=1)
    assert_same_plan(
        exact.fit(dd.from_pandas(people[["age"]], npartitions=4)),
        RecordEncoder(kinds={"age": "category"}, min_count=1).fit(people[["age"]]),
    )


def test_partitions_can_be_empty_or_lack_columns(people: pd.DataFrame) -> None:
    parts = [people.iloc[:100], people.iloc[100:200].drop(columns=["job", "note"]), people.iloc[:0]]
    frame = dd.from_map(lambda number: parts[number], range(3), meta=people.iloc[:0])
    expected = RecordEncoder().fit(pd.concat(parts).astype({"member": bool}))
    encoder = RecordEncoder().fit(frame)
    assert_same_plan(encoder, expected)
    encoded = encoder.transform(frame).compute(scheduler="threads")
    assert (encoded != expected.transform(pd.concat(parts))).nnz == 0
    with pytest.raises(ValueError, match="0 sample"):
        RecordEncoder().fit(dd.from_pandas(people.iloc[:0], npartitions=1))


def test_arrays_of_records() -> None:
    table = np.random.default_rng(0).integers(0, 9, (50, 4)).astype(float)
    encoder = RecordEncoder().fit(da.from_array(table, chunks=(20, 3)))
    assert_same_plan(encoder, RecordEncoder().fit(table))
    result = encoder.transform(da.from_array(table, chunks=(20, 3))).compute(scheduler="threads")
    assert (result != encoder.transform(table)).nnz == 0


def test_a_pipeline_on_a_cluster_is_saved_as_a_model_of_records(
    client: Any, people: pd.DataFrame, labels: Any, tmp_path: Path
) -> None:
    frame = dd.from_pandas(people.assign(label=labels), npartitions=7)
    pipeline = make_pipeline(RecordEncoder(), DaskCuttingPlaneSVC(tol=1e-3, client=client))
    pipeline.fit(frame.drop(columns="label"), frame["label"])
    on_one_machine = make_pipeline(RecordEncoder(), CuttingPlaneSVC(tol=1e-3)).fit(people, labels)
    assert pipeline[-1].gap_ <= 1e-3
    assert pipeline[-1].objective_ == pytest.approx(on_one_machine[-1].objective_, rel=2e-3)
    unkernel.compile(pipeline).save(tmp_path / "model.uk")
    fast = unkernel.load(tmp_path / "model.uk")
    np.testing.assert_array_equal(fast.predict(people), pipeline[-1].predict(pipeline[0].transform(people)))
    assert (fast.predict(frame).compute(scheduler=client) == labels).mean() > 0.9


def test_collections_that_cannot_be_encoded_are_refused(people: pd.DataFrame) -> None:
    with pytest.raises(TypeError, match="must be a Dask array or data frame"):
        RecordEncoder().fit(dd.from_pandas(people, npartitions=2).to_bag())
    with pytest.raises(ValueError, match="column 'job' is a number, and holds something else"):
        RecordEncoder(kinds={"job": "number"}).fit(dd.from_pandas(people, npartitions=2))
    with pytest.raises(ValueError, match="kinds names a column 'x'"):
        RecordEncoder(kinds={"x": "number"}).fit(dd.from_pandas(people, npartitions=2))


KILLED_ONCE = """
def killed_once(number, folder, parts):
    import os, pathlib, signal
    mark = pathlib.Path(folder, "killed")
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return parts[number]
"""


@pytest.mark.hostile
def test_a_worker_that_is_killed_while_counting_and_predicting_costs_only_time(
    people: pd.DataFrame, labels: Any, tmp_path: Path
) -> None:
    namespace: dict[str, Any] = {}
    exec(KILLED_ONCE, namespace)  # workers cannot import this module
    parts = np.array_split(np.arange(ROWS), 6)
    rows = [people.iloc[part] for part in parts]
    expected = RecordEncoder().fit(people)
    pipeline = make_pipeline(RecordEncoder(), CuttingPlaneSVC()).fit(people, labels)
    unkernel.compile(pipeline).save(tmp_path / "m.uk")
    fast = unkernel.load(tmp_path / "m.uk")
    options = {"processes": True, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        for work in ("count", "predict"):
            folder = tmp_path / work
            folder.mkdir()
            frame = dd.from_map(
                namespace["killed_once"], range(6), folder=str(folder), parts=rows, meta=people.iloc[:0]
            )
            if work == "count":
                with client.as_current():
                    assert_same_plan(RecordEncoder().fit(frame), expected)
            else:
                result = client.compute(fast.predict(frame)).result()
                np.testing.assert_array_equal(result, fast.predict(people))
            assert (folder / "killed").exists()
