"""Parsing with the arc-eager system: one tree for any input, and errors."""

from __future__ import annotations

import dataclasses
import io
from itertools import cycle, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from reference.dependencies import is_tree
from reference.parse_corpora import treebank
from reference.selection import few_examples
from reference.treebanks import TAGS, XPOS, bank_of, sentences, treebanks
from unkernel import FormatError, load
from unkernel.data import Treebank, read_conllu, read_conllx
from unkernel.parsing import ArcEagerParser
from unkernel.parsing.arc_eager.model import ArcEagerModel

QUICK = {"min_count": 1, "min_updates": 1, "epochs": 3, "runs": 1}
DOGS = Treebank.from_words(
    [["They", "saw", "it"], ["Dogs", "bark", "."], ["Go"]],
    [["PRON", "VERB", "PRON"], ["NOUN", "VERB", "PUNCT"], ["VERB"]],
    heads=[[2, 0, 2], [2, 0, 2], [0]],
    deprels=[["nsubj", "root", "obj"], ["nsubj", "root", "punct"], ["root"]],
)


@pytest.fixture(scope="module")
def parser():
    return ArcEagerParser(**QUICK).fit(DOGS)


def check_trees(parsed, labels):
    for sentence in parsed:
        assert is_tree(sentence.heads)
        assert set(sentence.deprels) <= set(labels)


# --- Any input --------------------------------------------------------------------------------------


ANY_WORD = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0"), min_size=1, max_size=6
)
ANY_TAG = ANY_WORD.filter(lambda text: text != "_")  # "_" stands for a missing tag


@given(
    bank=treebanks(max_sentences=3),
    words=st.lists(st.lists(ANY_WORD, min_size=1, max_size=12), max_size=4),
    data=st.data(),
    options=st.fixed_dictionaries(
        {
            "degree": st.integers(1, 3),
            "split": st.sampled_from(["none", "labels", "both"]),
            "templates": st.sampled_from(["default", "chang"]),
            "epochs": st.integers(1, 3),
            "beam": st.sampled_from([1, 1, 4]),
        }
    ),
)
def test_every_parse_is_one_tree(bank, words, data, options):
    parser = ArcEagerParser(min_count=1, min_updates=1, **options).fit(bank)
    tags, xpos = (
        [
            data.draw(
                st.lists(st.one_of(st.sampled_from(known_tags), ANY_TAG), min_size=len(s), max_size=len(s))
            )
            for s in words
        ]
        for known_tags in (TAGS, XPOS)
    )
    parsed = parser.parse(words, tags, xpos=xpos)
    assert [sentence.forms for sentence in parsed] == words
    check_trees(parsed, {label for sentence in bank for label in sentence.deprels})
    check_trees(parser.parse(words, [[TAGS[0]] * len(forms) for forms in words]), parser.labels_)
    check_trees(parser.parse(bank), parser.labels_)


@few_examples(5)
@given(drawn_sentences=st.lists(sentences(), min_size=3, max_size=5), n_jobs=st.integers(2, 4))
def test_answers_do_not_depend_on_threads(drawn_sentences, n_jobs):
    bank = bank_of(drawn_sentences * 60)
    parser = ArcEagerParser(min_count=1, min_updates=1, epochs=1).fit(bank[: len(drawn_sentences)])
    assert parser.parse(bank, n_jobs=n_jobs).to_bytes() == parser.parse(bank, n_jobs=1).to_bytes()
    parser.set_params(n_jobs=n_jobs)
    assert parser.parse(bank).to_bytes() == parser.parse(bank, n_jobs=1).to_bytes()


def test_a_text_without_sentences(parser):
    assert len(parser.parse([])) == 0
    assert parser.parse(io.BytesIO(b"# nothing\n\n")).to_bytes() == b"# nothing\n\n"


def test_a_sentence_of_one_word(parser):
    parsed = parser.parse([["Unheard-of"]], [["VERB"]])[0]
    assert parsed.heads == [0] and parsed.deprels == ["root"]


@pytest.mark.parametrize("tag", ["VERB", "PRON", "猫"])
def test_long_sentences(parser, tag):
    parsed = parser.parse([["word"] * 2000], [[tag] * 2000])[0]
    assert is_tree(parsed.heads)


