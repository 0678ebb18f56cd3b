"""``unkernel parse train``, ``eval`` and ``inspect``: every kind of parser, every option, every refusal."""

from __future__ import annotations

import gzip
import re

import pytest

import unkernel
from reference.parse_corpora import MAKERS, bunsetsu, chunks, treebank
from unkernel.cli.inputs.sentences import TASKS, guess
from unkernel.cli.learners.base import flag, parameter_options
from unkernel.data import read_conllu
from unkernel.engines import load as load_classifier
from unkernel.models import registry
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker

KINDS = {"trees": "arc_eager_parser", "chunks": "chunker", "bunsetsu": "bunsetsu_parser"}


@pytest.fixture(params=MAKERS)
def files(request, tmp_path):
    """The task, and files to train and to measure on."""
    make = MAKERS[request.param]
    (tmp_path / "train").write_text(make(60, 0))
    (tmp_path / "dev").write_text(make(20, 1))
    return request.param, tmp_path / "train", tmp_path / "dev"


@pytest.fixture
def bank(tmp_path):
    path = tmp_path / "train.conllu"
    path.write_text(treebank(40, 0))
    return path


def test_training_guesses_the_task_and_measures(run, files, tmp_path):
    task, train, dev = files
    ran = run("parse", "train", tmp_path / "m.uk", train, "--dev", dev)
    assert ran.code == 0, ran.err
    assert f"--task {task}" in ran.err
    assert "60 sentences" in ran.out
    assert re.search(r"model of \w+ +\d+ part", ran.out)
    assert re.search(r"file +[\d.]+ kB", ran.out)
    assert {"trees": "nsubj", "chunks": "NP", "bunsetsu": "without a mistake"}[task] in ran.out


