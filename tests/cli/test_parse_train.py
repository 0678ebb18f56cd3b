"""``unkernel train parser``, ``bunsetsu``, ``chunker``: all kinds of parsers, options and errors."""

from __future__ import annotations

import gzip
import re

import pytest

import unkernel
from reference.parse_corpora import MAKERS, bunsetsu, chunks, treebank
from unkernel.cli.inputs.sentences import TASKS, guess_task
from unkernel.cli.options.estimator_options import derive_options, flag
from unkernel.data import read_conllu
from unkernel.engines import load as load_classifier
from unkernel.models import registry
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker

KIND_OF = {"trees": "parser", "chunks": "chunker", "bunsetsu": "bunsetsu"}
KINDS = {"trees": "arc_eager_parser", "chunks": "chunker", "bunsetsu": "bunsetsu_parser"}


@pytest.fixture(params=MAKERS)
def files(request, tmp_path):
    """Return the task, and files for training and evaluation."""
    make = MAKERS[request.param]
    (tmp_path / "train").write_text(make(60, 0))
    (tmp_path / "dev").write_text(make(20, 1))
    return request.param, tmp_path / "train", tmp_path / "dev"


@pytest.fixture
def bank(tmp_path):
    path = tmp_path / "train.conllu"
    path.write_text(treebank(40, 0))
    return path


def test_training_measures(run, files, tmp_path):
    task, train, dev = files
    result = run("train", KIND_OF[task], train, "-o", tmp_path / "m.uk", "--dev", dev)
    assert result.code == 0, result.err
    assert result.err == ""
    assert "60 sentences" in result.out
    assert re.search(r"model of \w+ +\d+ part", result.out)
    assert re.search(r"file +[\d.]+ kB", result.out)
    assert {"trees": "nsubj", "chunks": "NP", "bunsetsu": "without a mistake"}[task] in result.out