def test_words_without_tags():
    bank = Treebank.from_words(
        [["They", "saw", "it"], ["Dogs", "bark"]],
        heads=[[2, 0, 2], [2, 0]],
        deprels=[["nsubj", "root", "obj"], ["nsubj", "root"]],
    )
    for split in ("none", "labels", "both"):
        parser = ArcEagerParser(split=split, min_count=1, min_updates=1).fit(bank)
        parsed = parser.parse(bank)
        assert parsed.to_bytes() == bank.to_bytes()


def test_a_treebank_of_one_word():
    bank = Treebank.from_words([["Go"]], heads=[[0]], deprels=[["root"]])
    for learner in ("online", "svm", "logistic"):
        parser = ArcEagerParser(learner=learner, min_count=1).fit(bank)
        check_trees(parser.parse([["Go"], ["Go", "away", "now"]]), ["root"])


def test_all_other_bytes_are_kept(parser):
    text = (
        b"# sent_id = 1\r\n1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\r\n1\tDo\t_\tAUX\t_\t_\t_\t_\t_\tx=1\r\n"
        b"2\tn't\t_\tPART\t_\t_\t9\t_\t0:x\t_\r\n2.1\t_\t_\t_\t_\t_\t_\t_\t_\t_"
    )
    text = text.replace(b"\t9\t", b"\t1\t")
    parsed = parser.parse(io.BytesIO(text))
    restored = parsed.with_trees([[-1, 1]], [["_", "_"]])
    assert restored.to_bytes() == text


# --- Forests ----------------------------------------------------------------------------------------


FOREST = "".join(
    f"{number}\t{form}\t_\tN\tNN\t_\t{head}\t{label}\t_\t_\n" + end
    for number, form, head, label, end in [
        (1, "a", 0, "ROOT", ""),
        (2, "b", 1, "mod", ""),
        (3, "c", 0, "ROOT", ""),
        (4, "d", 1, "mod", "\n"),
        (1, "a", 2, "mod", ""),
        (2, "b", 0, "ROOT", "\n"),
    ]
).encode()


def test_forests_are_learnt_and_parsed_as_trees():
    bank = read_conllx(io.BytesIO(FOREST))
    for learner in ("online", "svm"):
        parser = ArcEagerParser(learner=learner, min_count=1, min_updates=1).fit(bank)
        parsed = parser.parse(bank)
        assert parsed.format == "conllx"
        check_trees(parsed, ["ROOT", "mod"])
        result = parser.evaluate(bank)
        assert result.n_words == 6 and 0 < result.las <= result.uas < 100


def test_two_roots_are_refused_in_conllu():
    with pytest.raises(FormatError, match="root"):
        ArcEagerParser().fit(io.BytesIO(FOREST))


# --- Refused inputs ---------------------------------------------------------------------------------


def test_parsers_must_be_fitted_before_use():
    for use in (lambda p: p.parse([["a"]]), lambda p: p.evaluate(DOGS), lambda p: p.save("nowhere.uk")):
        with pytest.raises(NotFittedError):
            use(ArcEagerParser())


def test_a_treebank_must_have_trees(parser):
    for heads, message in (([2, -1], "head"), ([2, 1], "cycle"), ([0, 0], "root")):
        invalid = Treebank.from_words([["a", "b"]], heads=[heads], deprels=[["x", "x"]])
        with pytest.raises(FormatError, match=message):
            ArcEagerParser().fit(invalid)
        with pytest.raises(FormatError, match=message):
            ArcEagerParser().fit(DOGS, dev=invalid)
        with pytest.raises(FormatError, match=message):
            parser.evaluate(invalid)
    with pytest.raises(ValueError, match="no sentences"):
        ArcEagerParser().fit(Treebank.from_words([]))


def test_invalid_words_and_tags_are_refused(parser):
    with pytest.raises(ValueError, match="sentence 1 has no words"):
        parser.parse([["a"], []])
    with pytest.raises(ValueError, match="tags"):
        parser.parse(DOGS, [["X"] * 3] * 3)
    with pytest.raises(ValueError, match="tags"):
        parser.parse([["a", "b"]], [["X"]])
    with pytest.raises(TypeError, match="lists of words"):
        parser.parse(["They saw it"])
    with pytest.raises(FileNotFoundError):
        parser.parse("there-is-no-such-file.conllu")