def test_training_in_json(run, files, tmp_path):
    task, train, dev = files
    path = tmp_path / "m.uk"
    ran = run("parse", "train", path, train, "--dev", dev, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["task"] == task
    assert ran.json["kind"] == KINDS[task]
    assert ran.json["sentences"] == 60
    assert ran.json["model_bytes"] == path.stat().st_size
    assert sum(part["conjunctions"] or part["support_vectors"] for part in ran.json["parts"]) > 0
    parser = unkernel.load(path)
    result = parser.evaluate(dev)
    measure = {"trees": "las", "chunks": "f1", "bunsetsu": "dependency_accuracy"}[task]
    assert ran.json["dev"][measure] == getattr(result, measure) > 50
    assert ran.json["features"] == parser.n_features_
    evaluated = run("parse", "eval", path, dev, "--json").json
    assert evaluated[measure] == getattr(result, measure)


def test_the_parser_does_not_depend_on_threads(run, files, tmp_path):
    _, train, dev = files
    for jobs in (1, 2):
        assert run("parse", "train", tmp_path / f"{jobs}.uk", train, "--jobs", jobs, "-q").code == 0
    one, two = (unkernel.load(tmp_path / f"{jobs}.uk") for jobs in (1, 2))
    assert one.get_params() == two.get_params()
    assert one.parse(dev).to_bytes() == two.parse(dev).to_bytes()


def test_epochs_are_told(run, bank, tmp_path):
    arguments = ("parse", "train", tmp_path / "m.uk", bank, "--dev", bank, "--epochs", "2")
    told = run(*arguments, "--verbose").err.splitlines()
    of_epochs = [line for line in told if line.startswith("run")]
    expected = [f"run {run}, epoch {epoch}" for run in (1, 2) for epoch in (1, 2)]
    assert [line.split(":")[0] for line in of_epochs] == expected
    assert all("dev UAS" in line for line in of_epochs)
    described = run(*arguments, "--json").json
    assert [(seen["run"], seen["epoch"]) for seen in described["epochs"]] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert len(described["best_epochs"]) == 2 and set(described["best_epochs"]) <= {1, 2}
    assert "of 2: " in run(*arguments).out and " and " in run(*arguments).out
    alone = run(*arguments, "--runs", "1", "--verbose").err.splitlines()
    assert [line.split(":")[0] for line in alone if line.startswith("epoch")] == ["epoch 1", "epoch 2"]
    quiet = run(*arguments, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_options_reach_the_parser(run, bank, tmp_path):
    path = tmp_path / "m.uk"
    options = "--degree 1 --learner logistic --templates chang --minimum 1 --C 0.5 --tol 0.05 --seed 7 -j 1"
    assert run("parse", "train", path, bank, *options.split(), "-q").code == 0
    chosen = {
        "degree": 1,
        "learner": "logistic",
        "templates": "chang",
        "minimum": 1,
        "C": 0.5,
        "tol": 0.05,
        "random_state": 7,
    }
    assert unkernel.load(path).get_params().items() >= chosen.items()


OPTIONS = {
    "trees": {
        "--learner online --exploration 0.5 --minimum-updates 2 --split both --epochs 2 --runs 3": {
            "exploration": 0.5,
            "minimum_updates": 2,
            "split": "both",
            "epochs": 2,
            "runs": 3,
        },
        "--learner svm --engine bitsliced --split none": {"engine": "bitsliced", "split": "none"},
    },
    "chunks": {
        "--gamma 0.5 --direction backward --scheme IOBES --engine inverted": {
            "gamma": 0.5,
            "direction": "backward",
            "scheme": "IOBES",
            "engine": "inverted",
        },
    },
    "bunsetsu": {
        "--minimum 2 --engine pruned --threshold 1e-9 --rare 3": {
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
    for options, chosen in list(OPTIONS[task].items())[number : number + 1]:
        ran = run("parse", "train", tmp_path / "m.uk", train, *options.split(), "-q")
        assert ran.code == 0, ran.err
        parser = unkernel.load(tmp_path / "m.uk")
        assert parser.get_params().items() >= chosen.items()
        usual = "int16" if "online" in options else "expanded"  # online learners have weights of 16 bits
        engines = {name: part.engine for name, part in parser.parts_.items()}
        expected = {
            name: chosen.get("engine", usual if len(part.classes_) > 2 else "expanded")
            for name, part in parser.parts_.items()
        }
        assert engines == expected
        assert parser.evaluate(dev)


def test_every_parameter_is_an_option(run):
    """But for those that make no sense on a command line."""
    shown = run("parse", "train", "--help").out
    for estimator in (ArcEagerParser, BunsetsuParser, Chunker):
        for option in parameter_options(estimator).values():
            assert flag(option) in shown


def test_a_trie_is_grown_from_sentences(run, tmp_path):
    for name, seed in (("train.knp", 0), ("more.knp", 1)):
        (tmp_path / name).write_text(bunsetsu(40, seed))
    arguments = ("parse", "train", tmp_path / "m.uk", tmp_path / "train.knp", "-q")
    trie = ("--trie", tmp_path / "more.knp", "--trie-nodes", "1k")
    assert run(*arguments).code == 0
    plain = unkernel.load(tmp_path / "m.uk")
    assert run(*arguments, *trie).code == 0
    grown = unkernel.load(tmp_path / "m.uk")
    assert plain.classifier_.trie is None
    assert 0 < grown.classifier_.trie.nodes <= 1000
    more = tmp_path / "more.knp"
    assert plain.parse(more).to_bytes() == grown.parse(more).to_bytes()
    for options, reason in (
        (("--trie", tmp_path / "nowhere"), "nowhere: No such file"),
        (("--trie-nodes", "3"), "--trie-nodes needs rows to grow a trie from"),
        ((*trie[:3], "many"), "--trie-nodes must be a number of nodes"),
        ((*trie, "--engine", "inverted"), "--engine inverted has no conjunctions"),
        (("--trie", tmp_path / "m.uk"), "m.uk"),
    ):
        assert reason in run(*arguments, *options).error()


def test_defaults_are_the_parsers_own(run, bank, tmp_path):
    assert run("parse", "train", tmp_path / "m.uk", bank, "-q").code == 0
    assert unkernel.load(tmp_path / "m.uk").get_params() == ArcEagerParser().get_params()


@pytest.mark.parametrize("learner", ["svm", "logistic"])
def test_the_solvers_are_watched(run, bank, tmp_path, learner):
    ran = run("parse", "train", tmp_path / "m.uk", bank, "--learner", learner, "--verbose")
    assert ran.code == 0, ran.err
    assert "part 1 of 1" in ran.err


def test_templates_of_bunsetsu_are_names_in_a_file(run, tmp_path):
    (tmp_path / "train.knp").write_text(bunsetsu(40, 0))
    (tmp_path / "t.txt").write_text(
        "# mine\nmodifier.last.surface\ncandidate.end # yes\n\nbetween.distance\n"
    )
    arguments = ("parse", "train", tmp_path / "m.uk", tmp_path / "train.knp", "--templates")
    assert run(*arguments, tmp_path / "t.txt", "-q").code == 0
    names = {"modifier.last.surface", "candidate.end", "between.distance"}
    assert set(unkernel.load(tmp_path / "m.uk")._features.templates) == names
    assert run(*arguments, "default", "-q").code == 0
    assert "there is no template file" in run(*arguments, tmp_path / "nowhere", "-q").error()
    for text, reason in (
        ("# none\n", "t.txt: there is no template in it"),
        ("candidate.end\ncandidate.and\n", "t.txt:2: no such template: 'candidate.and'"),
        ("candidate.end\n\ncandidate.end\n", "t.txt:3: the template 'candidate.end' comes twice"),
    ):
        (tmp_path / "t.txt").write_text(text)
        assert reason in run(*arguments, tmp_path / "t.txt", "-q").error()


def test_conllx_may_have_several_roots(run, tmp_path):
    two_roots = "".join(f"{i}\tw{i}\t_\tA\tA\t_\t0\tROOT\t_\t_\n" for i in (1, 2)) + "\n"
    (tmp_path / "train").write_text(treebank(30, 0) + two_roots)
    assert "root" in run("parse", "train", tmp_path / "m.uk", tmp_path / "train", "-q").error()
    trained = run("parse", "train", tmp_path / "m.uk", tmp_path / "train", "--format", "conllx", "-q")
    assert trained.code == 0, trained.err
    assert run("parse", "eval", tmp_path / "m.uk", tmp_path / "train", "--format", "conllx").code == 0
    assert run("parse", "run", tmp_path / "m.uk", tmp_path / "train", "--format", "conllx", "-q").code == 0


def test_compressed_files(run, tmp_path):
    with gzip.open(tmp_path / "train.gz", "wt") as file:
        file.write(chunks(40, 0))
    ran = run("parse", "train", tmp_path / "m.uk", tmp_path / "train.gz")
    assert ran.code == 0
    assert "--task chunks" in ran.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--degree 9", r"--degree must be an int in the range \[1, 3\], got 9"),
        ("--epochs 0", "--epochs must be"),
        ("--runs 0", "--runs must be"),
        ("--learner svm --C 0", "--C must be"),
        ("--C 3", "--C is not for --learner online, but for svm and logistic"),
        ("--learner online --tol 0.5", "--tol is not for --learner online, but for svm and logistic"),
        ("--learner svm --epochs 7", "--epochs is not for --learner svm, but for online"),
        ("--learner logistic --epochs 7", "--epochs is not for --learner logistic, but for online"),
        ("--learner magic", "--learner"),
        ("--engine split", "--engine is not for --learner online, but for svm and logistic"),
        ("--learner svm --exploration 0.5", "--exploration is not for --learner svm, but for online"),
        (
            "--learner logistic --engine split",
            "--engine split sums over support vectors, which --learner log",
        ),
        ("--learner svm --degree 1 --engine inverted", "of degree 1 does not have: use --engine auto"),
        ("--learner svm --engine pruned", "--engine must be"),
        ("--exploration 2", "--exploration must be"),
        ("--scheme IOB2", "--scheme is not for --task trees, but for chunks"),
        ("--trie train.conllu", "--trie is not for --task trees, but for bunsetsu"),
        ("--task bunsetsu --engine pruned", "--engine pruned needs a threshold"),
        ("--task bunsetsu --threshold 3", "--engine pruned needs a threshold above 0, and the exact engines"),
        ("--task bunsetsu --memory much", "--memory must be bytes"),
        ("--task bunsetsu --minimum 0", "--minimum must be"),
        ("--task chunks --split both", "--split is not for --task chunks, but for trees"),
        (
            "--templates nowhere.txt",
            "there is no template file 'nowhere.txt'; ours are 'default', 'rich', 'chang'",
        ),
        ("--task nouns", "--task"),
        ("--task bunsetsu --epochs 3", "--epochs is not for --task bunsetsu, but for trees"),
        ("--task chunks --format conllx", "--format is for dependency trees, and not for chunks"),
        ("--task chunks --learner online", "--learner must be"),
        ("--jobs 0", "--jobs"),
        ("--seed -1", "--seed"),
        ("--dev nowhere", "nowhere: No such file"),
    ],
)
def test_options_that_are_bad(run, bank, options, reason):
    ran = run("parse", "train", bank.with_name("m.uk"), bank, *options.split(), "-q")
    assert re.search(reason, ran.error())
    assert [path.name for path in bank.parent.iterdir()] == ["train.conllu"]


def test_stdin_can_be_read_only_once(run, tmp_path):
    assert "stdin" in run("parse", "train", tmp_path / "m.uk", "-", "--dev", "-").error()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "train: the file is empty"),
        ("\n\n", "train: cannot tell what it holds: not CoNLL-U"),
        (
            "One day, a letter came.\nIt was long.\n",
            "train:2: cannot tell what it holds: 3 columns, and line 1",
        ),
        ("\none\ntwo\n", "train:2: cannot tell what it holds: a single column; "),
        ("1\ta\t_\tX\t_\t_\t1\troot\t_\t_\n\n", ":1:"),
        ("1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n\n", "train:1"),
        ("# a comment\n# and another\n\n", "train:1: cannot tell what it holds: nothing but comments; "),
        ("# one here\n# two here\n# three four\n", "train:1: cannot tell what it holds: nothing but comm"),
        (
            "# a b c\nfour words a line\nand four here too\n",
            "train:1: cannot tell what it holds: 'c' is no tag",
        ),
        ("# a\n1\tw\t_\tX\n\n", "train:2: cannot tell what it holds: 4 columns, where CoNLL-U has 10; "),
        ("a DT B-NP\nb NN I-NP\nc NN nonsense\n\n", "train:3:6: 'nonsense' is no tag of a chunk"),
        ("a DT B-NP\nb NN\n\n", "train:2: cannot tell what it holds: 2 columns, and line 1 has 3; "),
        ("* 0 -1D\nEOS\n", "train:2"),
    ],
)
def test_training_data_that_is_bad(run, tmp_path, text, reason):
    (tmp_path / "train").write_text(text)
    assert reason in run("parse", "train", tmp_path / "m.uk", tmp_path / "train", "-q").error()
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty"),
        ("# a\n# b\n", "no sentences"),
        ("# a\n1 w _ X _ _ 0 root _ _\n\n", "train.conllu:2"),
    ],
)
def test_a_name_tells_of_trees(run, tmp_path, text, reason):
    (tmp_path / "train.conllu").write_text(text)
    ran = run("parse", "train", tmp_path / "m.uk", tmp_path / "train.conllu", "--epochs", "3", "-q")
    assert reason in ran.error()


