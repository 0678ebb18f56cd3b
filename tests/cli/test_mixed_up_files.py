"""Wrong files, folders and outputs: one line names the file and says how to correct the command."""

from __future__ import annotations

import builtins
import errno
import gzip
import io
import os
import sys
from pathlib import Path

import pytest

from reference.parse_corpora import bunsetsu, chunks, treebank
from unkernel.cli.inputs.file_contents import detect_content
from unkernel.data import Treebank
from unkernel.parsing import ArcEagerParser, WordClusters

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
TREES = "1 |BT| (S (NP dogs) (VP bark)) |ET|\n-1 |BT| (S (NP cats) (VP sleep)) |ET|\n" * 5
ROWS = "1 1:1 2:1\n-1 3:1\n1 1:1\n-1 2:1 3:1\n" * 5
DATA = {
    "rows.svm": (ROWS, "rows", "poly"),
    "trees.dat": (TREES, "trees", "tree"),
    "train.conllu": (treebank(12, 0), "sentences with dependency trees", "parser"),
    "train.knp": (bunsetsu(30, 0), "sentences with bunsetsu", "bunsetsu"),
    "chunks.txt": (chunks(30, 0), "sentences with chunks", "chunker"),
}
MODEL_FIRST = {
    "predict": "unkernel predict MODEL DATA",
    "evaluate": "unkernel evaluate MODEL FILE",
    "explain": "unkernel explain MODEL DATA",
    "bench": "unkernel bench MODEL DATA",
    "parse": "unkernel parse MODEL [FILE]...",
}


@pytest.fixture(scope="module")
def shared_files(tmp_path_factory) -> Path:
    """Return a folder with one file of each kind of data, and models of rows, trees and sentences."""
    from unkernel.cli import main

    folder = tmp_path_factory.mktemp("made")
    for name, (text, _, _) in DATA.items():
        (folder / name).write_text(text)
    for kind, name in (("poly", "rows.svm"), ("tree", "trees.dat"), ("parser", "train.conllu")):
        assert main(["train", kind, str(folder / name), "-o", str(folder / f"{kind}.uk"), "-q"]) == 0
    (folder / "folder").mkdir()
    return folder


@pytest.fixture
def files(shared_files, monkeypatch):
    """Return the folder, which is the working directory, and which a failing command must not change."""
    monkeypatch.chdir(shared_files)

    def contents() -> dict[Path, bytes | None]:
        return {path: path.read_bytes() if path.is_file() else None for path in shared_files.rglob("*")}

    original_contents = contents()
    yield shared_files
    assert contents() == original_contents


# --- Models in place of data, and vice versa ----------------------------------------------------------


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("command", MODEL_FIRST)
def test_data_in_place_of_a_model_is_refused(run, files, command, name):
    message = f"{name} holds {DATA[name][1]}, not a model: the MODEL comes first: {MODEL_FIRST[command]}"
    assert run(command, name, "poly.uk").error() == message


@pytest.mark.parametrize("name", DATA)
def test_data_given_to_commands_that_read_only_a_model_is_refused(run, files, name):
    _, content, kind = DATA[name]
    message = (
        f"{name} holds {content}, not a model: train one first: unkernel train {kind} {name} -o model.uk"
    )
    assert run("inspect", name).error() == message
    assert run("compile", name, "-o", "x.uk").error() == message


def test_records_in_place_of_a_model_or_other_data_are_refused(run, files, people_file):
    message = f"{people_file} holds records, not a model: "
    assert (
        run("predict", people_file, "poly.uk").error()
        == f"{message}the MODEL comes first: {MODEL_FIRST['predict']}"
    )
    trained = f"unkernel train poly {people_file} --target COLUMN -o model.uk"
    assert run("inspect", people_file).error() == f"{message}train one first: {trained}"
    for kind, unit in (("rank", "rows"), ("tree", "trees")):
        error = run("train", kind, people_file, "-o", "x.uk").error()
        assert error.startswith(f"{people_file}: holds records, and train {kind} takes {unit}; ")


def test_swapped_arguments_are_refused_and_the_output_is_not_written(run, files):
    message = "rows.svm holds rows, not a model: the MODEL comes first: unkernel predict MODEL DATA"
    assert run("predict", "rows.svm", "poly.uk", "-o", "out.txt", "--json").error() == message


