"""Parsers of raw text equal their parts in sequence, lose no character, save files, and refuse bad input."""

from __future__ import annotations

import contextlib
import io
import pickle
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import unkernel
from reference.text_treebanks import treebank_with_text
from unkernel import FormatError
from unkernel.data import Treebank, read_conllu
from unkernel.models import container
from unkernel.parsing import ArcEagerParser, Document, Tagger, TextParser, TextParserModel, Tokenizer
from unkernel.parsing.text.jackknife import jackknife_tags
from unkernel.parsing.training_progress import Reporter

BANK = treebank_with_text()
QUICK = {
    "tokenizer": Tokenizer(epochs=4),
    "tagger": Tagger(epochs=3, min_count=1, min_updates=1),
    "parser": ArcEagerParser(epochs=3, runs=1, min_count=1, min_updates=1),
}
TEXT = "They didn't see it.  Why not?\nDogs saw Mr. Smith!"


@pytest.fixture(scope="module")
def nlp():
    """Return a parser that no test changes."""
    return TextParser(**QUICK).fit(BANK, dev=BANK)


# --- Results ----------------------------------------------------------------------------------------------


def test_the_training_text_is_reproduced(nlp):
    doc = nlp.parse(TEXT)
    assert isinstance(doc, Document)
    assert [sentence.forms for sentence in doc] == [sentence.forms for sentence in BANK[:3]]
    for column in ("lemmas", "upos", "xpos", "feats", "heads", "deprels"):
        assert [getattr(one, column) for one in doc] == [getattr(one, column) for one in BANK[:3]]
    assert doc.text == TEXT
    assert "2-3\tdidn't\t" in doc.to_conllu()
    assert "didn't" not in doc[0].draw()
    assert "did" in doc[0].draw()


def test_evaluate_measures_from_text_tokens_or_tags(nlp):
    assert nlp.dev_result_ == nlp.evaluate(BANK)
    for start in ("text", "tokens", "tags"):
        found = nlp.evaluate(BANK, given=start)
        assert {name: score.f1 for name, score in found.scores().items()} == dict.fromkeys(
            found.scores(), 100.0
        )
    with pytest.raises(ValueError, match="given must be one of text, tokens, tags"):
        nlp.evaluate(BANK, given="trees")
    with pytest.raises(ValueError, match="there are no sentences"):
        nlp.evaluate(Treebank.from_words([]))


def test_given_sentences_and_tags_are_kept(nlp):
    """Sentences and tags that the models would not find reveal the source of the answers."""
    odd = Treebank.from_words(
        [["Why"], ["not", "?"]],
        [["NOUN"], ["VERB", "NOUN"]],
        heads=[[0], [0, 1]],
        deprels=[["root"], ["root", "obj"]],
    )
    of_tokens, of_tags = nlp.evaluate(odd, given="tokens"), nlp.evaluate(odd, given="tags")
    assert nlp.evaluate(odd).sentences.f1 < of_tokens.sentences.f1 == of_tags.sentences.f1 == 100.0
    assert of_tokens.upos.f1 < of_tags.upos.f1 == 100.0


def test_explains_tags_and_heads(nlp):
    model, text = nlp.to_model(), "Zzyx saw it. Why not?"
    found = nlp.explain(text, top=2)
    tagged = model.tagger.tag(model.tokenizer.tokenize(text))
    expected = [*model.tagger.explain(tagged, top=2), *model.parser.explain(tagged, top=2)]
    assert [str(one) for one in found] == [str(one) for one in expected]
    assert {one.part for one in found} <= set(model.parts_)
    assert {one.part.partition(".")[0] for one in found} == {"tagger", "parser"}
    assert model.explain(tagged, top=2) == found
    assert nlp.explain(" ") == []
    for one in found:
        terms = [one.intercept, *one.evidence, one.rest]
        assert sum(term.chosen for term in terms) == pytest.approx(one.scores[one.chosen], abs=1e-9)