def test_places_that_cannot_be_written(run, bank, tmp_path):
    for model in (bank, tmp_path, tmp_path / "nowhere/m.uk"):
        assert run("parse", "train", model, bank, "-q").code == 2
    assert read_conllu(bank)


def test_guessing():
    for task, make in MAKERS.items():
        assert guess(make(3, 0).encode()).name == task
        assert guess(b"\xef\xbb\xbf" + make(3, 0).replace("\n", "\r\n").encode()).name == task
        assert guess(make(200, 0).encode()[:3000]).name == task
    assert guess(b"1-2\tdon't" + 8 * b"\t_" + b"\n").name == "trees"
    assert guess(b"# words and tags\nword TAG\nother TAG\n") is None
    assert guess(b"# one here\n# two here\n") is None
    assert guess(b"# # B-NP\n5 CD I-NP\n") is TASKS["chunks"]  # a word like others


# --- What a file is -----------------------------------------------------------------------------------


@pytest.fixture
def parser_file(run, files, tmp_path):
    task, train, _ = files
    assert run("parse", "train", tmp_path / "m.uk", train, "-q").code == 0
    return task, tmp_path / "m.uk"


def test_inspect(run, parser_file):
    task, path = parser_file
    ran = run("inspect", path)
    assert ran.code == 0
    assert registry.registered()[KINDS[task]].description in ran.out
    for words in ("templates", "parts", "conjunctions", "in the file"):
        assert words in ran.out
    described = run("inspect", path, "--json").json
    assert described["kind"] == KINDS[task]
    assert described["file_bytes"] == path.stat().st_size
    assert {part["name"] for part in described["parts"]} == set(unkernel.load(path).parts_)
    assert "this is a parser" in run("inspect", path, "--features", "names.txt").error()


