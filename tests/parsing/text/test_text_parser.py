"""Parsers of raw text equal their parts in sequence, lose no character, and refuse invalid input."""

from __future__ import annotations

import contextlib
import io
import pickle
import sys
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import unkernel
from reference.selection import few_examples, slow_after
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
        parsed, gold = ([getattr(sentence, column) for sentence in bank] for bank in (doc, BANK[:3]))
        assert parsed == gold
    assert doc.text == TEXT
    assert "2-3\tdidn't\t" in doc.to_conllu()
    assert "didn't" not in doc[0].draw()
    assert "did" in doc[0].draw()


def test_evaluate_measures_from_text_tokens_or_tags(nlp):
    assert nlp.dev_result_ == nlp.evaluate(BANK)
    for start in ("text", "tokens", "tags"):
        result = nlp.evaluate(BANK, given=start)
        assert {name: score.f1 for name, score in result.scores().items()} == dict.fromkeys(
            result.scores(), 100.0
        )
    with pytest.raises(ValueError, match="given must be one of text, tokens, tags"):
        nlp.evaluate(BANK, given="trees")
    with pytest.raises(ValueError, match="there are no sentences"):
        nlp.evaluate(Treebank.from_words([]))


def test_given_sentences_and_tags_are_kept(nlp):
    """The models would find other sentences and tags than these."""
    unusual = Treebank.from_words(
        [["Why"], ["not", "?"]],
        [["NOUN"], ["VERB", "NOUN"]],
        heads=[[0], [0, 1]],
        deprels=[["root"], ["root", "obj"]],
    )
    from_tokens, from_tags = nlp.evaluate(unusual, given="tokens"), nlp.evaluate(unusual, given="tags")
    assert nlp.evaluate(unusual).sentences.f1 < from_tokens.sentences.f1 == from_tags.sentences.f1 == 100.0
    assert from_tokens.upos.f1 < from_tags.upos.f1 == 100.0


def test_explains_tags_and_heads(nlp):
    model, text = nlp.to_model(), "Zzyx saw it. Why not?"
    explanations = nlp.explain(text, top=2)
    tagged = model.tagger.tag(model.tokenizer.tokenize(text))
    expected = [*model.tagger.explain(tagged, top=2), *model.parser.explain(tagged, top=2)]
    assert [str(explanation) for explanation in explanations] == [
        str(explanation) for explanation in expected
    ]
    assert {explanation.part for explanation in explanations} <= set(model.parts_)
    assert {explanation.part.partition(".")[0] for explanation in explanations} == {"tagger", "parser"}
    assert model.explain(tagged, top=2) == explanations
    assert nlp.explain(" ") == []
    for explanation in explanations:
        terms = [explanation.intercept, *explanation.evidence, explanation.rest]
        assert sum(term.chosen for term in terms) == pytest.approx(
            explanation.scores[explanation.chosen], abs=1e-9
        )


texts = st.lists(
    st.sampled_from(
        [*TEXT.split(), " ", "\n", "\n\n", "\t", "\0", "é", "e\u0301", "😀", "שלום", "\u2028", "x\x07"]
    ),
    max_size=30,
).map("".join)


@given(text=texts | st.text(max_size=60))
def test_parsing_equals_tokenizing_tagging_and_parsing(nlp, text):
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
@few_examples(10)
def test_many_texts_are_parsed_like_single_texts(nlp, given_texts, threads):
    parsed = list(nlp.parse_many(iter(given_texts), n_jobs=threads))
    assert parsed == [nlp.parse(text) for text in given_texts]


def test_texts_are_read_lazily(nlp):
    read_texts = []

    def texts():
        for number in range(10_000):
            read_texts.append(number)
            yield TEXT * 100

    answers = nlp.parse_many(texts(), n_jobs=2)
    assert next(answers) == nlp.parse(TEXT * 100)
    assert len(read_texts) < 1000
    answers.close()


def test_invalid_texts_are_named_by_number(nlp):
    with pytest.raises(ValueError, match="text 1: character 2 of the text, '\\\\ud800', is half"):
        list(nlp.parse_many(["a", "bc\ud800"]))
    with pytest.raises(TypeError, match="text 0: a text must be a str, got bytes"):
        list(nlp.parse_many([b"a"]))
    with pytest.raises(TypeError, match="use parse"):
        nlp.parse_many("a text")


def test_texts_can_contain_newdoc_comments(nlp):
    unusual = ["# newdoc", "a # newdoc\n\n# newdoc", "\n# newdoc\n", "", "# newdoc\n"]
    assert [doc.text for doc in nlp.parse_many(unusual)] == unusual


@pytest.mark.parametrize("threads", [2, 5])
def test_results_do_not_depend_on_the_number_of_threads(nlp, threads):
    text = f"{TEXT}\n\n" * 3000
    assert nlp.parse(text, n_jobs=threads).to_bytes() == nlp.parse(text).to_bytes()