@pytest.mark.parametrize(
    "kind", ["poly", "logistic", "linear", "rank", "tree", "parser", "bunsetsu", "chunker"]
)
def test_models_in_place_of_training_data_are_refused(run, files, kind):
    expected = {"tree": "trees", "parser": "sentences", "bunsetsu": "sentences", "chunker": "sentences"}
    content = expected.get(kind, "rows")
    message = f"poly.uk is a model of unkernel, not {content}; name the file with the {content}"
    assert run("train", kind, "poly.uk").error() == message
    assert run("train", kind, "poly.uk", "-o", "x.uk").error() == message
    assert run("tune", kind, "poly.uk").error() == message


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("predict poly.uk tree.uk", "rows"),
        ("evaluate poly.uk tree.uk", "rows"),
        ("explain poly.uk tree.uk", "rows"),
        ("bench poly.uk tree.uk", "rows"),
        ("predict tree.uk tree.uk", "trees"),
        ("evaluate parser.uk tree.uk", "sentences"),
        ("explain parser.uk tree.uk", "sentences"),
        ("parse parser.uk tree.uk", "sentences"),
        ("compile poly.uk -o x.uk --sample tree.uk", "rows"),
        ("compile poly.uk -o x.uk --trie tree.uk", "rows"),
        ("train poly rows.svm -o x.uk --test tree.uk", "rows"),
        ("train linear tree.uk -o x.uk --out-of-core", "rows"),
        ("train linear rows.svm tree.uk -o x.uk --out-of-core", "rows"),
        ("train linear tree.u* -o x.uk --out-of-core", "rows"),
        ("train parser train.conllu -o x.uk --dev tree.uk", "sentences"),
        ("explain poly.uk rows.svm --features tree.uk", "names of features"),
        ("inspect poly.uk --features tree.uk", "names of features"),
    ],
)
def test_models_in_place_of_data_are_refused(run, files, command, expected):
    message = f"tree.uk is a model of unkernel, not {expected}; name the file with the {expected}"
    assert run(*command.split()).error() == message


def test_models_of_other_programs_in_place_of_training_data_are_refused(run, files):
    model = GOLDEN / "libsvm-poly2.model"
    message = f"{model} is a model of another program, not rows; name the file with the rows"
    assert run("train", "poly", model, "-o", "x.uk").error() == message


@pytest.mark.parametrize("command", ["evaluate parser.uk", "explain parser.uk", "parse parser.uk"])
def test_rows_are_refused_as_sentences(run, files, command):
    message = "rows.svm holds rows, not sentences; name the file with the sentences"
    assert run(*command.split(), "rows.svm").error() == message
    assert run("train", "parser", "rows.svm", "-o", "x.uk").error() == message


def test_the_content_of_files_is_detected():
    for text, insert_path, _ in DATA.values():
        assert insert_path.endswith(detect_content(text.encode()))
        assert insert_path.endswith(detect_content(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()))
    assert detect_content(b"# remark\n\n2\n-1 qid:3 1:0.5 # a row\n1e-3 7:1\n") == "rows"
    for no_data in (b"", b"1\n2\n", b"a letter: to you\n", b"svm_type c_svc\n1 1:1\n", b"\x00\xff\x00\n"):
        assert detect_content(no_data) is None


# --- Truncated models ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.05, 0.5, 0.99])
@pytest.mark.parametrize("model", ["poly.uk", "tree.uk", "parser.uk"])
def test_truncated_models_are_refused_with_a_remedy(run, shared_files, tmp_path, model, fraction):
    data = (shared_files / model).read_bytes()
    truncated_model = tmp_path / "cut.uk"
    truncated_model.write_bytes(data[: max(int(fraction * len(data)), 100)])
    rows, sentences = shared_files / "rows.svm", shared_files / "train.conllu"
    for command in (
        ("inspect", truncated_model),
        ("predict", truncated_model, rows),
        ("evaluate", truncated_model, rows),
        ("explain", truncated_model, rows),
        ("bench", truncated_model, rows),
        ("compile", truncated_model, "-o", tmp_path / "x.uk"),
        ("parse", truncated_model, sentences, "-o", tmp_path / "x.conllu"),
    ):
        message = run(*command).error()
        assert message.startswith(f"{truncated_model}: ")
        assert "has been cut short" in message
        assert message.endswith("; copy or train it again")
    assert list(tmp_path.iterdir()) == [truncated_model]


# --- Folders and permissions --------------------------------------------------------------------------