@pytest.mark.parametrize(
    "parameters",
    [
        {"degree": 0},
        {"degree": 4},
        {"learner": "tree"},
        {"beam": 0},
        {"beam": 65},
        {"beam": 2, "learner": "svm"},
        {"epochs": 0},
        {"runs": 0},
        {"exploration": 1.5},
        {"min_count": 0},
        {"min_updates": 0},
        {"split": "moves"},
        {"C": 0.0},
        {"tol": -1.0},
        {"random_state": "x"},
    ],
)
def test_bad_parameters_are_named(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        ArcEagerParser(**parameters).fit(DOGS)


def test_sources(parser, tmp_path):
    path = tmp_path / "dogs.conllu"
    path.write_bytes(DOGS.to_bytes())
    expected = parser.parse(DOGS).to_bytes()
    assert parser.parse(path).to_bytes() == parser.parse(str(path)).to_bytes() == expected
    with path.open("rb") as file:
        assert parser.parse(file).to_bytes() == expected
    assert ArcEagerParser(**QUICK).fit(path).parse(read_conllu(path)).to_bytes() == expected


def test_fitted_attributes_describe_the_parser(parser):
    assert sorted(parser.labels_) == ["nsubj", "obj", "punct", "root"]
    assert parser.n_features_ > 0 and parser.nbytes > 0
    assert len(parser.epochs_) == 3 and parser.best_epochs_ == [3]
    assert all(0 <= epoch[name] <= 1 for epoch in parser.epochs_ for name in ("wrong_moves", "wrong_labels"))
    assert parser.dev_result_ is None
    assert np.isfinite(parser.evaluate(DOGS).seconds)


# --- Beams ------------------------------------------------------------------------------------------


def test_files_store_the_beam(tmp_path):
    parser = ArcEagerParser(beam=3, **QUICK).fit(DOGS)
    parser.save(tmp_path / "wide.uk")
    for loaded in (load(tmp_path / "wide.uk"), ArcEagerParser.load(tmp_path / "wide.uk").model_):
        assert loaded.beam == loaded.parameters["beam"] == 3
        assert loaded.parse(DOGS).to_bytes() == parser.parse(DOGS).to_bytes()


def test_files_without_a_beam_are_parsed_greedily(parser):
    _, arrays, settings = parser.model_.to_container()
    del settings["beam"]
    assert ArcEagerModel.from_container("file.uk", arrays, settings).beam == 1


@pytest.mark.parametrize("beam", [0, -1, 65, 1.5, True, "4", None])
def test_invalid_beams_are_refused(parser, beam):
    with pytest.raises(ValueError, match="beam must be a number from 1 to 64"):
        dataclasses.replace(parser.model_, beam=beam)


def test_other_beams_need_a_parser_trained_with_a_beam(parser):
    wide = ArcEagerParser(beam=3, **QUICK).fit(DOGS).to_model()
    assert [wide.with_beam(width).beam for width in (1, 2, 64)] == [1, 2, 64]
    assert wide.with_beam(1).with_beam(2).beam == 2
    assert parser.to_model().with_beam(1).beam == 1
    with pytest.raises(ValueError, match="beam=2 needs a parser that was trained with a beam"):
        parser.to_model().with_beam(2)
    with pytest.raises(ValueError, match="beam must be a number from 1 to 64"):
        wide.with_beam(0)


def test_long_sentences_have_a_beam_of_one():
    """A beam copies its states, which would take quadratic time for long sentences."""
    bank = read_conllu(io.BytesIO(treebank(40, 0).encode()))
    narrow = ArcEagerParser(beam=2, **QUICK).fit(bank).model_
    wide = dataclasses.replace(narrow, beam=64)
    tagged_words = [(word.form, word.upos) for sentence in bank for word in sentence]
    words, tags = zip(*islice(cycle(tagged_words), 40_000), strict=True)
    for n_words, same_heads in ((900, False), (1001, True), (40_000, True)):
        heads = [
            model.parse([list(words[:n_words])], [list(tags[:n_words])])[0].heads for model in (narrow, wide)
        ]
        assert all(map(is_tree, heads))
        assert (heads[0] == heads[1]) == same_heads


@pytest.mark.parametrize("split", ["none", "labels", "both"])
def test_a_beam_learns_from_trees_with_several_roots(split):
    """A beam always loses some gold arcs of such trees, because it makes trees with one root."""
    roots = "".join(f"{i}\tw{i % 2}\t_\tA\tA\t_\t{i % 3 and i - 1}\tl{i % 3}\t_\t_\n" for i in range(1, 9))
    bank = read_conllx(io.BytesIO(f"{roots}\n".encode() * 5))
    parser = ArcEagerParser(beam=3, split=split, **QUICK).fit(bank)
    check_trees(parser.parse(bank), parser.labels_)