@pytest.mark.slow
def test_long_lines_are_split(nlp):
    for text in ("Dogs" * 1000 + " ") * 270, "x" * 1_100_000:  # more than a megabyte
        assert nlp.parse(text).text == text


# --- Other libraries --------------------------------------------------------------------------------------


@pytest.fixture
def spacy_columns(monkeypatch):
    """Return the arguments of spaCy's Doc, which is replaced by a mock."""
    arguments = {}

    class Doc:
        def __init__(self, vocab, **columns):
            arguments.update(columns, vocab=vocab)

    spacy = types.SimpleNamespace(vocab=types.SimpleNamespace(Vocab=lambda: "new"))
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    monkeypatch.setitem(sys.modules, "spacy.tokens", types.SimpleNamespace(Doc=Doc))
    return arguments


def spacy_text(spacy_columns):
    pairs = zip(spacy_columns["words"], spacy_columns["spaces"], strict=True)
    return "".join(word + " " * space for word, space in pairs)


def check_spacy_trees(spacy_columns):
    """Check that the head of each token is in its sentence, and that heads lead to the root."""
    sentence = [sum(spacy_columns["sent_starts"][: k + 1]) for k in range(len(spacy_columns["words"]))]
    for token, head in enumerate(spacy_columns["heads"]):
        assert sentence[head] == sentence[token]
        path = [token]
        while (next_head := spacy_columns["heads"][path[-1]]) != path[-1]:
            assert next_head not in path
            path.append(next_head)
        assert spacy_columns["deps"][path[-1]] == "ROOT"


def test_spacy_gets_words_spaces_heads_and_relations(nlp, spacy_columns):
    nlp.parse(TEXT).to_spacy()
    assert spacy_columns["vocab"] == "new"
    assert spacy_columns["words"][:7] == ["They", "did", "n't", "see", "it", ".", " "]
    assert spacy_columns["spaces"][:7] == [True, False, True, True, False, True, False]
    assert spacy_columns["heads"] == [3, 3, 3, 3, 3, 3, 5, 8, 8, 8, 9, 12, 12, 12, 13, 12]
    assert spacy_columns["deps"][:7] == ["nsubj", "aux", "advmod", "ROOT", "obj", "punct", "dep"]
    assert spacy_columns["sent_starts"] == [k in (0, 7, 11) for k in range(16)]
    assert {len(column) for name, column in spacy_columns.items() if name != "vocab"} == {16}
    assert "_" not in spacy_columns["morphs"]
    nlp.parse(TEXT).to_spacy("own")
    assert spacy_columns["vocab"] == "own"


@pytest.mark.parametrize(
    "text",
    [TEXT, f" \t{TEXT}\n", "They  didn't\nsee it.\n\n\nWhy not? ", "DIDN'T", "\r\nit \u00a0 .", ""],
)
def test_spacy_has_the_text_with_all_its_blanks(nlp, spacy_columns, text):
    nlp.parse(text).to_spacy()
    assert spacy_text(spacy_columns) == (text if text.strip() else "")
    check_spacy_trees(spacy_columns)


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


def test_spacy_has_tokens_whose_words_are_not_their_parts(spacy_columns):
    Document._from_text(read_conllu(io.BytesIO(FRENCH.encode()))._text).to_spacy()
    assert spacy_text(spacy_columns) == "Il sort du  parc.\nau"
    check_spacy_trees(spacy_columns)
    assert spacy_columns["words"] == ["Il", "sort", "du", " ", "parc", ".", "\n", "au"]
    assert spacy_columns["heads"] == [1, 1, 4, 2, 1, 1, 5, 7]
    assert spacy_columns["deps"] == ["nsubj", "ROOT", "case", "dep", "obl", "punct", "dep", "ROOT"]
    assert spacy_columns["pos"][2:4] == ["ADP", "SPACE"]
    assert spacy_columns["pos"][7] == "DET"  # of the word that is above the others of the token
    assert spacy_columns["lemmas"][2] == "de le"
    assert spacy_columns["tags"][2] == "P_D"
    assert spacy_columns["morphs"][2] == "Case=Gen|Gender=Masc|Number=Sing"


def test_documents_convert_to_spacy(nlp):
    pytest.importorskip("spacy")
    for bank in (
        nlp.parse(f" {TEXT}\n\n"),
        Document._from_text(read_conllu(io.BytesIO(FRENCH.encode()))._text),
    ):
        doc = bank.to_spacy()
        assert doc.text == bank.text
        assert len(list(doc.sents)) == len(bank)
        assert [doc.text[token.idx : token.idx + len(token)] for token in doc] == [t.text for t in doc]


def test_errors_without_spacy_say_what_to_install(nlp, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ImportError, match="to_spacy needs spaCy: pip install spacy"):
        nlp.parse(TEXT).to_spacy()