def test_training_in_json(run, files, tmp_path):
    task, train, dev = files
    path = tmp_path / "m.uk"
    outcome = run("train", KIND_OF[task], train, "-o", path, "--dev", dev, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json["task"] == task
    assert outcome.json["kind"] == KINDS[task]
    assert outcome.json["sentences"] == 60
    assert outcome.json["model_bytes"] == path.stat().st_size
    assert sum(part["conjunctions"] or part["support_vectors"] for part in outcome.json["parts"]) > 0
    parser = unkernel.load(path)
    result = parser.evaluate(dev)
    measure = {"trees": "las", "chunks": "f1", "bunsetsu": "dependency_accuracy"}[task]
    assert outcome.json["dev"][measure] == getattr(result, measure) > 50
    assert outcome.json["features"] == parser.n_features_
    evaluated = run("evaluate", path, dev, "--json").json
    assert evaluated[measure] == getattr(result, measure)


def test_the_parser_does_not_depend_on_threads(run, files, tmp_path):
    task, train, dev = files
    for jobs in (1, 2):
        assert (
            run("train", KIND_OF[task], train, "-o", tmp_path / f"{jobs}.uk", "--jobs", jobs, "-q").code == 0
        )
    first, second = (unkernel.load(tmp_path / f"{jobs}.uk") for jobs in (1, 2))
    assert first.parameters == second.parameters
    assert first.parse(dev).to_bytes() == second.parse(dev).to_bytes()


def test_epochs_are_reported(run, bank, tmp_path):
    arguments = ("train", "parser", bank, "-o", tmp_path / "m.uk", "--dev", bank, "--epochs", "2")
    lines = run(*arguments, "--verbose").err.splitlines()
    epoch_lines = [line for line in lines if line.startswith("run")]
    expected = [f"run {run}, epoch {epoch}" for run in (1, 2) for epoch in (1, 2)]
    assert [line.split(":")[0] for line in epoch_lines] == expected
    assert all("dev UAS" in line for line in epoch_lines)
    report = run(*arguments, "--json").json
    epochs = [(epoch["run"], epoch["epoch"]) for epoch in report["epochs"]]
    assert epochs == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert len(report["best_epochs"]) == 2 and set(report["best_epochs"]) <= {1, 2}
    assert "of 2: " in run(*arguments).out and " and " in run(*arguments).out
    one_run = run(*arguments, "--runs", "1", "--verbose").err.splitlines()
    assert [line.split(":")[0] for line in one_run if line.startswith("epoch")] == ["epoch 1", "epoch 2"]
    assert re.search(r"2 and 2 of 2: .*% of sentences wrong", run(*arguments, "--beam", "2").out)
    quiet_run = run(*arguments, "--quiet")
    assert (quiet_run.code, quiet_run.out, quiet_run.err) == (0, "", "")


def test_options_reach_the_parser(run, bank, tmp_path):
    path = tmp_path / "m.uk"
    options = "--degree 1 --learner logistic --templates chang --min-count 1 --C 0.5 --tol 0.05 --seed 7 -j 1"
    assert run("train", "parser", bank, "-o", path, *options.split(), "-q").code == 0
    expected = {
        "degree": 1,
        "learner": "logistic",
        "templates": "chang",
        "min_count": 1,
        "C": 0.5,
        "tol": 0.05,
        "random_state": 7,
    }
    assert unkernel.load(path).parameters.items() >= expected.items()


OPTIONS = {
    "trees": {
        "--learner online --exploration 0.5 --min-updates 2 --split both --epochs 2 --runs 3": {
            "exploration": 0.5,
            "min_updates": 2,
            "split": "both",
            "epochs": 2,
            "runs": 3,
        },
        "--learner online --beam 3 --epochs 2": {"beam": 3, "epochs": 2},
        "--learner svm --engine bitsliced --split none": {"engine": "bitsliced", "split": "none"},
    },
    "chunks": {
        "--beam 2 --templates words --engine split": {"beam": 2, "templates": "words", "engine": "split"},
        "--gamma 0.5 --direction backward --scheme IOBES --engine inverted": {
            "gamma": 0.5,
            "direction": "backward",
            "scheme": "IOBES",
            "engine": "inverted",
        },
    },
    "bunsetsu": {
        "--min-count 2 --engine pruned --threshold 1e-9 --rare 3": {
            "min_count": 2,
            "engine": "pruned",
            "threshold": 1e-9,
            "rare": 3.0,
        },
        "--memory 20M --engine split": {"memory": "20M", "engine": "split"},
    },
}


@pytest.mark.parametrize("number", range(2))
def test_options_of_each_kind_reach_the_parser(run, files, tmp_path, number):
    task, train, dev = files
    for options, parameters in list(OPTIONS[task].items())[number : number + 1]:
        result = run("train", KIND_OF[task], train, "-o", tmp_path / "m.uk", *options.split(), "-q")
        assert result.code == 0, result.err
        parser = unkernel.load(tmp_path / "m.uk")
        assert parser.parameters.items() >= parameters.items()
        default_engine = (
            "int16" if "online" in options else "expanded"
        )  # weights of online learners have 16 bits
        engines = {name: part.engine for name, part in parser.parts_.items()}
        expected = {
            name: parameters.get("engine", default_engine if len(part.classes_) > 2 else "expanded")
            for name, part in parser.parts_.items()
        }
        assert engines == expected
        assert parser.evaluate(dev)


@pytest.mark.parametrize(
    ("kind", "estimator"),
    [("parser", ArcEagerParser), ("bunsetsu", BunsetsuParser), ("chunker", Chunker)],
)
def test_every_parameter_is_an_option(run, kind, estimator):
    """Only n_jobs and verbose are not options of the same name."""
    help_text = run("train", kind, "--help").out
    options = derive_options(estimator)
    for option in options:
        assert flag(option.name) in help_text
        assert option.help, f"{estimator.__name__} does not describe {option.parameter}"
    parameters = {option.parameter for option in options}
    assert set(estimator().get_params()) - parameters == {"n_jobs", "verbose"}


def test_a_trie_is_grown_from_sentences(run, tmp_path):
    for name, seed in (("train.knp", 0), ("more.knp", 1)):
        (tmp_path / name).write_text(bunsetsu(40, seed))
    arguments = ("train", "bunsetsu", tmp_path / "train.knp", "-o", tmp_path / "m.uk", "-q")
    trie = ("--trie", tmp_path / "more.knp", "--trie-nodes", "1k")
    assert run(*arguments).code == 0
    without_trie = unkernel.load(tmp_path / "m.uk")
    assert run(*arguments, *trie).code == 0
    with_trie = unkernel.load(tmp_path / "m.uk")
    assert without_trie.classifier_.trie is None
    assert 0 < with_trie.classifier_.trie.nodes <= 1000
    sentences = tmp_path / "more.knp"
    assert without_trie.parse(sentences).to_bytes() == with_trie.parse(sentences).to_bytes()
    for options, reason in (
        (("--trie", tmp_path / "nowhere"), "nowhere: No such file"),
        (("--trie-nodes", "3"), "--trie-nodes needs rows to grow a trie from"),
        ((*trie[:3], "many"), "--trie-nodes must be a number of nodes"),
        ((*trie, "--engine", "inverted"), "--engine inverted has no conjunctions"),
        (("--trie", tmp_path / "m.uk"), "m.uk"),
    ):
        assert reason in run(*arguments, *options).error()


def test_defaults_equal_the_defaults_of_the_parser_classes(run, bank, tmp_path):
    assert run("train", "parser", bank, "-o", tmp_path / "m.uk", "-q").code == 0
    assert ArcEagerParser.load(tmp_path / "m.uk").get_params() == ArcEagerParser().get_params()


@pytest.mark.parametrize("learner", ["svm", "logistic"])
def test_progress_of_the_solvers_is_shown(run, bank, tmp_path, learner):
    result = run("train", "parser", bank, "-o", tmp_path / "m.uk", "--learner", learner, "--verbose")
    assert result.code == 0, result.err
    assert "part 1 of 1" in result.err


def test_templates_of_bunsetsu_parsers_are_read_from_a_file(run, tmp_path):
    (tmp_path / "train.knp").write_text(bunsetsu(40, 0))
    (tmp_path / "t.txt").write_text(
        "# mine\nmodifier.last.surface\ncandidate.end # yes\n\nbetween.distance\n"
    )
    arguments = ("train", "bunsetsu", tmp_path / "train.knp", "-o", tmp_path / "m.uk", "--templates")
    assert run(*arguments, tmp_path / "t.txt", "-q").code == 0
    names = {"modifier.last.surface", "candidate.end", "between.distance"}
    assert set(unkernel.load(tmp_path / "m.uk").features.templates) == names
    assert run(*arguments, "default", "-q").code == 0
    assert "there is no template file" in run(*arguments, tmp_path / "nowhere", "-q").error()
    for text, reason in (
        ("# none\n", "t.txt: there is no template in it"),
        ("candidate.end\ncandidate.and\n", "t.txt:2:1: no such template: 'candidate.and'"),
        ("candidate.end\n\ncandidate.end\n", "t.txt:3:1: the template 'candidate.end' occurs twice"),
    ):
        (tmp_path / "t.txt").write_text(text)
        assert reason in run(*arguments, tmp_path / "t.txt", "-q").error()


def test_several_roots_are_accepted_in_conllx_only(run, tmp_path):
    two_roots = "".join(f"{i}\tw{i}\t_\tA\tA\t_\t0\tROOT\t_\t_\n" for i in (1, 2)) + "\n"
    (tmp_path / "train").write_text(treebank(30, 0) + two_roots)
    assert "root" in run("train", "parser", tmp_path / "train", "-o", tmp_path / "m.uk", "-q").error()
    trained = run("train", "parser", tmp_path / "train", "-o", tmp_path / "m.uk", "--format", "conllx", "-q")
    assert trained.code == 0, trained.err
    assert run("evaluate", tmp_path / "m.uk", tmp_path / "train", "--format", "conllx").code == 0
    assert run("parse", tmp_path / "m.uk", tmp_path / "train", "--format", "conllx", "-q").code == 0


def test_compressed_files(run, tmp_path):
    with gzip.open(tmp_path / "train.gz", "wt") as file:
        file.write(chunks(40, 0))
    result = run("train", "chunker", tmp_path / "train.gz", "-o", tmp_path / "m.uk", "--json")
    assert result.code == 0
    assert result.json["task"] == "chunks"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("parser --degree 9", r"--degree must be an int in the range \[1, 3\], got 9"),
        ("parser --epochs 0", "--epochs must be"),
        ("parser --runs 0", "--runs must be"),
        ("parser --beam 0", "--beam must be"),
        ("parser --beam 2 --learner svm", "--beam 2 adds up scores of moves, which --learner svm does not"),
        ("parser --learner svm --C 0", "--C must be"),
        ("parser --C 3", "--C is not for --learner online, but for svm and logistic"),
        ("parser --learner online --tol 0.5", "--tol is not for --learner online, but for svm and logistic"),
        ("parser --learner svm --epochs 7", "--epochs is not for --learner svm, but for online"),
        ("parser --learner logistic --epochs 7", "--epochs is not for --learner logistic, but for online"),
        ("parser --learner magic", "--learner"),
        ("parser --engine split", "--engine is not for --learner online, but for svm and logistic"),
        ("parser --learner svm --exploration 0.5", "--exploration is not for --learner svm, but for online"),
        (
            "parser --learner logistic --engine split",
            "--engine split sums over support vectors, which --learner log",
        ),
        ("parser --learner svm --degree 1 --engine inverted", "of degree 1 does not have: use --engine auto"),
        ("parser --learner svm --engine pruned", "--engine"),
        ("parser --exploration 2", "--exploration must be"),
        ("parser --scheme IOB2", "No such option: --scheme"),
        ("parser --trie train.conllu", "No such option: --trie"),
        ("bunsetsu --engine pruned", "--engine pruned needs a threshold"),
        ("bunsetsu --threshold 3", "--engine pruned needs a threshold above 0, and the exact engines"),
        ("bunsetsu --memory much", "--memory must be bytes"),
        ("bunsetsu --min-count 0", "--min-count must be"),
        ("chunker --split both", "No such option: --split"),
        (
            "parser --templates nowhere.txt",
            "there is no template file 'nowhere.txt'; built-in templates are 'default', 'rich', 'chang'",
        ),
        ("nouns", "No such command"),
        ("bunsetsu --epochs 3", "No such option: --epochs"),
        ("chunker --format conllx", "No such option: --format"),
        ("chunker --learner online", "--learner"),
        ("parser --jobs 0", "--jobs"),
        ("parser --seed -1", "--seed"),
        ("parser --dev nowhere", "nowhere: No such file"),
    ],
)
def test_bad_options_are_refused(run, bank, options, reason):
    kind, *arguments = options.split()
    result = run("train", kind, bank, "-o", bank.with_name("m.uk"), *arguments, "-q")
    assert re.search(reason, result.error())
    assert [path.name for path in bank.parent.iterdir()] == ["train.conllu"]