def test_commands_for_rows_say_that_it_is_a_parser(run, parser_file, test_file, tmp_path):
    task, path = parser_file
    description = registry.registered()[KINDS[task]].description
    for command in (
        ("predict", path, test_file),
        ("bench", path, test_file),
        ("compile", path, tmp_path / "x.uk"),
    ):
        message = run(*command).error()
        assert description in message
        assert "unkernel parse run" in message
    for reader in (load_classifier, unkernel.read_model, unkernel.compile):
        with pytest.raises(
            unkernel.FormatError,
            match=f"{description}, and not a model of rows or trees: unkernel.load reads it",
        ):
            reader(path)


def test_a_classifier_is_no_parser(run, model_file, test_file):
    for command in ("run", "eval"):
        assert "unkernel predict" in run("parse", command, model_file, test_file).error()


def test_a_parser_that_was_cut_short(run, parser_file, tmp_path):
    _, path = parser_file
    data = path.read_bytes()
    for share in (0.001, 0.5, 0.999):
        path.write_bytes(data[: int(share * len(data))])
        assert str(path) in run("inspect", path).error()
        assert str(path) in run("parse", "run", path, tmp_path / "train").error()


def test_eval_tables(run, files, tmp_path):
    task, train, dev = files
    assert run("parse", "train", tmp_path / "m.uk", train, "-q").code == 0
    plain = run("parse", "eval", tmp_path / "m.uk", dev).out
    labelled = run("parse", "eval", tmp_path / "m.uk", dev, "--labels").out
    assert "sentences/s" in plain
    if task == "trees":
        assert re.search("UAS.*without punctuation", plain)
        assert ("nsubj" in plain, "nsubj" in labelled) == (False, True)
    elif task == "chunks":
        assert re.search(r"NP +\d+ +[\d.]+ %", plain)
    else:
        assert re.search(r"dependencies +[\d.]+ % of \d+", plain)


def test_eval_needs_the_right_answers(run, files, tmp_path):
    task, train, _ = files
    assert run("parse", "train", tmp_path / "m.uk", train, "-q").code == 0
    (tmp_path / "raw").write_text({"trees": "1\ta" + 8 * "\t_" + "\n\n", "chunks": "a\n\n"}.get(task, "no"))
    assert str(tmp_path / "raw") in run("parse", "eval", tmp_path / "m.uk", tmp_path / "raw").error()


def test_help(run):
    for command in ((), ("train",), ("run",), ("eval",)):
        ran = run("parse", *command, *(["--help"] if command else []))
        assert ran.code == 0
        assert "unkernel parse" in ran.out
    assert "--help)" in run("parse", "fly").error()
