"""``unkernel tune`` and ``--cv``: grids, folds, paths of C, the table, the plot and the best model."""

from __future__ import annotations

import importlib.util
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from reference.parse_corpora import MAKERS
from unkernel import PolySVC, load, read_svmlight, write_svmlight
from unkernel.cli.inputs.sentences import TASKS
from unkernel.cli.learners import LEARNERS, cross_validation
from unkernel.cli.learners.cross_validation import group_paths
from unkernel.cli.learners.parameter_search import Search
from unkernel.cli.learners.parser_search import PARSER_LEARNERS
from unkernel.cli.options.estimator_options import derive_options
from unkernel.cli.options.value_grids import expand_grid, parse_values
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker

OPTIONS = {option.name: option for option in derive_options(PolySVC)}


@pytest.mark.parametrize(
    ("option", "text", "values"),
    [
        ("degree", "1,2,3", [1, 2, 3]),
        ("degree", "1:3", [1, 2, 3]),
        ("degree", "2,1:3", [2, 1, 3]),
        ("C", "0.001:10", [0.001, 0.01, 0.1, 1.0, 10.0]),
        ("C", "1:100:5", [1.0, 3.16228, 10.0, 31.6228, 100.0]),
        ("C", "0.5, 2", [0.5, 2.0]),
        ("C", "1:5", [1.0, 5.0]),
        ("gamma", "scale,0.1", ["scale", 0.1]),
        ("gamma", "0.01:1", [0.01, 0.1, 1.0]),
        ("loss", "hinge,squared_hinge", ["hinge", "squared_hinge"]),
    ],
)
def test_values(option, text, values):
    assert parse_values(OPTIONS[option], text) == values


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("degree", "two"),
        ("degree", "3:1"),
        ("degree", "1:2:3"),
        ("degree", "1:100000"),
        ("C", "0:10"),
        ("C", "10:1"),
        ("C", "1:inf"),
        ("C", "1:10:1"),
        ("C", "1:10:5:2"),
        ("C", ""),
        ("loss", "zero_one"),
    ],
)
def test_values_that_are_refused(option, text):
    with pytest.raises(ValueError, match=f"--{option} must be"):
        parse_values(OPTIONS[option], text)


def test_combinations():
    assert len(expand_grid({"degree": [1, 2], "C": [1.0, 2.0, 3.0]})) == 6
    with pytest.raises(ValueError, match="at most 1,000 settings"):
        expand_grid({"degree": list(range(50)), "C": list(range(50))})


def test_settings_are_grouped_into_paths_of_ascending_cost():
    settings = [{"degree": d, "C": c} for c in (10.0, 0.1, 1.0) for d in (1, 2)]
    paths = group_paths(settings, warm=True)
    assert [[parameters["C"] for parameters in path] for path in paths] == [[0.1, 1.0, 10.0]] * 2
    assert [{parameters["degree"] for parameters in path} for path in paths] == [{1}, {2}]
    assert group_paths(settings, warm=False) == [[setting] for setting in settings]


def test_cross_validation_equals_scikit_learn(run, train_file):
    """With a single value of C there are no warm starts, so the measures are exactly scikit-learn's."""
    output = run("tune", "poly", train_file, "--degree", "1,2", "--C", "0.5", "--cv", "4", "--json").json
    X, y = read_svmlight(train_file)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    for setting in output["settings"]:
        estimator = PolySVC(degree=setting["degree"], C=0.5, random_state=0)
        scores = cross_val_score(estimator, X, y, cv=folds)
        assert setting["measures"]["accuracy"]["mean"] == pytest.approx(scores.mean())
        assert setting["measures"]["accuracy"]["std"] == pytest.approx(scores.std())


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_warm_paths_have_the_measures_of_cold_fits(run, train_file, jobs):
    command = ["tune", "poly", train_file, "--cv", "3", "--tol", "1e-7", "--json", "-j", jobs]
    warm = run(*command, "--C", "0.01:1").json
    for setting in warm["settings"]:
        cold = run(*command, "--C", setting["C"], "--degree", "2").json["settings"]
        assert cold[0]["measures"]["accuracy"] == setting["measures"]["accuracy"]