def test_stdin_cannot_be_used_for_two_files(run, tmp_path):
    assert "stdin" in run("train", "parser", "-", "-o", tmp_path / "m.uk", "--dev", "-").error()


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        *((kind, "", "train: there are no sentences in it") for kind in ("parser", "bunsetsu", "chunker")),
        *(
            (kind, "\n\n", "train: there are no sentences in it")
            for kind in ("parser", "bunsetsu", "chunker")
        ),
        ("parser", "One day, a letter came.\nIt was long.\n", "train:1"),
        ("parser", "\none\ntwo\n", "train:2"),
        ("parser", "1\ta\t_\tX\t_\t_\t1\troot\t_\t_\n\n", ":1:"),
        ("parser", "1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n\n", "train:1"),
        ("parser", "# a comment\n# and another\n\n", "train"),
        ("parser", "# a\n1\tw\t_\tX\n\n", "train:2"),
        ("chunker", "One day, a letter came.\nIt was long.\n", "train:2:13: 3 columns instead of 5"),
        ("chunker", "# a b c\nfour words a line\nand four here too\n", "train:1"),
        ("chunker", "a DT B-NP\nb NN I-NP\nc NN nonsense\n\n", "train:3:6: 'nonsense' is not a chunk tag"),
        ("chunker", "a DT B-NP\nb NN\n\n", "train:2"),
        ("bunsetsu", "* 0 -1D\nEOS\n", "train:2"),
        ("bunsetsu", "One day, a letter came.\n", "train:"),
    ],
)
def test_bad_training_data_is_refused(run, tmp_path, kind, text, reason):
    (tmp_path / "train").write_text(text)
    assert reason in run("train", kind, tmp_path / "train", "-o", tmp_path / "m.uk", "-q").error()
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


