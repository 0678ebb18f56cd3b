"""``unkernel bench`` measures as described; the speed itself is not tested."""

from __future__ import annotations

import pytest

SHORT_RUN = ["--seconds", "0.01"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_json(run, compiled_file, golden, jobs):
    output = run("bench", compiled_file, golden / "multi.test.svm", "--json", "--jobs", jobs, *SHORT_RUN).json
    assert output["rows"] == 60
    assert output["threads"] == jobs
    assert output["engine"] == "expanded"
    assert output["compiled_now"] is False
    assert output["file_bytes"] == compiled_file.stat().st_size
    assert output["memory_bytes"] > 0
    assert output["load_milliseconds"] > 0
    times = output["microseconds_per_row"]
    assert output["scaling"] == pytest.approx(times["one_thread"] / times["all_threads"])
    assert output["rows_per_second"]["one_thread"] == pytest.approx(1e6 / times["one_thread"])
    assert output["score_one_microseconds"]["median"] >= output["score_one_microseconds"]["best"] > 0


def test_the_text_output_is_as_expected(run, model_file, test_file):
    result = run("bench", model_file, test_file, "--jobs", 2, *SHORT_RUN)
    assert (result.code, result.err) == (0, "")
    for words in ("one thread", "2 threads", "µs/row", "µs median", "µs best", "loading", "in memory"):
        assert words in result.out


@pytest.mark.parametrize("name", ["libsvm-rbf", "libsvm-nu-svr", "liblinear-multi", "tinysvm-poly2"])
def test_models_of_other_programs(run, golden, name):
    result = run("bench", golden / f"{name}.model", golden / "multi.test.svm", "--json", *SHORT_RUN)
    assert result.code == 0
    assert result.json["compiled_now"] is (not name.startswith("liblinear"))
    assert ("compiled for this run" in result.err) is result.json["compiled_now"]


def test_rows_with_real_values_and_empty_rows_are_measured(run, golden, tmp_path):
    (tmp_path / "rows").write_text("1 1:0.5 3:2\n1\n-1 1000:1\n")
    output = run("bench", golden / "libsvm-poly2.model", tmp_path / "rows", "--json", *SHORT_RUN).json
    assert output["features_per_row"] == pytest.approx(1.0)


def test_bad_options_are_refused(run, model_file, test_file):
    assert "--seconds" in run("bench", model_file, test_file, "--seconds", 0).error()
    assert "--jobs" in run("bench", model_file, test_file, "--jobs", 0).error()
