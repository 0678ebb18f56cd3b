"""The number of threads for n_jobs."""

from __future__ import annotations

import os

import numpy as np
import pytest

from unkernel.data import threads
from unkernel.data.threads import available_cores, thread_count


def test_n_jobs_none_means_one_thread_and_numbers_are_kept():
    assert thread_count(None) == 1
    assert [thread_count(jobs) for jobs in (1, 2, np.int32(3), np.uint8(4))] == [1, 2, 3, 4]


def test_negative_numbers_count_from_all_cores(monkeypatch):
    monkeypatch.setattr(threads, "available_cores", lambda: 8)
    assert [thread_count(jobs) for jobs in (-1, -2, -8, -9, -100)] == [8, 7, 1, 1, 1]


def test_the_number_of_threads_is_limited():
    assert thread_count(10**9) == 1024


@pytest.mark.parametrize("jobs", [0, np.int64(0), True, False, 1.0, 2.5, "all", [2], float("nan")])
def test_invalid_numbers_of_threads_are_refused(jobs):
    with pytest.raises(ValueError, match="n_jobs must be a number of threads"):
        thread_count(jobs)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no CPU affinity")
def test_affinity_is_respected(monkeypatch):
    monkeypatch.setattr(threads, "_read_quota_cores", lambda: None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7})
    assert available_cores() == thread_count(-1) == 3


@pytest.mark.parametrize(
    ("limit", "cores"), [("max 100000", 16), ("250000 100000", 3), ("50000 100000", 1), ("damaged", 16)]
)
def test_the_limit_of_a_container_is_respected(tmp_path, monkeypatch, limit, cores):
    (tmp_path / "cpu.max").write_text(limit)
    monkeypatch.setattr(threads, "_CPU_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    assert available_cores() == cores


def test_systems_without_affinity_and_containers_are_supported(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "_CPU_QUOTA", tmp_path / "none")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1