READING = [
    "inspect X",
    "predict X rows.svm",
    "predict poly.uk X",
    "predict tree.uk X",
    "evaluate X rows.svm",
    "evaluate poly.uk X",
    "evaluate parser.uk X",
    "report X --test rows.svm -o x.html",
    "report poly.uk --test X -o x.html",
    "explain X rows.svm",
    "explain poly.uk X",
    "explain parser.uk X",
    "explain poly.uk rows.svm --features X",
    "bench X rows.svm",
    "bench poly.uk X",
    "compile X -o x.uk",
    "compile poly.uk -o x.uk --sample X",
    "compile poly.uk -o x.uk --trie X",
    "parse X train.conllu",
    "parse parser.uk X",
    "train poly X -o x.uk",
    "train poly rows.svm -o x.uk --test X",
    "train linear X -o x.uk --out-of-core",
    "train tree X -o x.uk",
    "train parser X -o x.uk",
    "train parser train.conllu -o x.uk --dev X",
    "tune poly X",
    "tune tree X",
    "tune parser X",
]
WRITING = [
    "predict poly.uk rows.svm -o X",
    "parse parser.uk train.conllu -o X",
    "compile poly.uk -o X",
    "train poly rows.svm -o X",
    "train tree trees.dat -o X",
    "train parser train.conllu -o X",
    "train linear rows.svm -o x.uk --out-of-core --cache X",
    "tune poly rows.svm -o X",
    "tune parser train.conllu -o X",
]
DRAWING = [
    "parse parser.uk train.conllu --svg X.svg",
    "parse parser.uk train.conllu --svg X.html",
    "compile poly.uk -o x.uk --plot X.svg",
    "tune poly rows.svm --plot X.svg",
]


def insert_path(command: str, path: str) -> list[str]:
    return command.replace("X", path).split()


@pytest.mark.parametrize("command", READING + WRITING)
def test_folders_in_place_of_files_are_refused(run, files, command):
    # Commands that predict several files also explain how to name them.
    assert run(*insert_path(command, "folder")).error().startswith("folder: is a folder; name a file in it")


@pytest.fixture
def locked(monkeypatch):
    """Forbid opening files, and writing to folders, with 'locked' in their names.

    File modes are not enough, because root may ignore them.
    """
    real_open, real_access = io.open, os.access

    def refusing_open(file, *arguments, **options):
        if not isinstance(file, int) and "locked" in os.fspath(file):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(file))
        return real_open(file, *arguments, **options)

    monkeypatch.setattr(io, "open", refusing_open)
    monkeypatch.setattr(builtins, "open", refusing_open)
    monkeypatch.setattr(
        os,
        "access",
        lambda path, *rest, **more: "locked" not in str(path) and real_access(path, *rest, **more),
    )


@pytest.mark.parametrize("command", READING)
def test_files_without_permission_are_named(run, files, locked, tmp_path, command):
    path = tmp_path / "locked"
    (tmp_path / "rows").write_text(ROWS)
    (tmp_path / "rows").rename(path)
    message = f"{path}: no permission to open it; change its permissions, or name another file"
    assert run(*insert_path(command, str(path))).error() == message


@pytest.mark.parametrize("command", WRITING + DRAWING)
def test_output_folders_without_permission_are_named(run, files, locked, tmp_path, command):
    folder = tmp_path / "locked"
    folder.mkdir()
    message = run(*insert_path(command, f"{folder}/new")).error()
    assert message.startswith(f"{folder}/new")
    assert f"the folder {folder} does not allow writing; name a file in another folder" in message
    assert list(folder.iterdir()) == []


def test_folders_that_fail_only_when_written_to_are_named(run, files, tmp_path, monkeypatch):
    """Some file systems report that writing is allowed although it is not."""

    def refuse(path, *_: object, **__: object):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("unkernel.data.files.os.urandom", lambda _: refuse(tmp_path / "x.uk"))
    message = run("train", "poly", "rows.svm", "-o", tmp_path / "x.uk").error()
    assert message.startswith(f"{tmp_path / 'x.uk'}: the folder {tmp_path} does not allow this; change its")