@pytest.mark.parametrize("kind", ["parser", "bunsetsu", "chunker"])
def test_training_files_of_another_kind_of_parser_are_named(run, files, tmp_path, kind):
    task, train, _ = files
    if kind == KIND_OF[task]:
        return
    message = run("train", kind, train, "-o", tmp_path / "m.uk", "-q").error()
    assert f"unkernel train {KIND_OF[task]}" in message
    assert not (tmp_path / "m.uk").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no sentences"),
        ("# a\n# b\n", "no sentences"),
        ("# a\n1 w _ X _ _ 0 root _ _\n\n", "train.conllu:2"),
    ],
)
def test_bad_treebanks_are_recognised_by_the_name_of_the_file(run, tmp_path, text, reason):
    (tmp_path / "train.conllu").write_text(text)
    result = run("train", "parser", tmp_path / "train.conllu", "-o", tmp_path / "m.uk", "--epochs", "3", "-q")
    assert reason in result.error()


def test_outputs_that_cannot_be_written(run, bank, tmp_path):
    for model in (bank, tmp_path, tmp_path / "nowhere/m.uk"):
        assert run("train", "parser", bank, "-o", model, "-q").code == 2
    assert read_conllu(bank)


def test_the_kind_of_parser_is_guessed_from_the_file():
    for task, make in MAKERS.items():
        assert guess_task(make(3, 0).encode()).name == task
        assert guess_task(b"\xef\xbb\xbf" + make(3, 0).replace("\n", "\r\n").encode()).name == task
        assert guess_task(make(200, 0).encode()[:3000]).name == task
    assert guess_task(b"1-2\tdon't" + 8 * b"\t_" + b"\n").name == "trees"
    assert guess_task(b"# words and tags\nword TAG\nother TAG\n") is None
    assert guess_task(b"# one here\n# two here\n") is None
    assert guess_task(b"# # B-NP\n5 CD I-NP\n") is TASKS["chunks"]  # an ordinary word


