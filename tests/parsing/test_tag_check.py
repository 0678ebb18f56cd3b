"""A parser without the tags it was trained with answers at random: it says so instead."""

from __future__ import annotations

import io
import warnings

import pytest

from reference.parse_corpora import MAKERS, bunsetsu, chunks, treebank
from unkernel import FormatError
from unkernel.data import read_bunsetsu, read_chunks, read_conllu
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker, parse_stream

READERS = {"trees": read_conllu, "bunsetsu": read_bunsetsu, "chunks": read_chunks}
CLASSES = {"trees": ArcEagerParser, "bunsetsu": BunsetsuParser, "chunks": Chunker}


def corpus(task: str, text: str):
    return READERS[task](io.BytesIO(text.encode()))


@pytest.fixture(scope="module")
def parsers():
    return {task: CLASSES[task]().fit(corpus(task, MAKERS[task](40, 0))) for task in CLASSES}


@pytest.mark.parametrize("task", CLASSES)
def test_known_tags_are_no_reason_to_warn(task, parsers):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = corpus(task, MAKERS[task](10, 1))
        parsers[task].parse(text)
        parsers[task].evaluate(text)
        parsers[task].explain(text[:1])
        parsers[task].parse(corpus(task, ""))


def untagged(text: str) -> str:
    """The treebank without universal parts of speech; it has no others."""
    for tag in ("VERB", "NOUN", "DET", "ADP", "PUNCT"):
        text = text.replace(f"\t{tag}\t", "\t_\t")
    return text


@pytest.mark.parametrize("ask", ["parse", "evaluate", "explain"])
def test_a_treebank_without_tags_is_an_error(ask, parsers):
    text = corpus("trees", untagged(treebank(5, 1)))
    message = r"no word has a tag in column upos, .* has tags such as 'ADP', .*tagged CoNLL-U"
    with pytest.raises(ValueError, match=message):
        getattr(parsers["trees"], ask)(text)


def test_words_without_tags_are_an_error(parsers):
    with pytest.raises(ValueError, match="lists of words with their universal parts of speech as tags"):
        parsers["trees"].parse([["the", "dog", "saw"]])
    with pytest.raises(ValueError, match="the part of speech is missing"):
        parsers["chunks"].parse([["the", "dog", "saw"]])


def test_a_stream_without_tags_is_an_error(parsers):
    stream = io.BytesIO(untagged(treebank(5, 1)).encode())
    with pytest.raises(ValueError, match="no word has a tag in column upos"):
        list(parse_stream(parsers["trees"], stream))


def test_a_parser_that_had_no_tags_needs_none():
    bank = corpus("trees", untagged(treebank(20, 0)))
    parser = ArcEagerParser(epochs=2).fit(bank)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parser.parse([["the", "dog", "saw"]])[0].heads
    with pytest.warns(UserWarning, match="100% of the tags in column upos"):
        parser.parse([["dog"]], tags=[["NOUN"]])


@pytest.mark.parametrize("ask", ["parse", "evaluate", "explain"])
def test_unknown_tags_of_trees_are_named(ask, parsers):
    text = corpus("trees", treebank(5, 1).replace("\tNOUN\t", "\tNN\t").replace("\tVERB\t", "\tVBD\t"))
    with pytest.warns(UserWarning, match=r"of the tags in column upos .*\('NN', 'VBD'\).* such as 'ADP'"):
        getattr(parsers["trees"], ask)(text)


def test_own_tags_stand_in_for_missing_ones_as_in_training(parsers):
    """The training text has `_` as xpos: the universal tags are used, and `_` is no unknown tag."""
    with pytest.warns(UserWarning, match=r"column xpos .*\('NN'\)"):
        parsers["trees"].parse([["dog", "bit"]], tags=[["NOUN", "VERB"]], xpos=[["NN", "_"]])


def test_unknown_tags_of_chunks_are_named(parsers):
    text = chunks(5, 1).replace(" NN ", " NOUN ")
    with pytest.warns(UserWarning, match=r"of the tags in column 2 .*\('NOUN'\)"):
        parsers["chunks"].parse(corpus("chunks", text))


def test_unknown_tags_of_bunsetsu_are_named(parsers):
    text = bunsetsu(5, 1).replace("助詞", "particle")
    with pytest.warns(UserWarning, match=r"of the bunsetsu have parts of speech .*\('particle'\)"):
        parsers["bunsetsu"].parse(corpus("bunsetsu", text))


def test_a_few_unknown_tags_are_not_worth_a_warning(parsers):
    text = treebank(20, 1).replace("\tNOUN\t", "\tNN\t", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parsers["trees"].parse(corpus("trees", text))


RAW = {
    "trees": ("The dog saw a cat.\nIt barked.\n", "plain text must be tokenised and tagged first: CoNLL-U"),
    "bunsetsu": ("人が本を読む。\nEOS\n", "plain text must be cut into tagged morphemes and bunsetsu first"),
    "chunks": ("The dog saw a cat .\nIt barked .\n", "every line is one word"),
}


@pytest.mark.parametrize("task", CLASSES)
def test_raw_text_is_told_what_is_missing(task, parsers, tmp_path):
    text, message = RAW[task]
    path = tmp_path / "raw.txt"
    path.write_text(text)
    for ask in (parsers[task].parse, lambda file: list(parse_stream(parsers[task], file))):
        with pytest.raises(FormatError, match=message) as caught:
            ask(path)
        assert caught.value.line > 0
