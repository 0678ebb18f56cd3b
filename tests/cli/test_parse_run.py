"""``unkernel parse``: files, pipes, drawings, and malformed sentences."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import unkernel
from reference.parse_corpora import MAKERS, chunks, treebank
from reference.patience import PATIENCE
from reference.terminal import run_until_interrupted
from unkernel.cli import main
from unkernel.data.text.drawing import draw_text

COMMAND = [sys.executable, "-m", "unkernel", "parse"]
BAD = "1\tbad\n\n"
KIND_OF = {"trees": "parser", "chunks": "chunker", "bunsetsu": "bunsetsu"}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    folder, paths = tmp_path_factory.mktemp("models"), {}
    for task, make in MAKERS.items():
        paths[task] = folder / f"{task}.uk"
        (folder / task).write_text(make(60, 0))
        assert main(["train", KIND_OF[task], str(folder / task), "-o", str(paths[task]), "--quiet"]) == 0
    return paths


@pytest.fixture
def model(models) -> Path:
    return models["trees"]


@pytest.fixture
def bank(tmp_path) -> Path:
    path = tmp_path / "raw.conllu"
    path.write_text(treebank(12, 5))
    return path


def parse_to_text(model: Path, file: Path) -> str:
    return unkernel.load(model).parse(file).to_bytes().decode()


@pytest.mark.parametrize("task", MAKERS)
@pytest.mark.parametrize("jobs", [1, 2])
def test_columns(run, models, tmp_path, task, jobs):
    path = tmp_path / "in"
    path.write_text(MAKERS[task](30, 3))
    result = run("parse", models[task], path, "--jobs", jobs)
    assert (result.code, result.out) == (0, parse_to_text(models[task], path))
    assert "30 sentences" in result.err
    result = run("parse", models[task], path, "-o", tmp_path / "out", "-q")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert (tmp_path / "out").read_text() == parse_to_text(models[task], path)


def test_chunks_without_a_tag_column_get_one(run, models, tmp_path):
    (tmp_path / "in").write_text(chunks(5, 3, tags=False))
    (tmp_path / "tagged").write_text(chunks(5, 3))
    text = run("parse", models["chunks"], tmp_path / "in", "-q").out
    assert text == run("parse", models["chunks"], tmp_path / "tagged", "-q").out


def test_chunkers_without_parts_of_speech_need_only_words(run, tmp_path):
    """A chunker of words and tags works without parts of speech."""
    lines = [line.split() for line in chunks(40, 0).splitlines()]
    tagged_text = "".join(f"{fields[0]} {fields[-1]}\n" if fields else "\n" for fields in lines)
    untagged_text = "".join(f"{fields[0]}\n" if fields else "\n" for fields in lines)
    (tmp_path / "two").write_text(tagged_text)
    (tmp_path / "one").write_text(untagged_text)
    assert run("train", "chunker", tmp_path / "two", "-o", tmp_path / "m.uk", "--beam", "2", "-q").code == 0
    text = run("parse", tmp_path / "m.uk", tmp_path / "one", "-q").out
    assert [line.split()[:1] for line in text.splitlines()] == [fields[:1] for fields in lines]
    assert text == run("parse", tmp_path / "m.uk", tmp_path / "two", "-q").out
    assert run("evaluate", tmp_path / "m.uk", tmp_path / "two", "--json").json["f1"] > 90
    assert unkernel.load(tmp_path / "m.uk").beam == 2


def test_compressed_output(run, model, bank, tmp_path):
    assert run("parse", model, bank, "-o", tmp_path / "out.conllu.xz", "-q").code == 0
    assert unkernel.read_conllu(tmp_path / "out.conllu.xz").to_bytes().decode() == parse_to_text(model, bank)


# --- Bad sentences ------------------------------------------------------------------------------------


@pytest.fixture
def text_with_bad_sentence(bank, tmp_path) -> tuple[Path, str]:
    """Return a text with a bad sentence in the middle, and the text before it."""
    valid_text = bank.read_text()
    path = tmp_path / "mixed.conllu"
    path.write_text(valid_text + BAD + valid_text)
    return path, valid_text


def test_parsing_stops_at_a_bad_sentence(run, model, bank, text_with_bad_sentence, tmp_path):
    path, valid_text = text_with_bad_sentence
    result = run("parse", model, path)
    assert result.code == 2
    assert result.out == parse_to_text(model, bank)
    (line,) = result.err.splitlines()
    assert line.startswith(f"unkernel: error: {path}:{valid_text.count(chr(10)) + 1}:")
    original_files = set(tmp_path.iterdir())
    assert run("parse", model, path, "-o", tmp_path / "out").code == 2
    assert set(tmp_path.iterdir()) == original_files  # no incomplete output


def test_bad_sentences_can_be_skipped(run, model, bank, text_with_bad_sentence):
    path, _ = text_with_bad_sentence
    result = run("parse", model, path, "--on-error", "skip", "-q")
    assert result.code == 0
    assert result.out == parse_to_text(model, bank) + BAD + parse_to_text(model, bank)
    named, counted = result.err.splitlines()
    assert f"{path}:" in named
    assert "1 sentence passed through" in counted


# --- Drawings -----------------------------------------------------------------------------------------


def test_trees_are_drawn_for_the_terminal(run, models, bank, tmp_path):
    trees = unkernel.load(models["trees"]).parse(bank)
    expected = "".join(f"{draw_text(sentence)}\n" for sentence in trees)
    assert run("parse", models["trees"], bank, "--draw", "-q").out == expected
    assert run("parse", models["trees"], bank, "--draw", "-o", tmp_path / "out", "-q").out == ""
    assert (tmp_path / "out").read_text() == expected
    (tmp_path / "c").write_text("the DT\ndog NN\nsaw VBD\n. .\n\n")
    assert run("parse", models["chunks"], tmp_path / "c", "--draw", "-q").out == "[NP the dog] [VP saw] .\n\n"
    (tmp_path / "b").write_text(MAKERS["bunsetsu"](1, 0))
    drawing = run("parse", models["bunsetsu"], tmp_path / "b", "--draw", "-q").out
    assert drawing.count("─ ") == len(unkernel.load(models["bunsetsu"]).parse(tmp_path / "b")[0])


@pytest.mark.parametrize("task", ["trees", "bunsetsu"])
def test_arcs_are_drawn_as_a_page(run, models, tmp_path, task):
    path = tmp_path / "in"
    path.write_text(MAKERS[task](3, 0))
    command = ("parse", models[task], path, "-q", "--svg")
    result = run(*command, tmp_path / "pictures")
    assert (result.code, result.out) == (0, "")
    pictures = sorted((tmp_path / "pictures").iterdir())
    assert [picture.name for picture in pictures] == [f"{number:06}.svg" for number in (1, 2, 3)]
    assert all(picture.read_text().startswith("<svg ") for picture in pictures)
    assert "has pictures already" in run(*command, tmp_path / "pictures").error()
    assert run(*command, tmp_path / "pictures", "--force").code == 0
    assert run(*command, tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("<figure>") == page.count("<svg ") == 3
    assert page.endswith("</html>\n")
    assert "more than one sentence" in run(*command, tmp_path / "one.svg").error()
    assert "pictures are SVG" in run(*command, tmp_path / "one.png").error()
    assert not (tmp_path / "one.png").exists()
    path.write_text(MAKERS[task](1, 0))
    assert run(*command, tmp_path / "one.svg", "-o", "-").out == parse_to_text(models[task], path)
    assert (tmp_path / "one.svg").read_text().startswith("<svg ")
    path.write_text("")
    assert "no sentence" in run(*command, tmp_path / "none.svg").error()
    assert not (tmp_path / "none.svg").exists()


def test_a_page_escapes_words(run, model, tmp_path):
    (tmp_path / "in").write_text("# text = <b>&\n1\t<b>&\t_\tX\t_\t_\t_\t_\t_\t_\n\n")
    assert run("parse", model, tmp_path / "in", "--svg", tmp_path / "<p>.html", "-q").code == 0
    page = (tmp_path / "<p>.html").read_text()
    assert "<b>" not in page
    assert "<p>" not in page


# --- Refusals -----------------------------------------------------------------------------------------


def test_bad_files_and_outputs_are_refused(run, models, model, bank, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "old.html").write_text("mine")
    for arguments, reason in (
        ((model, tmp_path / "nowhere"), "No such file"),
        ((tmp_path / "nowhere.uk", bank), "No such file"),
        ((model, bank, "-o", bank), "is also an input"),
        ((model, bank, "-o", model), "is also an input"),
        ((model, bank, "-o", tmp_path / "a/b"), "there is no folder"),
        ((model, bank, "-o", models["chunks"]), "exists; name another file, or replace it with --force"),
        ((model, bank, "--svg", tmp_path / "old.html"), "exists; name another file"),
        ((model, bank, "--svg", tmp_path / "a/b.svg"), "there is no folder"),
        ((model, bank, "--svg", tmp_path / "a/b"), "there is no folder"),
        ((model, bank, "--svg", tmp_path / "file"), "is a file"),
        ((models["chunks"], bank, "--svg", tmp_path / "x"), "chunks have none"),
        ((models["chunks"], bank, "--format", "conllx"), "--format is for dependency trees"),
        ((model, bank, "--on-error", "cry"), "--on-error"),
    ):
        assert reason in run("parse", *arguments).error()


def test_raw_text_is_refused_with_the_missing_option(run, model, tmp_path):
    (tmp_path / "raw.txt").write_text("Dogs bark loudly.\n")
    for command in ("parse", "evaluate", "explain"):
        lines_of_answer = run(command, model, tmp_path / "raw.txt").error()
        assert lines_of_answer.startswith(f"{tmp_path / 'raw.txt'}:1:")
        assert "CoNLL-U has one word per line" in lines_of_answer


def test_warnings_of_the_library_are_shown_as_single_lines(run, model, bank, monkeypatch):
    def warn_and_fail(*_: object, **__: object) -> None:
        warnings.warn("the tags are not those of training", UserWarning, stacklevel=1)
        raise ValueError("stop here")

    monkeypatch.setattr("unkernel.cli.commands.parse.parse_stream", warn_and_fail)
    warnings.simplefilter("default")
    result = run("parse", model, bank)
    assert result.err.splitlines() == [
        "unkernel: warning: the tags are not those of training",
        "unkernel: error: stop here",
    ]


# --- Processes ----------------------------------------------------------------------------------------


def start_process(*arguments: object, **settings) -> subprocess.Popen[bytes]:
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*COMMAND, *map(str, arguments)], **(streams | settings))


def finish(process: subprocess.Popen[bytes], data: bytes = b"") -> tuple[int, bytes, str]:
    out, err = process.communicate(data, timeout=PATIENCE)
    return process.returncode, out, err.decode()


def test_stdin_to_stdout(run, stdin, model, bank):
    expected = parse_to_text(model, bank)
    for arguments in (["-", "-o", "-"], []):
        stdin(bank.read_bytes())
        result = run("parse", model, *arguments, "-q")
        assert (result.code, result.out, result.err) == (0, expected, "")


def test_training_and_evaluation_read_stdin(run, stdin, bank, tmp_path):
    stdin(bank.read_bytes())
    assert run("train", "parser", "-", "-o", tmp_path / "m.uk", "-q").code == 0
    stdin(bank.read_bytes())
    assert run("evaluate", tmp_path / "m.uk", "-", "--json").json["uas"] > 50


def test_sentences_are_answered_while_the_pipe_stays_open(model, bank):
    """A client that waits for each answer receives it."""
    process = start_process(model, "-q")
    parser = unkernel.load(model)
    for sentence in unkernel.read_conllu(bank)[:3]:
        lines = str(sentence).encode() + b"\n"
        process.stdin.write(lines)
        process.stdin.flush()
        expected = parser.parse([sentence.forms], [sentence.upos])[0].heads
        lines_of_answer = [process.stdout.readline() for _ in lines.splitlines()]
        assert [int(line.split(b"\t")[6]) for line in lines_of_answer if line[:1].isdigit()] == expected
    assert finish(process) == (0, b"", "")


@pytest.mark.skipif("UNKERNEL_SANITIZER" in os.environ, reason="sanitizers keep freed memory for a while")
@pytest.mark.hostile
def test_an_endless_stream_is_parsed_in_bounded_memory(model, bank):
    """Memory after 25 MB of input is at most 30 MB above that at the first answer."""
    process, text = start_process(model, "-q", "-j", "1"), bank.read_bytes()
    process.stdin.write(text)
    process.stdin.flush()
    os.read(process.stdout.fileno(), 1 << 16)
    status = Path(f"/proc/{process.pid}/statm")
    if not status.exists():
        process.kill()
        pytest.skip("there is no /proc")
    first_memory = int(status.read_text().split()[1]) * resource.getpagesize()
    block, peak_memory = text * 100, 0
    for _ in range(60):  # 25 MB
        n_written = 0
        while n_written < len(block):
            readable, writable, _ = select.select([process.stdout], [process.stdin], [])
            if writable:
                n_written += os.write(process.stdin.fileno(), block[n_written : n_written + 4096])
            if readable:
                os.read(process.stdout.fileno(), 1 << 20)
        peak_memory = max(peak_memory, int(status.read_text().split()[1]) * resource.getpagesize())
    process.stdout.close()
    process.stdin.close()
    process.wait(PATIENCE)
    assert peak_memory - first_memory < 30e6


@pytest.mark.hostile
def test_a_closed_pipe_ends_the_command_quietly(model, tmp_path):
    """The pipe closes early, as in ``unkernel parse … | head``."""
    (tmp_path / "in").write_text(treebank(1000, 0))
    process = start_process(model, tmp_path / "in")
    assert process.stdout.readline().startswith(b"# sent_id")
    process.stdout.close()
    assert process.wait(PATIENCE) == 1
    assert process.stderr.read() == b""


@pytest.mark.hostile
@pytest.mark.parametrize("output", [True, False])
def test_an_interrupt_ends_the_command(model, bank, tmp_path, output):
    arguments = ["-o", tmp_path / "out"] if output else []
    process = start_process(model, "--on-error", "skip", *arguments)
    process.stdin.write(BAD.encode() + bank.read_bytes())
    process.stdin.flush()
    assert b"warning" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)
    assert process.returncode == 130
    assert process.stderr.read() == b"unkernel: interrupted\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["raw.conllu"]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
@pytest.mark.hostile
def test_a_full_disk_is_reported(model, bank):
    with Path("/dev/full").open("wb") as full:
        code, _, err = finish(start_process(model, bank, stdout=full))
    assert (code, err) == (2, "unkernel: error: No space left on device\n")


@pytest.mark.hostile
def test_a_terminal_shows_the_progress_of_training(bank, tmp_path):
    command = [
        *COMMAND[:-1],
        "train",
        "parser",
        str(bank),
        "-o",
        str(tmp_path / "m.uk"),
        "--dev",
        str(bank),
        "--epochs",
        "5000",
    ]
    code, shown = run_until_interrupted("dev UAS", command)
    assert code == 130
    assert "━" in shown
    assert shown.rstrip().endswith("unkernel: interrupted")
    assert not (tmp_path / "m.uk").exists()
