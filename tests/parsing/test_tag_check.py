"""Parsers refuse texts without the tags of their training, for which their answers would be random."""

from __future__ import annotations

import io
import warnings

import pytest

from reference.parse_corpora import MAKERS, bunsetsu, chunks, treebank
from unkernel import FormatError
from unkernel.data import read_bunsetsu, read_chunks, read_conllu
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker, parse_stream
from unkernel.parsing.tag_check import StreamCheck, TagFault

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


def remove_tags(text: str) -> str:
    """Return the treebank without its universal parts of speech, which are its only tags."""
    for tag in ("VERB", "NOUN", "DET", "ADP", "PUNCT"):
        text = text.replace(f"\t{tag}\t", "\t_\t")
    return text


@pytest.mark.parametrize("method", ["parse", "evaluate", "explain"])
def test_a_treebank_without_tags_is_an_error(method, parsers):
    text = corpus("trees", remove_tags(treebank(5, 1)))
    message = r"no word has a tag in column upos, .* has tags such as 'ADP', .*tagged CoNLL-U"
    with pytest.raises(ValueError, match=message):
        getattr(parsers["trees"], method)(text)


def test_words_without_tags_are_an_error(parsers):
    with pytest.raises(ValueError, match="lists of words with their universal parts of speech as tags"):
        parsers["trees"].parse([["the", "dog", "saw"]])
    with pytest.raises(ValueError, match="the part of speech is missing"):
        parsers["chunks"].parse([["the", "dog", "saw"]])


def test_a_stream_without_tags_is_an_error(parsers):
    stream = io.BytesIO(remove_tags(treebank(5, 1)).encode())
    with pytest.raises(ValueError, match="no word has a tag in column upos"):
        list(parse_stream(parsers["trees"], stream))


@pytest.fixture
def small_pieces(monkeypatch):
    """Make streams arrive in pieces of a few sentences."""
    monkeypatch.setattr("unkernel.parsing.streams._PIECE_BYTES", 500)


@pytest.mark.usefixtures("small_pieces")
def test_a_stream_that_loses_its_tags_is_an_error(parsers):
    """The first blocks are parsed. The block without tags is refused with its line."""
    text = treebank(20, 1) + remove_tags(treebank(400, 2))
    stream = parse_stream(parsers["trees"], io.BytesIO(text.encode()), block_bytes=1)
    n_parsed = []
    with (
        pytest.warns(UserWarning, match="of the tags|no word has a tag"),
        pytest.raises(ValueError, match=r"from line [\d,]+ on: no word has a tag in column upos"),
    ):
        for part in stream:
            n_parsed.append(part.n_sentences)
    assert sum(n_parsed) >= 20


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("block_bytes", [1, 1500, 1 << 20])
def test_a_sentence_without_tags_in_a_stream_is_at_most_a_warning(parsers, block_bytes):
    """The division of the text into blocks does not matter."""
    text = treebank(30, 1) + remove_tags(treebank(1, 2)) + treebank(30, 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stream = parse_stream(parsers["trees"], io.BytesIO(text.encode()), block_bytes=block_bytes)
        assert sum(part.n_sentences for part in stream) == 61
    assert len(caught) <= 1


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("task", CLASSES)
def test_a_stream_warns_of_unknown_tags_once(task, parsers):
    changes = {
        "trees": ("\tNOUN\t", "\tNN\t"),
        "chunks": (" NN ", " NOUN "),
        "bunsetsu": ("助詞", "particle"),
    }
    text = MAKERS[task](20, 1) + MAKERS[task](40, 2).replace(*changes[task])
    with pytest.warns(UserWarning) as caught:
        list(parse_stream(parsers[task], io.BytesIO(text.encode()), block_bytes=1))
    assert len(caught) == 1


def test_checking_the_blocks_of_a_stream():
    """Only blocks with words count; errors are only raised at the start, or for many words in a row."""
    missing, unknown = TagFault("none", fatal=True), TagFault("odd", fatal=False)
    check = StreamCheck("text")
    check([], 1, 0)
    with pytest.raises(ValueError, match=r"^text: none"):
        check([missing], 1, 5)
    check = StreamCheck("text")
    check([], 1, 5)
    with pytest.warns(UserWarning, match="^text, from line 7 on: none"):
        check([missing], 7, 600)
    check([unknown], 700, 5)  # words with unknown tags end the run of words without tags
    check([missing], 800, 600)
    with pytest.raises(ValueError, match="from line 1,500 on"):
        check([missing], 1500, 600)


def test_parsers_trained_without_tags_need_none():
    bank = corpus("trees", remove_tags(treebank(20, 0)))
    parser = ArcEagerParser(epochs=2).fit(bank)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parser.parse([["the", "dog", "saw"]])[0].heads
    with pytest.warns(UserWarning, match="100% of the tags in column upos"):
        parser.parse([["dog"]], tags=[["NOUN"]])


@pytest.mark.parametrize("method", ["parse", "evaluate", "explain"])
def test_unknown_tags_of_trees_are_named(method, parsers):
    text = corpus("trees", treebank(5, 1).replace("\tNOUN\t", "\tNN\t").replace("\tVERB\t", "\tVBD\t"))
    with pytest.warns(UserWarning, match=r"of the tags in column upos .*\('NN', 'VBD'\).* such as 'ADP'"):
        getattr(parsers["trees"], method)(text)


def test_universal_tags_replace_missing_xpos_as_in_training(parsers):
    """Universal tags replace a missing xpos, and are known then. One unknown tag does not cause a warning."""
    train, text = (treebank(*drawn).replace("\tNOUN\t_\t", "\tNOUN\tNN\t") for drawn in ((40, 0), (10, 1)))
    parser = ArcEagerParser().fit(corpus("trees", train))
    text = text.replace("\tDET\t_\t", "\tDET\tDT\t", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parser.parse(corpus("trees", text))
    with pytest.warns(UserWarning, match=r"column xpos .*\('DT'\)"):
        parser.parse(corpus("trees", text.replace("\tDET\t_\t", "\tDET\tDT\t")))


def test_xpos_is_ignored_if_training_had_none(parsers):
    """Values of xpos would be features that were never learnt."""
    plain, with_xpos = (treebank(10, 1).replace("\tNOUN\t_\t", f"\tNOUN\t{tag}\t") for tag in ("_", "_38"))
    parser, text = parsers["trees"], corpus("trees", with_xpos)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parsed = parser.parse(text)
        assert parser.evaluate(text).las == parser.evaluate(corpus("trees", plain)).las
        explanations = parser.explain(text[:2])
    assert list(map(str, explanations)) == list(map(str, parser.explain(corpus("trees", plain)[:2])))
    assert parsed.to_bytes().replace(b"\t_38\t", b"\t_\t") == parser.parse(corpus("trees", plain)).to_bytes()


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
    "trees": ("The dog saw a cat.\nIt barked.\n", "CoNLL-U has one word per line"),
    "bunsetsu": ("人が本を読む。\nEOS\n", "split into tagged morphemes and bunsetsu"),
    "chunks": ("The dog saw a cat .\nIt barked .\n", "every line is one word"),
}


@pytest.mark.parametrize("task", CLASSES)
def test_raw_text_is_refused_with_the_missing_option(task, parsers, tmp_path):
    text, message = RAW[task]
    path = tmp_path / "raw.txt"
    path.write_text(text)
    for use_file in (parsers[task].parse, lambda file: list(parse_stream(parsers[task], file))):
        with pytest.raises(FormatError, match=message) as caught:
            use_file(path)
        assert caught.value.line > 0