def test_the_best_setting_is_trained_on_all_rows(run, train_file, test_file, tmp_path):
    options = ["--degree", "1,2", "--C", "0.1:10", "--cv", "3", "--json", "-o", tmp_path / "best.uk"]
    output = run("tune", "poly", train_file, *options).json
    assert output["best_parameters"]["degree"] == 2
    assert output["best_options"].startswith("--degree 2 --C ")
    assert len(output["settings"]) == 6
    assert output["settings"][output["best"]]["measures"]["accuracy"]["mean"] == max(
        setting["measures"]["accuracy"]["mean"] for setting in output["settings"]
    )
    best = PolySVC(**output["best_parameters"], random_state=0)
    X, y = read_svmlight(train_file)
    expected = best.fit(X, y.astype(int)).decision_function(X)
    np.testing.assert_array_equal(load(tmp_path / "best.uk").decision_function(X), expected)
    assert run("predict", tmp_path / "best.uk", test_file, "--json").json["accuracy"] == 1.0


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_the_text_output_is_as_expected(run, train_file, tmp_path):
    result = run("tune", "poly", train_file, "--degree", "1,2", "--cv", "3", "--plot", tmp_path / "t.svg")
    assert (result.code, result.err) == (0, "")
    for words in ("3 folds", "degree", "accuracy", "ROC area", "←", "best", "--degree 2", "t.svg"):
        assert words in result.out
    plot = (tmp_path / "t.svg").read_text()
    assert plot.startswith("<?xml")
    result = run("tune", "poly", train_file, "--cv", "2", "-q")
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize(
    ("kind", "options", "criterion"),
    [
        ("logistic", "--C 0.1,1 --by log_loss", "log_loss"),
        ("linear", "--loss hinge,squared_hinge --by roc_area", "roc_area"),
        ("linear", "--no-intercept --C 0.1,1", "accuracy"),
    ],
)
def test_every_kind_of_rows(run, linear_files, kind, options, criterion):
    output = run("tune", kind, linear_files[0], *options.split(), "--cv", "3", "--json").json
    assert (output["criterion"], output["folds"], len(output["settings"])) == (criterion, 3, 2)
    means = [setting["measures"][criterion]["mean"] for setting in output["settings"]]
    best = min(means) if criterion == "log_loss" else max(means)
    assert means[output["best"]] == best


def test_folds_do_not_divide_queries(run, rank_files):
    options = ["--C", "0.1,1", "--cv", "5", "--by", "ndcg", "--ndcg-at", "3", "--json"]
    output = run("tune", "rank", rank_files[0], *options).json
    assert output["criterion"] == "ndcg"
    assert all(0.5 < setting["measures"]["ndcg"]["mean"] <= 1.0 for setting in output["settings"])
    assert "fewer queries than the 40 folds" in run("tune", "rank", rank_files[0], "--cv", "40").error()


def test_two_classes_that_are_texts(run, tmp_path):
    trees = tmp_path / "trees.dat"
    lines = ["yes |BT| (S (NP a)) |ET|", "no |BT| (S (VP go)) |ET|"] * 8
    trees.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run("train", "tree", trees, "-o", tmp_path / "m.uk", "--cv", "3").code == 0
    output = run("tune", "tree", trees, "--C", "1,10", "--cv", "3", "--json").json
    assert output["settings"][0]["measures"]["accuracy"]["mean"] == 1.0
    assert "positive_class" not in output["settings"][0]["measures"]


def test_trees(run, golden):
    options = ["--kernel", "sst,st", "--C", "1", "--cv", "2", "--json"]
    output = run("tune", "tree", golden / "trees.train.dat", *options).json
    assert [setting["kernel"] for setting in output["settings"]] == ["sst", "st"]


# --- Parsers ------------------------------------------------------------------------------------------

PARSERS = {
    "parser": ("trees", ArcEagerParser, "--epochs 1,2 --runs 1", "las"),
    "bunsetsu": ("bunsetsu", BunsetsuParser, "--degree 1,2", "dependency_accuracy"),
    "chunker": ("chunks", Chunker, "--degree 1 --C 0.1,1", "f1"),
}