# --- Trained parsers in other commands -----------------------------------------------------------------


@pytest.fixture
def parser_file(run, files, tmp_path):
    task, train, _ = files
    assert run("train", KIND_OF[task], train, "-o", tmp_path / "m.uk", "-q").code == 0
    return task, tmp_path / "m.uk"


def test_inspect(run, parser_file):
    task, path = parser_file
    result = run("inspect", path)
    assert result.code == 0
    assert registry.list_kinds()[KINDS[task]].description in result.out
    for words in ("templates", "parts", "conjunctions", "in the file"):
        assert words in result.out
    report = run("inspect", path, "--json").json
    assert report["kind"] == KINDS[task]
    assert report["file_bytes"] == path.stat().st_size
    assert {part["name"] for part in report["parts"]} == set(unkernel.load(path).parts_)
    assert "this is a parser" in run("inspect", path, "--features", "names.txt").error()


def test_commands_for_rows_refuse_parsers_by_name(run, parser_file, test_file, tmp_path):
    task, path = parser_file
    description = registry.list_kinds()[KINDS[task]].description
    for command in (
        ("predict", path, test_file),
        ("bench", path, test_file),
        ("compile", path, "-o", tmp_path / "x.uk"),
    ):
        message = run(*command).error()
        assert description in message
        assert "unkernel parse, evaluate" in message
    for reader in (load_classifier, unkernel.read_model, unkernel.compile):
        with pytest.raises(
            unkernel.FormatError,
            match=f"{description}, and not a model of rows or trees: unkernel.load reads it",
        ):
            reader(path)


def test_classifiers_are_refused_as_parsers(run, model_file, test_file):
    assert "unkernel predict" in run("parse", model_file, test_file).error()


def test_truncated_parsers_are_refused(run, parser_file, tmp_path):
    _, path = parser_file
    data = path.read_bytes()
    for share in (0.001, 0.5, 0.999):
        path.write_bytes(data[: int(share * len(data))])
        assert str(path) in run("inspect", path).error()
        assert str(path) in run("parse", path, tmp_path / "train").error()


def test_evaluation_prints_tables(run, files, tmp_path):
    task, train, dev = files
    assert run("train", KIND_OF[task], train, "-o", tmp_path / "m.uk", "-q").code == 0
    table = run("evaluate", tmp_path / "m.uk", dev).out
    table_of_labels = run("evaluate", tmp_path / "m.uk", dev, "--labels").out
    assert "sentences/s" in table
    if task == "trees":
        assert re.search("UAS.*without punctuation", table)
        assert ("nsubj" in table, "nsubj" in table_of_labels) == (False, True)
    elif task == "chunks":
        assert re.search(r"NP +\d+ +[\d.]+ %", table)
    else:
        assert re.search(r"dependencies +[\d.]+ % of \d+", table)


def test_evaluation_needs_gold_annotation(run, files, tmp_path):
    task, train, _ = files
    assert run("train", KIND_OF[task], train, "-o", tmp_path / "m.uk", "-q").code == 0
    (tmp_path / "raw").write_text({"trees": "1\ta" + 8 * "\t_" + "\n\n", "chunks": "a\n\n"}.get(task, "no"))
    assert str(tmp_path / "raw") in run("evaluate", tmp_path / "m.uk", tmp_path / "raw").error()


def test_help(run):
    for command in (
        ("train", "parser"),
        ("train", "bunsetsu"),
        ("train", "chunker"),
        ("parse",),
        ("evaluate",),
    ):
        result = run(*command, "--help")
        assert result.code == 0
        assert f"$ unkernel {' '.join(command)}" in result.out
    assert "--help)" in run("parse").error()