texts = st.lists(
    st.sampled_from(
        [*TEXT.split(), " ", "\n", "\n\n", "\t", "\0", "é", "e\u0301", "😀", "שלום", "\u2028", "x\x07"]
    ),
    max_size=30,
).map("".join)


@given(text=texts | st.text(max_size=60))
def test_is_its_parts_one_after_another(nlp, text):
    model = nlp.to_model()
    if any(0xD800 <= ord(character) < 0xE000 for character in text):
        with pytest.raises(ValueError, match="half of a surrogate pair"):
            nlp.parse(text)
        return
    parsed = nlp.parse(text)
    words = model.tokenizer.tokenize(text)
    expected = model.parser.parse(model.tagger.tag(words)) if len(words) else words
    assert parsed.to_bytes() == expected.to_bytes()
    assert parsed.text == (text if len(words) else "")


@given(given_texts=st.lists(texts, max_size=6), threads=st.integers(1, 3))
@settings(max_examples=30)
def test_many_texts_are_parsed_as_each_alone(nlp, given_texts, threads):
    found = list(nlp.parse_many(iter(given_texts), n_jobs=threads))
    assert found == [nlp.parse(text) for text in given_texts]


def test_texts_are_read_lazily(nlp):
    read = []

    def texts():
        for number in range(10_000):
            read.append(number)
            yield TEXT * 100

    answers = nlp.parse_many(texts(), n_jobs=2)
    assert next(answers) == nlp.parse(TEXT * 100)
    assert len(read) < 1000
    answers.close()


def test_invalid_texts_are_named_by_number(nlp):
    with pytest.raises(ValueError, match="text 1: character 2 of the text, '\\\\ud800', is half"):
        list(nlp.parse_many(["a", "bc\ud800"]))
    with pytest.raises(TypeError, match="text 0: a text must be a str, got bytes"):
        list(nlp.parse_many([b"a"]))
    with pytest.raises(TypeError, match="use parse"):
        nlp.parse_many("a text")


def test_texts_can_contain_newdoc_comments(nlp):
    odd = ["# newdoc", "a # newdoc\n\n# newdoc", "\n# newdoc\n", "", "# newdoc\n"]
    assert [doc.text for doc in nlp.parse_many(odd)] == odd


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_do_not_depend_on_the_number_of_threads(nlp, threads):
    text = f"{TEXT}\n\n" * 3000
    assert nlp.parse(text, n_jobs=threads).to_bytes() == nlp.parse(text).to_bytes()


def test_long_lines_are_split(nlp):
    for text in ("Dogs" * 25 + " ") * 11_000, "x" * 1_100_000:  # more than a megabyte
        assert nlp.parse(text).text == text


# --- Other libraries --------------------------------------------------------------------------------------


@pytest.fixture
def made(monkeypatch):
    """Return the columns passed to a stand-in for spaCy."""
    given = {}

    class Doc:
        def __init__(self, vocab, **columns):
            given.update(columns, vocab=vocab)

    spacy = types.SimpleNamespace(vocab=types.SimpleNamespace(Vocab=lambda: "new"))
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    monkeypatch.setitem(sys.modules, "spacy.tokens", types.SimpleNamespace(Doc=Doc))
    return given


def spacy_text(made):
    pairs = zip(made["words"], made["spaces"], strict=True)
    return "".join(word + " " * space for word, space in pairs)


def check_spacy_trees(made):
    """Check that heads are in the sentence of their tokens, and lead to one root each."""
    sentence = [sum(made["sent_starts"][: k + 1]) for k in range(len(made["words"]))]
    for place, head in enumerate(made["heads"]):
        assert sentence[head] == sentence[place]
        way = [place]
        while (above := made["heads"][way[-1]]) != way[-1]:
            assert above not in way
            way.append(above)
        assert made["deps"][way[-1]] == "ROOT"