# --- An output that is an input, or another output ----------------------------------------------------


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("predict poly.uk rows.svm -o rows.svm", "rows.svm"),
        ("predict poly.uk rows.svm -o poly.uk", "poly.uk"),
        ("predict tree.uk trees.dat -o trees.dat", "trees.dat"),
        ("parse parser.uk train.conllu -o train.conllu", "train.conllu"),
        ("parse parser.uk train.conllu -o parser.uk", "parser.uk"),
        ("compile poly.uk -o poly.uk", "poly.uk"),
        ("compile poly.uk -o rows.svm --sample rows.svm", "rows.svm"),
        ("compile poly.uk -o rows.svm --trie rows.svm", "rows.svm"),
        *(
            (f"train {kind} rows.svm -o rows.svm", "rows.svm")
            for kind in ("poly", "logistic", "linear", "rank")
        ),
        ("train poly rows.svm -o trees.dat --test trees.dat", "trees.dat"),
        ("train linear rows.svm -o rows.svm --out-of-core", "rows.svm"),
        ("train linear rows.svm -o x.uk --out-of-core --cache rows.svm", "rows.svm"),
        ("train linear rows.svm -o x.uk --out-of-core --test trees.dat --cache trees.dat", "trees.dat"),
        ("train tree trees.dat -o trees.dat", "trees.dat"),
        ("train parser train.conllu -o train.conllu", "train.conllu"),
        ("train parser train.conllu -o rows.svm --dev rows.svm", "rows.svm"),
        ("train bunsetsu train.knp -o rows.svm --trie rows.svm --engine split", "rows.svm"),
        ("train chunker chunks.txt -o chunks.txt", "chunks.txt"),
        ("tune poly rows.svm -o rows.svm", "rows.svm"),
        ("tune tree trees.dat -o trees.dat", "trees.dat"),
        ("tune parser train.conllu -o train.conllu", "train.conllu"),
        ("tune parser train.conllu -o rows.svm --dev rows.svm", "rows.svm"),
    ],
)
def test_outputs_that_are_inputs_are_refused(run, files, command, name):
    assert run(*command.split()).code == 2
    if "--cache" not in command:
        command += " --force"
    assert run(*command.split()).error() == f"{name}: is also an input; give the output another name"


def test_pictures_that_would_replace_an_input_are_refused(run, files, tmp_path):
    for name in ("in.svg", "in.html"):
        path = tmp_path / name
        path.write_text(treebank(1, 0))
        message = f"{path}: is also an input; give the output another name"
        assert run("parse", "parser.uk", path, "--svg", path, "--force").error() == message
    for name, command in (
        ("in.svg", ["compile", "poly.uk", "-o", tmp_path / "x.uk", "--sample"]),
        ("in.svg", ["tune", "poly"]),
    ):
        path = tmp_path / name
        path.write_text(ROWS)
        message = f"{path}: is also an input; give the output another name"
        assert run(*command, path, "--plot", path, "--force").error() == message
    numbered = tmp_path / "000001.svg"
    numbered.write_text(treebank(1, 0))
    message = f"{tmp_path}: has an input among its pictures; name another folder"
    assert run("parse", "parser.uk", numbered, "--svg", tmp_path, "--force").error() == message


def test_an_output_that_is_the_file_of_stdin_is_refused(run, files, tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(ROWS)
    with path.open("rb") as file:
        original_fd = os.dup(0)
        os.dup2(file.fileno(), 0)
    try:
        for command in (["predict", "poly.uk", "-"], ["train", "poly", "-"], ["parse", "parser.uk"]):
            message = f"{path}: is also an input; give the output another name"
            assert run(*command, "-o", path, "--force").error() == message
    finally:
        os.dup2(original_fd, 0)
        os.close(original_fd)


@pytest.mark.parametrize(
    "command",
    [
        "parse parser.uk train.conllu -o x.svg --svg x.svg",
        "parse parser.uk train.conllu -o folder/../x.svg --svg x.svg",
        "compile poly.uk -o x.svg --plot x.svg",
        "tune poly rows.svm -o x.svg --plot x.svg",
        "train linear rows.svm -o x.svg --checkpoint x.svg",
        "train rank rows.svm -o x.svg --out-of-core --cache x.svg",
    ],
)
def test_two_outputs_of_the_same_name_are_refused(run, files, command):
    assert run(*command.split(), "--force").error() == "x.svg: is the name of two outputs; give each its own"


def test_a_model_in_place_of_the_packed_rows_is_not_replaced(run, files):
    message = "rows.svm.rows: is the name of two outputs; give each its own"
    assert run("train", "linear", "rows.svm", "-o", "rows.svm.rows", "--out-of-core").error() == message


# --- Help ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "example"),
    [
        ("predict", "such as rows.svm"),
        ("evaluate", "such as test.svm or test.conllu"),
        ("explain", "such as test.conllu"),
        ("bench", "such as questions.dat"),
        ("report", "such as report.html"),
        ("parse", "such as raw.conllu"),
        ("compile", "unkernel compile libsvm.model -o model.uk"),
        *((f"{c} {kind}", "such as train.svm") for c in ("train", "tune") for kind in ("poly", "logistic")),
        *((f"{c} {kind}", "such as train.svm") for c in ("train", "tune") for kind in ("linear", "rank")),
        *((f"{c} tree", "such as questions.dat") for c in ("train", "tune")),
        *(
            (f"{c} {kind}", "such as train.")
            for c in ("train", "tune")
            for kind in ("parser", "bunsetsu", "chunker")
        ),
    ],
)
def test_the_help_of_the_data_argument_has_an_example(run, monkeypatch, command, example):
    monkeypatch.setenv("COLUMNS", "400")
    assert example in run(*command.split(), "--help").out


