"""Files of parsers: saved parsers parse as before; damaged files are refused, or their parsers make trees."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import unkernel
from reference import damage, parser_damage
from reference.selection import few_examples
from reference.treebanks import CROSSING, bank_of, treebanks
from unkernel import FormatError, load
from unkernel.data import Treebank
from unkernel.parsing import ArcEagerParser

SMALL = (
    ["They", "saw", "it", "."],
    ["PRON", "VERB", "PRON", "PUNCT"],
    ["PRP", "VBD", "PRP", "."],
    [2, 0, 2, 2],
    ["nsubj", "root", "obj", "punct"],
)
# Includes a lifted word five times, so that there are marks.
BANK = bank_of([CROSSING] * 5 + [SMALL])
TEMPLATES = """
[moves]
stack.word
stack.xpos + input.xpos
stack.label
stack.left-valency
input.suffix2
distance
[labels]
head.word
dependent.word
direction
dependent.left.label
"""


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    path = tmp_path_factory.mktemp("templates") / "own.txt"
    path.write_text(TEMPLATES)
    return path


def fit_small_parser(templates, **options):
    options = {"templates": templates, "min_count": 1, "min_updates": 1, "epochs": 3} | options
    return ArcEagerParser(**options).fit(BANK)


@pytest.fixture(scope="module")
def small_parser(templates):
    """Return a parser that no test changes."""
    return fit_small_parser(templates)


def check_same(parser, other, bank=BANK):
    assert parser.parse(bank).to_bytes() == other.parse(bank).to_bytes()
    assert parser.labels_ == other.labels_
    assert parser.n_features_ == other.n_features_


# --- Round trips ------------------------------------------------------------------------------------


@few_examples(10)
@given(
    bank=treebanks(),
    test_bank=treebanks(),
    options=st.fixed_dictionaries(
        {
            "degree": st.integers(1, 3),
            "learner": st.sampled_from(["online", "svm", "logistic"]),
            "split": st.sampled_from(["none", "labels", "both"]),
            "templates": st.sampled_from(["default", "chang"]),
            "random_state": st.sampled_from([0, None, np.int64(3)]),
        }
    ),
)
def test_saved_parsers_parse_as_before(bank, test_bank, options, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    parser = ArcEagerParser(min_count=1, epochs=2, **options).fit(bank)
    parser.save(folder / "one.uk")
    loaded = ArcEagerParser.load(folder / "one.uk")
    assert loaded.get_params() == parser.get_params()
    check_same(parser, loaded, bank)
    check_same(parser, loaded, test_bank)
    assert (loaded.epochs_, loaded.best_epochs_, loaded.dev_result_) == ([], [], None)
    loaded.save(folder / "two.uk")
    assert (folder / "one.uk").read_bytes() == (folder / "two.uk").read_bytes()


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda parser: pickle.loads(pickle.dumps(parser))]
)
@pytest.mark.parametrize("random_state", [3, None, np.random.RandomState(1)])
def test_copies_have_all_attributes_of_the_parser(duplicate, random_state, templates):
    parser = ArcEagerParser(templates=templates, min_count=1, random_state=random_state, epochs=2)
    parser.fit(BANK, dev=BANK)
    other = duplicate(parser)
    check_same(parser, other)
    for name in ("epochs_", "best_epochs_", "dev_result_", "split"):
        assert getattr(other, name) == getattr(parser, name)
    assert type(other.random_state) is type(random_state)


def test_unfitted_parsers_can_be_copied():
    parser = ArcEagerParser(3, split="both")
    for other in (clone(parser), pickle.loads(pickle.dumps(parser)), copy.deepcopy(parser)):
        assert other.get_params() == parser.get_params()
        assert not other.__sklearn_is_fitted__()


def test_clones_of_loaded_parsers_learn_equal_models(templates, tmp_path):
    parser = fit_small_parser(templates, split="both")
    parser.save(tmp_path / "one.uk")
    copied = clone(ArcEagerParser.load(tmp_path / "one.uk"))
    assert not copied.__sklearn_is_fitted__()
    check_same(parser, copied.fit(BANK))


def test_changed_parameters_do_not_change_the_fitted_parser(templates, tmp_path):
    parser = fit_small_parser(templates)
    parser.set_params(split="none", degree=3).save(tmp_path / "one.uk")
    check_same(parser, load(tmp_path / "one.uk"))


def test_templates_are_in_the_file(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text(TEMPLATES)
    parser = fit_small_parser(path)
    parser.save(tmp_path / "one.uk")
    path.unlink()
    check_same(parser, load(tmp_path / "one.uk"))
    check_same(parser, pickle.loads(pickle.dumps(parser)))


def test_unusual_words_are_stored_unchanged(templates, tmp_path):
    words = ["\u2028", "\x85", "\x1c", "a b", "猫", "\U0001f415", "#", "ẞ"]
    bank = Treebank.from_words([words], [words], xpos=[words], heads=[[0, *range(1, 8)]], deprels=[words])
    parser = ArcEagerParser(templates=templates, min_count=1, min_updates=1, split="both").fit(bank)
    parser.save(tmp_path / "one.uk")
    check_same(parser, load(tmp_path / "one.uk"), bank)


# --- Damage -----------------------------------------------------------------------------------------


def save_parsers(templates, folder):
    options_by_name = {
        "online": {},
        "svm": {"learner": "svm", "split": "both"},
        "linear": {"degree": 1, "split": "none"},
    }
    for name, options in options_by_name.items():
        fit_small_parser(templates, **options).save(folder / f"{name}.uk")
    return [folder / f"{name}.uk" for name in options_by_name]


@pytest.mark.hostile
def test_damaged_files_are_refused_or_still_make_trees(templates, tmp_path):
    paths = save_parsers(templates, tmp_path)
    for n_refused, n_parsed in damage.run(parser_damage, paths, tmp_path / "work", seed=1, count=280):
        assert n_refused > 80 and n_parsed > 30  # otherwise the damage is too weak or too strong


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 4))
def test_many_more_kinds_of_damage_are_refused_or_harmless(seed, templates, tmp_path):
    damage.run(parser_damage, save_parsers(templates, tmp_path), tmp_path / "work", seed, count=2000)


HOSTILE = {
    "no parts": lambda s: s.pop("parts"),
    "a part less": lambda s: s["parts"].pop("moves.0"),
    "a part that is a number": lambda s: s["parts"].update({"moves.0": 3}),
    "labels that are the same": lambda s: s["labels"].__setitem__(1, s["labels"][0]),
    "no labels": lambda s: s.update(labels=[]),
    "a mark of no label": lambda s: s.update(lifted_labels=[0, 99]),
    "half a mark": lambda s: s.update(lifted_labels=[0]),
    "a root label that there is not": lambda s: s.update(root_label=99),
    "a negative root label": lambda s: s.update(root_label=-1),
    "a class that there is not": lambda s: s["move_classes"][0].__setitem__(-1, 4),
    "a negative class": lambda s: s["move_classes"][0].__setitem__(0, -1),
    "a part that has one class and a classifier": lambda s: s["move_classes"].__setitem__(0, [0]),
    "a class twice": lambda s: s["move_classes"][0].__setitem__(1, 0),
    "no classes": lambda s: s["move_classes"].__setitem__(0, []),
    "a part of a case that there is not": lambda s: s["arc_parts"].__setitem__(0, 99),
    "a case more": lambda s: s["arc_parts"].append(0),
    "other templates": lambda s: s.update(templates="[moves]\nstack.word\n[labels]\nhead.word\n"),
    "bad templates": lambda s: s.update(templates="[moves]\nstack.w"),
    "templates that are a number": lambda s: s.update(templates=3),
    "no beam": lambda s: s.update(beam=0),
    "too wide a beam": lambda s: s.update(beam=65),
    "a beam that is no number": lambda s: s.update(beam="8"),
    "an unknown parameter": lambda s: s["parameters"].update(width=3),
    "a bad parameter": lambda s: s["parameters"].update(degree=7),
    "another split": lambda s: s["parameters"].update(split="both"),
}


# Models load with these settings, because only estimators use them.
ONLY_OF_ESTIMATORS = ("an unknown parameter", "a bad parameter")


@pytest.mark.parametrize("damaged_setting", HOSTILE)
def test_settings_that_do_not_fit_are_refused(damaged_setting, small_parser, tmp_path):
    path = tmp_path / "one.uk"
    small_parser.save(path)
    damage.rewrite(path, lambda settings, arrays: HOSTILE[damaged_setting](settings))
    with pytest.raises(FormatError):
        ArcEagerParser.load(path)
    if damaged_setting in ONLY_OF_ESTIMATORS:
        load(path)
        return
    with pytest.raises(FormatError):
        load(path)


def test_rewriting_a_file_without_changes_keeps_the_parser(templates, tmp_path):
    """Files of other tests are refused because of their damage, and not because they were rewritten."""
    path = tmp_path / "one.uk"
    parser = fit_small_parser(templates)
    parser.save(path)
    damage.rewrite(path, lambda settings, arrays: None)
    check_same(parser, load(path))


def test_truncated_files_are_refused(templates, tmp_path):
    path = tmp_path / "one.uk"
    fit_small_parser(templates, degree=1).save(path)
    content = path.read_bytes()
    for end in [*range(0, 200), *range(200, len(content), 97), len(content) - 1]:
        (tmp_path / "cut.uk").write_bytes(content[:end])
        with pytest.raises(FormatError):
            unkernel.load(tmp_path / "cut.uk")