def test_spacy_gets_words_spaces_heads_and_relations(nlp, made):
    nlp.parse(TEXT).to_spacy()
    assert made["vocab"] == "new"
    assert made["words"][:7] == ["They", "did", "n't", "see", "it", ".", " "]
    assert made["spaces"][:7] == [True, False, True, True, False, True, False]
    assert made["heads"] == [3, 3, 3, 3, 3, 3, 5, 8, 8, 8, 9, 12, 12, 12, 13, 12]
    assert made["deps"][:7] == ["nsubj", "aux", "advmod", "ROOT", "obj", "punct", "dep"]
    assert made["sent_starts"] == [k in (0, 7, 11) for k in range(16)]
    assert {len(column) for name, column in made.items() if name != "vocab"} == {16}
    assert "_" not in made["morphs"]
    nlp.parse(TEXT).to_spacy("own")
    assert made["vocab"] == "own"


@pytest.mark.parametrize(
    "text",
    [TEXT, f" \t{TEXT}\n", "They  didn't\nsee it.\n\n\nWhy not? ", "DIDN'T", "\r\nit \u00a0 .", ""],
)
def test_spacy_has_the_text_with_all_its_blanks(nlp, made, text):
    nlp.parse(text).to_spacy()
    assert spacy_text(made) == (text if text.strip() else "")
    check_spacy_trees(made)


FRENCH = """\
# text = Il sort du  parc.
1\tIl\til\tPRON\tCLS\tNumber=Sing\t2\tnsubj\t_\t_
2\tsort\tsortir\tVERB\tV\t_\t0\troot\t_\t_
3-4\tdu\t_\t_\t_\t_\t_\t_\t_\tSpacesAfter=\\s\\s
3\tde\tde\tADP\tP\tCase=Gen\t5\tcase\t_\t_
4\tle\tle\tDET\tD\tGender=Masc|Number=Sing\t5\tdet\t_\t_
5\tparc\tparc\tNOUN\tNC\tGender=Masc\t2\tobl\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\tPONCT\t_\t2\tpunct\t_\tSpacesAfter=\\n

# text = au
1-2\tau\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tà\tà\tADP\t_\t_\t2\tcase\t_\t_
2\tle\tle\tDET\tD\t_\t0\troot\t_\t_

"""


def test_spacy_has_tokens_whose_words_are_not_their_parts(made):
    Document._of(read_conllu(io.BytesIO(FRENCH.encode()))._text).to_spacy()
    assert spacy_text(made) == "Il sort du  parc.\nau"
    check_spacy_trees(made)
    assert made["words"] == ["Il", "sort", "du", " ", "parc", ".", "\n", "au"]
    assert made["heads"] == [1, 1, 4, 2, 1, 1, 5, 7]
    assert made["deps"] == ["nsubj", "ROOT", "case", "dep", "obl", "punct", "dep", "ROOT"]
    assert made["pos"][2:4] == ["ADP", "SPACE"]
    assert made["pos"][7] == "DET"  # its topmost word
    assert made["lemmas"][2] == "de le"
    assert made["tags"][2] == "P_D"
    assert made["morphs"][2] == "Case=Gen|Gender=Masc|Number=Sing"


def test_spacy_itself_takes_it(nlp):
    pytest.importorskip("spacy")
    for bank in (nlp.parse(f" {TEXT}\n\n"), Document._of(read_conllu(io.BytesIO(FRENCH.encode()))._text)):
        doc = bank.to_spacy()
        assert doc.text == bank.text
        assert len(list(doc.sents)) == len(bank)
        assert [doc.text[token.idx : token.idx + len(token)] for token in doc] == [t.text for t in doc]


def test_errors_without_spacy_say_what_to_install(nlp, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ImportError, match="to_spacy needs spaCy: pip install spacy"):
        nlp.parse(TEXT).to_spacy()


