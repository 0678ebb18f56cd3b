"""``unkernel predict`` of several files: the output of one command for each; runs can be interrupted."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from reference.processes import run_python
from unkernel.cli.batch_files import Cluster, Part, _open_runner
from unkernel.cli.cluster import connect

JOURNAL = "predict.journal"


@pytest.fixture
def parts(people_file, tmp_path) -> Path:
    """Return a folder of three parts."""
    lines = people_file.read_text().splitlines(keepends=True)
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(3):
        rows = lines[1 + 20 * number : 21 + 20 * number]
        (folder / f"part-{number}.csv").write_text("".join([lines[0], *rows]))
    return folder


@pytest.fixture
def model(run, people_file, tmp_path) -> Path:
    path = tmp_path / "model.uk"
    assert run("train", "poly", people_file, "--target", "rich", "-o", path, "-q").code == 0
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != JOURNAL}


def predict_one_by_one(run, model: Path, parts: Path, folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    for path in parts.iterdir():
        assert run("predict", model, path, "-o", folder / path.name, "--scores").code == 0
    return contents(folder)


def test_each_file_gets_the_output_of_a_separate_command(run, model, parts, tmp_path):
    result = run("predict", model, parts / "part-*.csv", "-o", tmp_path / "out", "--scores", "--json")
    assert (result.json["parts"], result.json["done_before"], result.json["rows"]) == (3, 0, 60)
    assert contents(tmp_path / "out") == predict_one_by_one(run, model, parts, tmp_path / "alone")


def test_output_does_not_depend_on_the_workers(run, model, parts, tmp_path):
    pytest.importorskip("distributed")
    command = ["predict", model, parts / "part-*.csv", "-o", tmp_path / "out", "--scores"]
    result = run(*command, "--dask", "local", "--jobs", 2, "--json")
    assert result.json["rows"] == 60
    assert contents(tmp_path / "out") == predict_one_by_one(run, model, parts, tmp_path / "alone")


@pytest.mark.hostile
def test_a_worker_that_is_killed_costs_no_part(tmp_path):
    pytest.importorskip("distributed")
    killed = str(tmp_path / "killed")

    def write_part(part: Part) -> dict[str, int]:
        import os
        import signal
        from pathlib import Path

        if part.data == "b" and not Path(killed).exists():
            Path(killed).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        Path(part.output).write_text(part.data)
        return {"rows": 1}

    (tmp_path / "out").mkdir()
    parts = [Part(name, str(tmp_path / "out" / name)) for name in "abcd"]
    with _open_runner(write_part, Cluster("local", 2)) as run_parts:
        assert {part.data: result["rows"] for part, result in run_parts(parts)} == dict.fromkeys("abcd", 1)
    assert contents(tmp_path / "out") == {name: name.encode() for name in "abcd"}


def test_local_workers_keep_memory() -> None:
    pytest.importorskip("distributed")
    with connect("local", 1) as client:
        assert set(client.run(os.getenv, "MALLOC_MMAP_THRESHOLD_").values()) == {str(1 << 30)}


# A program that is killed before, during or after it records a part in the journal.
KILLED = """
    import os, signal, sys
    from unkernel.cli import main, batch_files

    if __name__ == "__main__":
        moment, *words = sys.argv[1:]
        note = batch_files.Journal._append
        calls = 0

        def noting(self, part, stamp):
            global calls
            calls += stamp is not None
            if calls < 2 or moment == "after":
                note(self, part, stamp)
            if calls == 2:
                if moment == "half":
                    with self._path.open("a") as file:
                        file.write('\\n{"part": "part-')
                os.kill(os.getpid(), signal.SIGKILL)

        batch_files.Journal._append = noting
        main(words)
"""


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("kill_time", "options"), [("before", []), ("half", []), ("after", []), ("before", ["--dask", "local"])]
)
def test_another_run_completes_the_work_of_a_killed_client(
    run, model, parts, tmp_path, *, kill_time, options
):
    if options:
        pytest.importorskip("distributed")
    command = ["predict", model, parts / "part-*.csv", "-o", tmp_path / "out", "--scores"]
    killed = run_python(KILLED, kill_time, *command, *options, "--jobs", 2)
    assert killed.returncode == -signal.SIGKILL
    assert len(contents(tmp_path / "out")) >= 2
    assert run(*command, "--json").json["done_before"] == (2 if kill_time == "after" else 1)
    assert contents(tmp_path / "out") == predict_one_by_one(run, model, parts, tmp_path / "alone")


SCHEDULER = """
    import sys
    from distributed import LocalCluster

    if __name__ == "__main__":
        with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
            print(cluster.scheduler_address, flush=True)
            sys.stdin.read()
