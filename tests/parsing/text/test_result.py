"""The measures of the CoNLL 2018 shared task: counts of aligned and of correct words."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unkernel.data import Treebank, read_conllu
from unkernel.parsing.text.result import ALL_MEASURES, SPLITTING, compare_text, list_measures


def make_bank(*sentences):
    """Return a treebank of lines "id form [lemma upos xpos feats head relation]"; missing fields are _."""
    lines = []
    for sentence in sentences:
        for line in sentence:
            fields = line.split(" ")
            lines.append("\t".join([*fields, *["_"] * (10 - len(fields))]))
        lines.append("")
    return read_conllu(io.StringIO("\n".join(lines) + "\n"))


def list_counts(score):
    return score.n_gold, score.n_found, score.n_right


def test_a_treebank_compared_with_itself():
    treebank = make_bank(["1-2 du _", "1 de de ADP", "2 le le DET", "3 vin vin NOUN"], ["1 oui oui INTJ"])
    result = compare_text(treebank, treebank)
    assert {name: score.f1 for name, score in result.scores().items()} == dict.fromkeys(
        ["tokens", "sentences", "words", "upos", "lemmas"], 100.0
    )
    assert list_counts(result.words) == (4, 4, 4) and list_counts(result.tokens) == (3, 3, 3)
    assert str(result).startswith("Tokens 100.00, Sentences 100.00, Words 100.00, UPOS 100.00")
    assert result.table().count("100.00 %") == 15


def test_words_of_multiword_tokens_are_aligned_by_form():
    gold = make_bank(["1 bois boire VERB", "2-3 du _", "2 de de ADP", "3 le le DET", "4 vin vin NOUN"])
    unsplit = make_bank(["1 bois boire VERB", "2 du du ADP", "3 vin vin NOUN"])
    result = compare_text(gold, unsplit)
    assert list_counts(result.tokens) == (3, 3, 3)
    assert list_counts(result.words) == (4, 3, 2)  # "du" is neither "de" nor "le"
    assert list_counts(result.upos) == (4, 3, 2)
    other_forms = make_bank(["1 bois _ VERB", "2-3 du _", "2 De _ ADP", "3 l _ DET", "4 vin _ X"])
    result = compare_text(gold, other_forms)
    assert list_counts(result.words) == (4, 4, 3)
    assert list_counts(result.upos) == (4, 4, 2)
    assert list_counts(result.lemmas) == (4, 4, 0)


def test_multiword_tokens_that_overlap_are_compared_together():
    gold = make_bank(["1-2 ab _", "1 a", "2 b", "3-4 cd _", "3 c", "4 d", "5 e"])
    predicted = make_bank(["1 a", "2-3 bc _", "2 b", "3 c", "4 d", "5 e"])
    assert list_counts(compare_text(gold, predicted).words) == (5, 5, 5)
    assert list_counts(compare_text(predicted, gold).words) == (5, 5, 5)
    assert list_counts(compare_text(gold, predicted).tokens) == (3, 4, 1)


def test_a_word_before_a_multiword_token_is_left_out():
    gold = make_bank(["1 ab", "2-3 cd _", "2 c", "3 d"])
    predicted = make_bank(["1 a", "2-3 bcd _", "2 c", "3 d"])
    assert list_counts(compare_text(gold, predicted).words) == (3, 3, 2)


def test_heads_are_correct_if_aligned_with_gold_heads():
    gold = make_bank(["1 a _ _ _ _ 2 nsubj:pass", "2 b _ _ _ _ 0 root", "3 c _ _ _ _ 2 obj"])
    predicted = make_bank(["1 a _ _ _ _ 2 nsubj", "2 b _ _ _ _ 0 root", "3 c _ _ _ _ 1 obj"])
    result = compare_text(gold, predicted)
    assert (result.uas.n_right, result.las.n_right) == (2, 2)  # text after the colon does not count
    split = make_bank(["1 a _ _ _ _ 2 nsubj", "2 b _ _ _ _ 0 root"], ["1 c _ _ _ _ 0 root"])
    result = compare_text(gold, split)
    assert (result.uas.n_right, result.sentences.n_right, result.words.n_right) == (2, 0, 3)


def test_only_universal_features_count_and_missing_lemmas_are_right():
    gold = make_bank(["1 a _ X Y Case=Nom|Own=Yes 0 root"])
    predicted = make_bank(["1 a b X Y Own=No|Case=Nom 0 root"])
    result = compare_text(gold, predicted)
    assert result.ufeats.f1 == result.lemmas.f1 == result.all_tags.f1 == 100.0
    assert compare_text(predicted, gold).lemmas.f1 == 0.0
    assert compare_text(gold, make_bank(["1 a b X Z Case=Acc 0 root"])).all_tags.f1 == 0.0


def test_blanks_and_empty_nodes_do_not_matter():
    gold = read_conllu(io.StringIO("1\t1 000\t_\tNUM" + "\t_" * 6 + "\n1.1\tnothing" + "\t_" * 8 + "\n\n"))
    assert compare_text(gold, Treebank.from_words([["1000"]], [["NUM"]])).upos.f1 == 100.0


def test_other_texts_are_refused():
    with pytest.raises(ValueError, match=r"differ, blanks left out, after 2 characters: 'abcd' .* 'abxd'"):
        compare_text(make_bank(["1 abc", "2 d"]), make_bank(["1 abx", "2 d"]))
    with pytest.raises(ValueError, match="after 2 characters"):
        compare_text(make_bank(["1 abc"]), make_bank(["1 ab"]))


@st.composite
def separator_lists(draw):
    """Draw two ways to split one text into words and sentences: the separators between its characters."""
    length = draw(st.integers(1, 12))
    return [[draw(st.sampled_from(["", " ", "\n"])) for _ in range(length - 1)] for _ in range(2)]


@given(separator_lists())
def test_splitting(separator_lists_):
    """Without multiword tokens, the counts follow from sets of spans."""
    banks, spans, sentences = [], [], []
    for separators in separator_lists_:
        text = "x" + "".join(f"{end}x" for end in separators)
        words = [line.split(" ") for line in text.split("\n")]
        banks.append(Treebank.from_words(words))
        begin, word_spans, sentence_spans = 0, set(), set()
        for line in words:
            sentence_spans.add((begin, begin + sum(map(len, line))))
            for word in line:
                word_spans.add((begin, begin + len(word)))
                begin += len(word)
        spans.append(word_spans)
        sentences.append(sentence_spans)
    result = compare_text(*banks)
    assert (
        list_counts(result.words)
        == list_counts(result.tokens)
        == (*map(len, spans), len(spans[0] & spans[1]))
    )
    assert list_counts(result.sentences) == (*map(len, sentences), len(sentences[0] & sentences[1]))


def test_files_are_compared_too(tmp_path):
    make_bank(["1 a"]).write(tmp_path / "a.conllu")
    assert compare_text(tmp_path / "a.conllu", make_bank(["1 a"])).words.f1 == 100.0
    with pytest.raises(FileNotFoundError):
        compare_text(tmp_path / "a.conllu", tmp_path / "missing.conllu")


def test_only_requested_measures_are_shown():
    gold = make_bank(["1 a", "2 b"])
    result = compare_text(gold, gold, measures=SPLITTING)
    assert str(result) == "Tokens 100.00, Sentences 100.00, Words 100.00"
    assert len(result.table().split("\n")) == 4
    assert list_measures(["upos", "xpos", "feats", "lemma"]) == ALL_MEASURES
    assert set(ALL_MEASURES) - set(list_measures(["xpos", "feats"])) == {"upos", "all_tags", "lemmas"}


def test_columns_missing_in_the_gold_treebank_are_not_scored():
    full = make_bank(["1 a b X Y Case=Nom 0 root"])
    assert compare_text(full, full).measured == ALL_MEASURES
    assert compare_text(make_bank(["1 a"]), full).measured == SPLITTING
    assert compare_text(make_bank(["1 a b X _ Case=Nom 0 root"]), full).measured == (
        *SPLITTING, "upos", "ufeats", "lemmas", "uas", "las"
    )  # fmt: skip
    tags_alone = compare_text(make_bank(["1 a _ X"]), full, measures=["words", "upos", "las"])
    assert tags_alone.measured == ("words", "upos")