@pytest.fixture(params=PARSERS)
def sentences(request, tmp_path):
    """Return a kind of parser, with files for training and evaluation."""
    make = MAKERS[PARSERS[request.param][0]]
    (tmp_path / "train").write_text(make(30, 0))
    (tmp_path / "dev").write_text(make(15, 1))
    return request.param, tmp_path / "train", tmp_path / "dev"


def test_parsers_are_measured_on_other_sentences(run, sentences, tmp_path):
    kind, train, dev = sentences
    task, estimator, options, criterion = PARSERS[kind]
    out = ["-o", tmp_path / "best.uk", "--json"]
    output = run("tune", kind, train, "--dev", dev, *options.split(), *out).json
    read = TASKS[task].read
    for setting in output["settings"]:
        parameters = {name: setting[name] for name in output["best_parameters"]}
        parser = estimator(**parameters).fit(read(train))
        measured = setting["measures"][criterion]
        assert measured == {"mean": getattr(parser.evaluate(read(dev)), criterion), "std": None}
    means = [setting["measures"][criterion]["mean"] for setting in output["settings"]]
    assert (output["criterion"], output["folds"], output["sentences"]) == (criterion, 1, 30)
    assert means[output["best"]] == max(means)
    best = estimator(**output["best_parameters"]).fit(read(train))
    expected = best.parse(read(dev)).to_bytes()
    assert load(tmp_path / "best.uk").parse(read(dev)).to_bytes() == expected


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_parsers_are_cross_validated_over_sentences(run, sentences, jobs):
    kind, train, _ = sentences
    task, estimator, options, criterion = PARSERS[kind]
    command = ["tune", kind, train, *options.split(), "--cv", "3", "--seed", "4", "-j", jobs]
    output = run(*command, "--json").json
    corpus, values = TASKS[task].read(train), []
    for training, held_out in KFold(3, shuffle=True, random_state=4).split(np.zeros(len(corpus))):
        parser = estimator(**output["best_parameters"], random_state=4).fit(corpus[training])
        values.append(getattr(parser.evaluate(corpus[held_out]), criterion))
    measured = output["settings"][output["best"]]["measures"][criterion]
    assert measured["mean"] == pytest.approx(np.mean(values))
    assert measured["std"] == pytest.approx(np.std(values))
    result = run(*command)
    assert (result.code, result.err) == (0, "")
    assert "measured on 3 folds" in result.out
    assert " % ± " in result.out


@pytest.mark.parametrize(
    ("kind", "options", "parameter", "values"),
    [
        ("parser", "--runs 1", "epochs", [5, 10, 20]),
        ("parser", "--learner svm", "C", [0.01, 0.1, 1.0]),
        ("bunsetsu", "", "C", [0.00025, 0.0025, 0.025]),
        ("bunsetsu", "--degree 3", "C", [6e-06, 6e-05, 6e-04]),
        ("bunsetsu", "--learner logistic", "C", [0.1, 1.0, 10.0]),
        ("chunker", "--degree 1", "C", [0.1, 1.0, 10.0]),
    ],
)
def test_default_grids_of_parsers(kind, options, parameter, values):
    learner = PARSER_LEARNERS[kind]
    words = options.split()
    values_of_options = {
        name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)
    }
    assert [
        setting[parameter] for setting in Search.from_arguments(learner, values_of_options).settings
    ] == values


def test_bad_options_of_parsers_are_refused(run, tmp_path):
    train = tmp_path / "train.conllu"
    train.write_text(MAKERS["trees"](8, 0))
    (tmp_path / "other.svm").write_text("1 1:1\n")
    (tmp_path / "p.svg").write_text("data")
    for arguments, reason in (
        (
            ["parser", train, "--dev", train, "--cv", "3"],
            "--dev and --cv are two ways to measure; choose one",
        ),
        (["parser", train, train], "train.conllu: a parser is trained on one file; join them first"),
        (["parser", train, "--cv", "9"], "train.conllu: has 8 sentences, fewer than the 9 folds of --cv"),
        (["parser", train, "--C", "1,2"], "--C is not for --learner online, but for svm and logistic"),
        (["parser", train, "--engine", "split"], "No such option"),
        (["parser", train, "--dev", tmp_path / "none"], "none: No such file"),
        (["parser", train, "--dev", tmp_path / "other.svm"], "other.svm holds rows, not sentences"),
        (["chunker", train], "for unkernel train parser"),
        (["parser", train, "-o", train], "train.conllu: is also an input"),
        (["parser", train, "--plot", tmp_path / "p.svg", "--dev", tmp_path / "p.svg"], "is also an input"),
        (["bunsetsu", "-", "--dev", "-"], "stdin can be read only once"),
    ):
        assert reason in run("tune", *arguments).error()