"""


@pytest.mark.hostile
def test_a_scheduler_that_is_lost_is_named(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("unkernel.cli.cluster._CONNECT_TIMEOUT", 2)
    command = [sys.executable, "-c", textwrap.dedent(SCHEDULER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address, scheduler = process.stdout.readline().strip(), process.pid

        def write_part(part: Part) -> None:
            import os
            import signal
            import threading

            if part.data == "b":
                os.kill(scheduler, signal.SIGKILL)
                threading.Event().wait()

        with (
            pytest.raises(ValueError, match=r"the scheduler was lost.*the same command"),
            _open_runner(write_part, Cluster(address, 1)) as run_parts,
        ):
            list(run_parts([Part(name, name) for name in "abc"]))


def test_a_failed_run_resumes_at_the_first_unfinished_file(run, model, parts, tmp_path):
    out, command = tmp_path / "out", ["predict", model, parts / "part-*.csv", "-o", tmp_path / "out"]
    original = (parts / "part-1.csv").read_bytes()
    (parts / "part-1.csv").write_text("nothing\nof\nthe\nkind\n")
    assert "part-1.csv" in run(*command).error()
    assert set(contents(out)) == {"part-0.csv"}
    (out / "part-0.csv").write_text("kept as it is")
    (parts / "part-1.csv").write_bytes(original)
    output = run(*command, "--json").json
    assert (output["parts"], output["done_before"], output["rows"]) == (3, 1, 40)
    assert (out / "part-0.csv").read_text() == "kept as it is"
    again = run(*command)
    assert "answered before  3" in again.out


def test_files_that_changed_are_answered_again(run, model, parts, tmp_path):
    command = ["predict", model, parts / "part-*.csv", "-o", tmp_path / "out"]
    assert run(*command, "-q").code == 0
    shutil.copy(parts / "part-0.csv", parts / "part-2.csv")
    assert run(*command, "--json").json["done_before"] == 2
    result = contents(tmp_path / "out")
    assert result["part-2.csv"] == result["part-0.csv"]


def test_a_journal_that_was_cut_off_is_read(run, model, parts, tmp_path):
    command = ["predict", model, parts / "part-*.csv", "-o", tmp_path / "out"]
    assert run(*command, "-q").code == 0
    journal = tmp_path / "out" / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-5])
    assert run(*command, "--json").json["done_before"] == 2
    assert json.loads(journal.read_text().splitlines()[-1])["part"] == "part-2.csv"


@pytest.mark.parametrize(
    "lines",
    [b"", b"[1]", b'{"a": 1}\n{"part": "part-0.csv"}\n{"part": [1], "stamp": 3}', b"\xff\n" + b"[" * 9999],
)
def test_invalid_journals_are_refused_or_replaced(run, model, parts, tmp_path, lines):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / JOURNAL).write_bytes(lines)
    command = ["predict", model, parts / "part-*.csv", "-o", tmp_path / "out"]
    if lines.startswith((b"[1]", b"{")):
        assert "another model" in run(*command).error()
    else:
        assert run(*command, "--json").json["done_before"] == 0
    assert run(*command, "--force", "--json").json["parts"] == 3


def test_a_part_that_was_cut_off_is_answered_again(run, model, parts, tmp_path):
    """An answer that the journal does not record yet belongs to this run, which may replace it."""
    command = ["predict", model, parts / "part-*.csv", "-o", tmp_path / "out"]
    assert run(*command, "-q").code == 0
    journal = tmp_path / "out" / JOURNAL
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join(line for line in lines if "part-2" not in line or "null" in line))
    assert run(*command, "--json").json["done_before"] == 2


def test_files_not_in_the_journal_are_not_replaced(run, model, parts, tmp_path):
    command = ["predict", model, parts / "part-[01].csv", "-o", tmp_path / "out"]
    assert run(*command, "-q").code == 0
    (tmp_path / "out" / "part-2.csv").write_text("mine")
    all_parts = ["predict", model, parts / "part-*.csv", "-o", tmp_path / "out"]
    assert "part-2.csv: exists" in run(*all_parts).error()
    assert (tmp_path / "out" / "part-2.csv").read_text() == "mine"
    assert run(*all_parts, "--force", "--json").json["done_before"] == 2


def test_answers_never_take_the_place_of_the_journal(run, model, parts, tmp_path):
    (parts / "predict.journal.jsonl").write_text('{"age": 3}\n')
    (parts / "journal.jsonl").write_text('{"age": 3}\n')
    command = ["predict", model, parts / "*.jsonl", "-o", tmp_path / "out"]
    assert run(*command, "--json").json["rows"] == 2
    assert run(*command, "--json").json["done_before"] == 2


def test_answers_of_other_runs_are_not_mixed(run, model, parts, people_file, tmp_path):
    command = ["predict", model, parts / "part-*.csv", "-o", tmp_path / "out"]
    assert run(*command, "-q").code == 0
    assert "other options" in run(*command, "--scores").error()
    assert run("train", "poly", people_file, "--target", "rich", "-o", model, "--C", 7, "-q").code == 0
    assert "another model" in run(*command).error()
    assert run(*command, "--force", "--json").json["done_before"] == 0


def test_unreadable_models_leave_no_output(run, model, parts, tmp_path):
    invalid_model, out = tmp_path / "bad.uk", tmp_path / "out"
    command = [parts / "part-*.csv", "-o", out]
    assert "No such file" in run("predict", invalid_model, *command).error()
    invalid_model.write_text("no model")
    assert "bad.uk: not a model" in run("predict", invalid_model, *command).error()
    assert not out.exists()


def test_a_run_without_results_does_not_block_the_next(run, model, parts, tmp_path):
    """The first run fails at a bad file; the next one may use other options."""
    command = ["predict", model, parts / "part-*.csv", "-o", tmp_path / "out"]
    content = (parts / "part-0.csv").read_bytes()
    (parts / "part-0.csv").write_bytes(b"")
    assert "part-0.csv: the file is empty" in run(*command, "--scores").error()
    (parts / "part-0.csv").write_bytes(content)
    assert run(*command, "--json").json["rows"] == 60
    assert "other options" in run(*command, "--scores").error()  # now there are answers


def test_a_link_to_no_file_is_named(run, model, parts, tmp_path):
    """A pattern must not skip such a link silently."""
    (parts / "part-7.csv").symlink_to(parts / "gone.csv")
    command = ["predict", model, parts / "part-*.csv", "-o", tmp_path / "out"]
    assert run(*command).error() == f"{parts / 'part-7.csv'}: The link leads to no file"
    assert not (tmp_path / "out").exists()


def test_answers_have_the_format_of_the_files(run, model, parts, tmp_path):
    (parts / "b.tab").write_text("age\tjob\tmember\n30\tclerk\ttrue\n")
    (parts / "c.TSV.gz").write_bytes(gzip.compress(b"age\tjob\tmember\n30\tclerk\ttrue\n"))
    (parts / "d.ndjson").write_text('{"age": 30, "job": "clerk", "member": true}\n')
    assert run("predict", model, parts / "[bcd].*", "-o", tmp_path / "out", "-q", "--scores").code == 0
    result = contents(tmp_path / "out")
    assert sorted(result) == ["b.tab", "c.TSV", "d.ndjson"]
    assert b"\t" in result["b.tab"] and result["b.tab"] == result["c.TSV"]
    assert json.loads(result["d.ndjson"])


def test_several_files_and_folders_are_refused_with_the_right_syntax(run, model, parts, tmp_path):
    files = sorted(parts.iterdir())
    assert run("predict", model, *files, "-o", tmp_path / "out").error() == (
        f"{files[1]}: a second file; for several files, give one pattern in quotes, such as 'part-*.csv', "
        "and name a folder with --output"
    )
    assert f"such as '{parts / '*.csv'}'" in run("predict", model, parts, "-o", tmp_path / "out").error()


def test_unusable_inputs_and_options_are_refused(run, model, parts, people_file, tmp_path):
    pattern = parts / "part-*.csv"
    assert "name it with --output" in run("predict", model, pattern).error()
    assert "o file matches" in run("predict", model, parts / "x-*", "-o", tmp_path / "out").error()
    assert "name another folder" in run("predict", model, pattern, "-o", parts).error()
    assert "there is no folder" in run("predict", model, pattern, "-o", tmp_path / "a" / "b").error()
    assert "a pattern in quotes" in run("predict", model, people_file, "--dask", "local").error()
    command = ["predict", model, pattern, "-o", tmp_path / "out", "--dask", "nowhere"]
    assert "--dask must be local or the address" in run(*command).error()
    (parts / "part-0.tsv").write_text("")
    (parts / "part-0.csv.gz").write_text("")
    assert "the answers to both" in run("predict", model, parts / "part-*", "-o", tmp_path / "o").error()