# --- Training ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("without", ["x", "f", "l", "xfl", "ufl"])
def test_learns_from_treebanks_that_lack_columns(without):
    bank = treebank_with_text(without=without)
    doc = TextParser(**QUICK).fit(bank).parse(TEXT)
    assert [one.heads for one in doc] == [one.heads for one in BANK[:3]]
    for letter, column in {"u": "upos", "x": "xpos", "f": "feats", "l": "lemmas"}.items():
        expected = [["_"] * len(one) if letter in without else getattr(one, column) for one in BANK[:3]]
        assert [getattr(one, column) for one in doc] == expected


def test_treebanks_without_text_comments_are_learnt_from_forms():
    doc = TextParser(**QUICK).fit(treebank_with_text(comments=False)).parse(TEXT)
    assert [one.forms for one in doc] == [one.forms for one in BANK[:3]]


def test_refuses_treebanks_that_lack_tags_or_trees():
    with pytest.raises(ValueError, match="no tags to learn from"):
        TextParser(**QUICK).fit(treebank_with_text(without="uxfl"))
    with pytest.raises(FormatError, match="head"):
        TextParser(**QUICK).fit(Treebank.from_words([["Dogs"]], [["NOUN"]]))
    with pytest.raises(ValueError, match="folds"):
        TextParser(folds=0).fit(BANK)
    with pytest.raises(ValueError, match="tagger"):
        TextParser(tagger=ArcEagerParser()).fit(BANK)


