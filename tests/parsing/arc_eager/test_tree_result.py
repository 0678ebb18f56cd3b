"""Attachment scores, counted by hand."""

from __future__ import annotations

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.treebanks import bank_of, sentences
from unkernel.data import Treebank, read_conllx
from unkernel.parsing import LabelResult
from unkernel.parsing.arc_eager.result import score_trees

GOLD = Treebank.from_words(
    [["They", "saw", "it", "."], ["Go", "!"]],
    [["PRON", "VERB", "PRON", "PUNCT"], ["VERB", "PUNCT"]],
    heads=[[2, 0, 2, 2], [0, 1]],
    deprels=[["nsubj", "root", "obj", "punct"], ["root", "punct"]],
)


def test_a_treebank_compared_with_itself():
    result = score_trees(GOLD, GOLD, 0.5)
    assert (result.uas, result.las, result.uas_no_punct, result.las_no_punct, result.exact) == (100,) * 5
    assert (result.n_sentences, result.n_words) == (2, 6)
    assert (result.sentences_per_second, result.words_per_second) == (4, 12)
    assert result.per_label[0] == LabelResult("punct", 2, 100, 100)
    assert [counts.label for counts in result.per_label] == ["punct", "root", "nsubj", "obj"]


def test_wrong_heads_and_labels():
    # A wrong label, a wrong head of punctuation, and a label that is not in the treebank.
    parsed = GOLD.with_trees([[2, 0, 2, 3], [0, 1]], [["obj", "root", "obj", "punct"], ["root", "odd"]])
    result = score_trees(GOLD, parsed, 0.0)
    assert result.uas == pytest.approx(100 * 5 / 6)
    assert result.las == pytest.approx(100 * 3 / 6)
    assert (result.uas_no_punct, result.las_no_punct) == (100, 75)
    assert result.exact == 0
    assert math.isnan(result.words_per_second)
    by_label = {counts.label: counts for counts in result.per_label}
    assert by_label["obj"] == LabelResult("obj", 1, 50, 100)
    assert by_label["punct"] == LabelResult("punct", 2, 0, 0)
    assert by_label["root"] == LabelResult("root", 2, 100, 100)
    assert (by_label["nsubj"].recall, by_label["odd"].precision, by_label["odd"].count) == (0, 0, 0)
    assert math.isnan(by_label["nsubj"].precision) and math.isnan(by_label["odd"].recall)


def test_one_of_two_sentences_is_exact():
    parsed = GOLD.with_trees([[2, 0, 2, 3], [0, 1]], [s.deprels for s in GOLD])
    assert score_trees(GOLD, parsed, 1.0).exact == 50


def test_punctuation_without_tags():
    gold = read_conllx(
        io.BytesIO(
            b"1\tHm\t_\t_\t_\t_\t0\tROOT\t_\t_\n2\t...\t_\t_\t_\t_\t1\tp\t_\t_\n3\t\xe7\x8c\xab\t_\t_\t_\t_\t1\tx\t_\t_\n"
        )
    )
    parsed = gold.with_trees([0, 3, 1], ["ROOT", "p", "x"])
    result = score_trees(gold, parsed, 1.0)
    assert (result.uas, result.uas_no_punct) == (pytest.approx(100 * 2 / 3), 100)


def test_only_punctuation_has_no_share_without_it():
    gold = Treebank.from_words([["."]], [["PUNCT"]], heads=[[0]], deprels=[["root"]])
    result = score_trees(gold, gold, 1.0)
    assert result.uas == 100 and math.isnan(result.uas_no_punct)


def test_results_as_text():
    result = score_trees(GOLD, GOLD, 0.5)
    assert "UAS 100.00 %" in str(result) and "12 words/s" in str(result)
    lines = result.table().split("\n")
    assert len(lines) == 5 and lines[0].startswith("relation") and lines[1].startswith("punct")


@given(st.lists(st.tuples(sentences(), sentences()), min_size=1, max_size=4))
def test_scores_equal_counts_over_words(pairs):
    """The heads and labels of the second sentence of each pair are predictions for the words of the first."""
    gold = bank_of([gold_sentence for gold_sentence, _ in pairs])
    heads, labels = [], []
    for (_, _, _, gold_heads, gold_labels), (_, _, _, other_heads, other_labels) in pairs:
        n_words = len(gold_heads)
        predicted = [min(head, n_words) for head in (other_heads + gold_heads)[:n_words]]
        heads.append([0 if head == word else head for word, head in enumerate(predicted, start=1)])
        labels.append((other_labels + gold_labels)[:n_words])
    result = score_trees(gold, gold.with_trees(heads, labels), 1.0)
    correct_heads, correct, exact, words = 0, 0, 0, 0
    for sentence, predicted, predicted_labels in zip(gold, heads, labels, strict=True):
        head_hits = [a == b for a, b in zip(sentence.heads, predicted, strict=True)]
        hits = [h and a == b for h, a, b in zip(head_hits, sentence.deprels, predicted_labels, strict=True)]
        correct_heads += sum(head_hits)
        correct += sum(hits)
        exact += all(hits)
        words += len(hits)
    assert result.uas == pytest.approx(100 * correct_heads / words)
    assert result.las == pytest.approx(100 * correct / words)
    assert result.exact == pytest.approx(100 * exact / len(gold))