@pytest.mark.parametrize("kind", [*LEARNERS, *PARSERS])
def test_help_lists_only_options_of_the_kind(run, kind):
    help_text = run("tune", kind, "--help").out
    examples = re.findall(r"unkernel tune (\w+)", help_text.partition("Arguments")[0])
    assert set(examples) == {kind}
    assert "--out-of-core" not in help_text
    assert "--dask" not in help_text
    assert ("--dev" in help_text) == (kind in PARSERS)
    for line in re.findall(r"unkernel tune [^│╭]*", help_text.partition("Arguments")[0]):
        for option in re.findall(r"(?<!\S)--?[\w-]+", line):
            assert option in help_text.partition("Options")[2]


def test_training_with_folds(run, train_file, tmp_path):
    command = ["train", "poly", train_file, "-o", tmp_path / "m.uk", "--cv", "4"]
    output = run(*command, "--json").json["cross_validation"]
    X, y = read_svmlight(train_file)
    scores = cross_val_score(
        PolySVC(random_state=0), X, y, cv=StratifiedKFold(4, shuffle=True, random_state=0)
    )
    assert output["measures"]["accuracy"]["mean"] == pytest.approx(scores.mean())
    assert output["folds"] == 4
    assert "4-fold accuracy" in run(*command).out
    assert (
        run("train", "poly", train_file, "-o", tmp_path / "m.uk", "--json").json["cross_validation"] is None
    )


def test_bad_grids_and_options_are_refused(run, train_file, linear_files, tmp_path):
    three_rows = tmp_path / "few.svm"
    write_svmlight(three_rows, np.eye(3), [1, -1, 1])
    for arguments, reason in (
        (["poly", train_file, "--C", "0"], "--C must be a float in the range"),
        (["poly", train_file, "--degree", "9"], "--degree must be an int in the range"),
        (["poly", train_file, "--degree", "a"], "--degree must be a list such as"),
        (["poly", train_file, "--penalty", "l1,l2"], "--penalty l1 needs --loss squared_hinge"),
        (["poly", train_file, "--cv", "1"], "--cv"),
        (["poly", train_file, "--by", "beauty"], "--by"),
        (["poly", three_rows, "--cv", "5"], "has 3 examples, fewer than the 5 folds"),
        (["poly", train_file, "--out-of-core"], "No such option"),
        (
            ["poly", train_file, "-o", tmp_path / "x.svg", "--plot", tmp_path / "x.svg"],
            "is the name of two outputs",
        ),
        (["linear", *linear_files], "lin.t.svm: tune reads one file of rows; join them first"),
        (["poly", tmp_path / "missing"], "missing: No such file"),
    ):
        assert reason in run("tune", *arguments).error()
    cv = ["--cv", "3", "--out-of-core"]
    message = run("train", "linear", linear_files[0], "-o", tmp_path / "m.uk", *cv).error()
    assert message == "--cv does not go with --out-of-core"


def test_an_interrupt_before_all_fits_have_begun_stops_those_that_have(monkeypatch):
    """Fits must be stopped: at exit, Python waits until the threads of all fits end."""
    stopped, submit = threading.Event(), ThreadPoolExecutor.submit
    begun: list[object] = []

    def interrupted(pool, *task):
        if begun:
            raise KeyboardInterrupt
        begun.append(submit(pool, *task))
        return begun[0]

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cross_validation._run_in_threads(lambda _: stopped.wait(), [(1,), (2,)], 2, stopped)
    was_stopped = stopped.is_set()
    stopped.set()
    assert was_stopped


@pytest.mark.parametrize("name", ["auc", "roc_auc"])
def test_other_names_of_roc_area_are_accepted(run, train_file, name):
    result = run("tune", "poly", train_file, "--C", "1,2", "--cv", 2, "--by", name, "--json")
    assert result.json["criterion"] == "roc_area"