def test_progress_names_each_part_of_training():
    steps = []
    TextParser(**QUICK).fit_reporting(BANK, BANK, on_progress=steps.append)
    parts = [step.words.partition(":")[0] for step in steps]
    assert list(dict.fromkeys(parts[:-1])) == ["tokenizer", "tagger", "tags", "parser"]
    assert "LAS" in steps[-1].words
    shares = [step.share for step in steps if step.share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_parts_are_copied():
    parts = {name: clone(part) for name, part in QUICK.items()}
    made = TextParser(**parts, folds=2).fit(BANK)
    assert not any(hasattr(part, "model_") for part in parts.values())
    assert made.model_.tagger.parameters["epochs"] == 3
    assert made.parse(TEXT).text == TEXT


def test_training_tags_come_from_taggers_that_have_not_seen_the_sentence():
    """A word whose tag differs in one part reveals its tagger."""
    words = [["Dogs", "bark"]] * 8
    tags = [["NOUN", "VERB"]] * 4 + [["NOUN", "X"]] * 4
    bank = Treebank.from_words(words, tags, xpos=tags, heads=[[2, 0]] * 8, deprels=[["a", "root"]] * 8)
    quiet = Reporter("", 0, None)
    found = jackknife_tags(bank, QUICK["tagger"], ["upos"], folds=2, report=quiet)
    assert [one.upos[1] for one in found] == ["X"] * 4 + ["VERB"] * 4
    assert [one.xpos for one in found] == tags  # not requested
    assert found.heads.tolist() == bank.heads.tolist()
    assert jackknife_tags(bank, QUICK["tagger"], ["upos"], folds=1, report=quiet) is bank
    assert len(jackknife_tags(bank[:3], QUICK["tagger"], ["upos"], folds=9, report=quiet)) == 3


# --- Files ------------------------------------------------------------------------------------------------


def test_files_give_the_same_answers(nlp, tmp_path):
    path = tmp_path / "en.uk"
    nlp.save(path)
    loaded = unkernel.load(path)
    assert isinstance(loaded, TextParserModel)
    assert loaded.parse(TEXT) == nlp.parse(TEXT)
    assert repr(loaded).startswith("TextParserModel(parts=")
    assert loaded.nbytes == nlp.to_model().nbytes
    again = TextParser.load(path)
    assert again.parse(TEXT) == nlp.parse(TEXT)
    assert again.tagger.epochs == 3
    assert again.fit(BANK).parse(TEXT) == nlp.parse(TEXT)
    assert pickle.loads(pickle.dumps(loaded)).parse(TEXT) == nlp.parse(TEXT)
    again.save(tmp_path / "again.uk")
    with pytest.raises(FormatError, match="not a tokenizer"):
        Tokenizer.load(path)


def test_the_same_treebank_gives_the_same_file(nlp, tmp_path):
    nlp.save(tmp_path / "one.uk")
    TextParser(**QUICK).fit(BANK, dev=BANK).save(tmp_path / "two.uk")
    assert (tmp_path / "one.uk").read_bytes() == (tmp_path / "two.uk").read_bytes()


def test_damaged_files_are_refused(nlp):
    kind, arrays, stored = nlp.to_model().to_container()
    assert kind == "text_parser"
    sizes = stored["sizes"]
    for part, other in (("tokenizer", "tagger"), ("tagger", "parser"), ("parser", "tokenizer")):
        with pytest.raises(FormatError, match=rf"no proper array '{part}'"):
            TextParserModel.from_container("x.uk", {k: v for k, v in arrays.items() if k != part}, stored)
        with pytest.raises(FormatError, match=rf"setting '{part}'"):
            TextParserModel.from_container("x.uk", arrays, stored | {"sizes": sizes | {part: -1}})
        swapped = TextParserModel.from_container(
            "x.uk", arrays | {part: arrays[other]}, stored | {"sizes": sizes | {part: sizes[other]}}
        )
        shorter = TextParserModel.from_container("x.uk", arrays, stored | {"sizes": sizes | {part: 9}})
        inner = np.copy(arrays[part])
        inner[5] ^= np.uint64(1)
        changed = TextParserModel.from_container("x.uk", arrays | {part: inner}, stored)
        for damaged in (swapped, shorter, changed):
            for _ in range(2):  # and again, for another request
                with pytest.raises(FormatError, match=r"x\.uk"):
                    damaged.parse(TEXT)
            with pytest.raises(FormatError, match=r"x\.uk"):
                damaged.check_model("x.uk")


@pytest.mark.hostile
def test_a_file_whose_models_are_damaged_inside(nlp):
    """Invalid arrays of a tagger, in a file that is valid."""
    kind, arrays, stored = nlp.to_model().to_container()
    assert kind == "text_parser"
    for part, model in nlp.to_model().models.items():
        _, own, settings = model.to_container()
        for name in own:
            odd = own | {name: np.zeros(1, own[name].dtype)}
            content, size = container.encode_nested(model.kind, odd, settings)
            damaged = TextParserModel.from_container(
                "x.uk", arrays | {part: content}, stored | {"sizes": stored["sizes"] | {part: size}}
            )
            with contextlib.suppress(FormatError):
                damaged.parse(TEXT)


def test_memory_is_limited_when_models_are_made(nlp, tmp_path):
    path = tmp_path / "en.uk"
    nlp.save(path)
    loaded = unkernel.load(path, limit=1000)
    with pytest.raises(FormatError, match="limit="):
        loaded.parse(TEXT)


def test_all_parts_of_a_file_can_be_inspected(nlp, tmp_path):
    path = tmp_path / "en.uk"
    nlp.save(path)
    assert unkernel.load(path, verify=True).parse(TEXT) == nlp.parse(TEXT)
    content, size = container.encode_nested("tagger", {"x": np.zeros(3)}, {})
    kind, arrays, stored = nlp.to_model().to_container()
    container.write(
        path, kind, arrays | {"tagger": content}, stored | {"sizes": stored["sizes"] | {"tagger": size}}
    )
    unkernel.load(path).tokenizer.tokenize(TEXT)  # which is not damaged
    with pytest.raises(FormatError, match="setting 'parameters'"):
        unkernel.load(path, verify=True)


def test_truncated_files_are_refused(nlp, tmp_path):
    path = tmp_path / "en.uk"
    nlp.save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FormatError):
        container.read(path)