@pytest.mark.parametrize("kind", ["linear", "rank"])
def test_the_help_explains_the_packed_copy(run, monkeypatch, kind):
    monkeypatch.setenv("COLUMNS", "400")
    help_text = run("train", kind, "--help").out
    assert "packed copy of rows that are read from files; by default, .rows is appended" in help_text
    assert "None is" not in help_text


def test_models_are_not_written_to_stdout(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 2:1\n", encoding="utf-8")
    assert "name a file" in run("train", "poly", "rows.svm", "-o", "-").error()
    assert not (tmp_path / "-").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_file_names_that_are_not_utf8_are_accepted(run, tmp_path):
    rows = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.svm"))
    rows.write_text("1 1:1\n-1 2:1\n1 1:1\n-1 2:1\n", encoding="utf-8")
    model = rows.with_suffix(".uk")
    assert run("train", "poly", rows, "-o", model, "-q").code == 0
    assert run("predict", model, rows).code == 0
    rows.write_text("1 1:nonsense\n", encoding="utf-8")
    assert "caf" in run("predict", model, rows).error()


@pytest.mark.parametrize("name", ["q.tsv", "q.txt", "q.dat.gz"])
@pytest.mark.parametrize("kind", ["tree", "poly"])
def test_trees_without_marks_are_refused_with_a_hint_at_the_marks(run, tmp_path, name, kind):
    """The first line of such a file does not name columns, so it is not a table of records."""
    text = b"DESC\t(S (NP a) (VP b))\nABBR\t(S (NP c) (VP d))\n" * 5
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    message = run("train", kind, tmp_path / name, "-o", tmp_path / "m.uk").error()
    assert message == (
        f"{tmp_path / name}: has a label and a tree on each line; put the trees between |BT| and |ET|, "
        "as in: DESC |BT| (S (NP a) (VP b)) |ET|"
    )


def test_headers_with_brackets_are_not_taken_for_trees(run, tmp_path):
    (tmp_path / "d.csv").write_text("height (in cm),rich\n180,yes\n150,no\n" + "170,yes\n160,no\n" * 9)
    train = ("train", "linear", tmp_path / "d.csv", "--target", "rich", "-o", tmp_path / "m.uk", "-q")
    assert run(*train).code == 0


@pytest.mark.parametrize("command", ["train", "tune"])
def test_missing_and_misspelt_kinds_are_named(run, command):
    for kind, insert_path in (
        ((), f"Say what to learn: one of {'table, ' if command == 'train' else ''}poly, "),
        (("polly",), "No such command 'polly'"),
    ):
        message = run(command, *kind).error()
        assert message.startswith(insert_path)
        assert (
            f"as in: unkernel {command} poly train.svm -o model.uk (see unkernel {command} --help)" in message
        )


def test_limits_of_numbers_are_in_the_help(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for kind in ("poly", "logistic"):
        assert "features in a conjunction, from 1 to 3." in run("train", kind, "--help").out


def test_plain_text_is_refused_as_training_data_without_misleading_hints(run, tmp_path):
    """The hint names the content of the file, and not another command."""
    (tmp_path / "s.txt").write_text("This is plain text.\nAnd more of it.\n")
    message = run("train", "text", tmp_path / "s.txt", "-o", tmp_path / "m.uk").error()
    assert "this is plain text" in message


def test_messages_list_all_commands_that_take_a_parser(run, tmp_path):
    insert_path = [["They", "saw", "it"], ["Dogs", "bark"]] * 4
    tags = [["PRON", "VERB", "PRON"], ["NOUN", "VERB"]] * 4
    bank = Treebank.from_words(
        insert_path, tags, heads=[[2, 0, 2], [2, 0]] * 4, deprels=[["a", "root", "a"], ["a", "root"]] * 4
    )
    ArcEagerParser(min_count=1, min_updates=1).fit(bank).save(tmp_path / "p.uk")
    WordClusters.learn(bank).save(tmp_path / "c.uk")
    (tmp_path / "rows").write_text("1 1:1\n")
    message = run("predict", tmp_path / "p.uk", tmp_path / "rows").error()
    assert "the commands unkernel parse, evaluate, explain, report, serve and inspect take it" in message
    message = run("predict", tmp_path / "c.uk", tmp_path / "rows").error()
    assert message.endswith("unkernel train text --clusters takes it")