# --- Training ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("without", slow_after(2, ["xfl", "ufl", "x", "f", "l"]))
def test_learns_from_treebanks_that_lack_columns(without):
    bank = treebank_with_text(without=without)
    doc = TextParser(**QUICK).fit(bank).parse(TEXT)
    assert [sentence.heads for sentence in doc] == [sentence.heads for sentence in BANK[:3]]
    for letter, column in {"u": "upos", "x": "xpos", "f": "feats", "l": "lemmas"}.items():
        expected = [
            ["_"] * len(sentence) if letter in without else getattr(sentence, column) for sentence in BANK[:3]
        ]
        assert [getattr(sentence, column) for sentence in doc] == expected


def test_treebanks_without_text_comments_are_learnt_from_forms():
    doc = TextParser(**QUICK).fit(treebank_with_text(comments=False)).parse(TEXT)
    assert [sentence.forms for sentence in doc] == [sentence.forms for sentence in BANK[:3]]


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
    spacy_columns = TextParser(**parts, folds=2).fit(BANK)
    assert not any(hasattr(part, "model_") for part in parts.values())
    assert spacy_columns.model_.tagger.parameters["epochs"] == 3
    assert spacy_columns.parse(TEXT).text == TEXT


def test_training_tags_come_from_taggers_that_have_not_seen_the_sentence():
    """The tag of "bark" differs between the two folds, so it reveals which tagger gave it."""
    words = [["Dogs", "bark"]] * 8
    tags = [["NOUN", "VERB"]] * 4 + [["NOUN", "X"]] * 4
    bank = Treebank.from_words(words, tags, xpos=tags, heads=[[2, 0]] * 8, deprels=[["a", "root"]] * 8)
    silent_reporter = Reporter("", 0, None)
    tagged = jackknife_tags(bank, QUICK["tagger"], ["upos"], folds=2, report=silent_reporter)
    assert [sentence.upos[1] for sentence in tagged] == ["X"] * 4 + ["VERB"] * 4
    assert [sentence.xpos for sentence in tagged] == tags  # not requested
    assert tagged.heads.tolist() == bank.heads.tolist()
    assert jackknife_tags(bank, QUICK["tagger"], ["upos"], folds=1, report=silent_reporter) is bank
    assert len(jackknife_tags(bank[:3], QUICK["tagger"], ["upos"], folds=9, report=silent_reporter)) == 3


# --- Files ------------------------------------------------------------------------------------------------


def test_saved_parsers_parse_like_the_original(nlp, tmp_path):
    path = tmp_path / "en.uk"
    nlp.save(path)
    loaded = unkernel.load(path)
    assert isinstance(loaded, TextParserModel)
    assert loaded.parse(TEXT) == nlp.parse(TEXT)
    assert repr(loaded).startswith("TextParserModel(parts=")
    assert loaded.nbytes == nlp.to_model().nbytes
    reloaded = TextParser.load(path)
    assert reloaded.parse(TEXT) == nlp.parse(TEXT)
    assert reloaded.tagger.epochs == 3
    assert reloaded.fit(BANK).parse(TEXT) == nlp.parse(TEXT)
    assert pickle.loads(pickle.dumps(loaded)).parse(TEXT) == nlp.parse(TEXT)
    reloaded.save(tmp_path / "again.uk")
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
        exchanged_parts = TextParserModel.from_container(
            "x.uk", arrays | {part: arrays[other]}, stored | {"sizes": sizes | {part: sizes[other]}}
        )
        shorter = TextParserModel.from_container("x.uk", arrays, stored | {"sizes": sizes | {part: 9}})
        damaged_array = np.copy(arrays[part])
        damaged_array[5] ^= np.uint64(1)
        changed = TextParserModel.from_container("x.uk", arrays | {part: damaged_array}, stored)
        for damaged in (exchanged_parts, shorter, changed):
            for _ in range(2):  # every request is refused, not only the first
                with pytest.raises(FormatError, match=r"x\.uk"):
                    damaged.parse(TEXT)
            with pytest.raises(FormatError, match=r"x\.uk"):
                damaged.check_model("x.uk")


@pytest.mark.hostile
def test_a_file_whose_models_are_damaged_inside(nlp):
    """The file is valid, but contains a model with invalid arrays."""
    kind, arrays, stored = nlp.to_model().to_container()
    assert kind == "text_parser"
    for part, model in nlp.to_model().models.items():
        _, model_arrays, settings = model.to_container()
        for name in model_arrays:
            unusual = model_arrays | {name: np.zeros(1, model_arrays[name].dtype)}
            content, size = container.encode_nested(model.kind, unusual, settings)
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
    unkernel.load(path).tokenizer.tokenize(TEXT)  # the tokenizer is not damaged
    with pytest.raises(FormatError, match="setting 'parameters'"):
        unkernel.load(path, verify=True)


def test_truncated_files_are_refused(nlp, tmp_path):
    path = tmp_path / "en.uk"
    nlp.save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FormatError):
        container.read(path)
