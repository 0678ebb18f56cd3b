"""Reports of parsers, chunkers and taggers, compared with the results of ``evaluate``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import unkernel
from reference.pages import Page
from unkernel.data import Treebank, read_bunsetsu, read_chunks, read_conllu
from unkernel.parsing import Tagger
from unkernel.parsing.text.result import NO_WORD, compare_trees
from unkernel.report import report

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed"
)
GOLDEN = Path(__file__).parents[1] / "parsing" / "golden"


def values(page_report):
    (measures,) = page_report.measures.values()
    return {measure.name: measure.value for measure in measures}


@pytest.fixture(scope="module")
def half_right() -> Treebank:
    """Return sentences with some heads and relations that the parser of the golden files does not find."""
    bank = read_conllu(GOLDEN / "trees.conllu")
    heads, relations = (
        [list(sentence.heads) for sentence in bank],
        [list(sentence.deprels) for sentence in bank],
    )
    for place, sentence in enumerate(heads):
        if place % 3 == 0 and len(sentence) > 2:
            last_word = len(sentence) - 1
            sentence[last_word] = 1 if sentence[last_word] != 1 else 2
            relations[place][0] = "<b>strange"
    return bank.with_trees(heads, relations)


def test_a_report_of_trees(half_right):
    parser = unkernel.load(GOLDEN / "trees-online.uk")
    trees_report, result = parser.report(half_right, mistakes=2), parser.evaluate(half_right)
    actual = values(trees_report)
    assert actual["UAS"] == pytest.approx(result.uas / 100)
    assert actual["LAS"] == pytest.approx(result.las / 100)
    assert actual["sentences without a mistake"] == pytest.approx(result.exact / 100)
    for measure in trees_report.measures["ArcEagerParser"]:
        assert measure.low <= measure.value <= measure.high
    page = Page(trees_report.html())
    assert {"Relations", "Distance", "Mistakes", "Heaviest conjunctions"} <= set(page.texts["h2"])
    assert page.find_elements("b") == page.loads == []
    assert len(page.find_elements("article")) == 2
    assert len(page.find_elements("svg")) == 1 + 2 * 2  # distances, and each sentence twice


def test_parsers_side_by_side(half_right):
    parsers = {name: unkernel.load(GOLDEN / f"trees-{name}.uk") for name in ("online", "rich")}
    both_report = report(parsers, half_right)
    assert list(both_report.measures) == ["online", "rich"]
    assert "Differences to online" in both_report.html()
    chunker = unkernel.load(GOLDEN / "chunks-svm.uk")
    with pytest.raises(ValueError, match="a and b cannot be compared: one was made by ArcEagerParser"):
        report({"a": parsers["rich"], "b": chunker}, half_right)


def test_a_report_of_bunsetsu():
    parser = unkernel.load(GOLDEN / "bunsetsu-svm.uk")
    corpus = read_bunsetsu(GOLDEN / "bunsetsu.knp")
    bunsetsu_report, result = parser.report(GOLDEN / "bunsetsu.knp"), parser.evaluate(corpus)
    actual = values(bunsetsu_report)
    assert actual["dependencies"] == pytest.approx(result.dependency_accuracy / 100)
    assert actual["sentences without a mistake"] == pytest.approx(result.sentence_accuracy / 100)
    assert Page(bunsetsu_report.html()).texts["h1"] == ["BunsetsuParser on bunsetsu.knp"]


def test_a_report_of_chunks():
    chunker = unkernel.load(GOLDEN / "chunks-svm.uk")
    corpus = read_chunks(GOLDEN / "chunks.txt", tagged=True)
    chunks_report, result = chunker.report(corpus), chunker.evaluate(corpus)
    actual = values(chunks_report)
    assert actual == pytest.approx(
        {name: getattr(result, name.lower()) / 100 for name in ("F1", "precision", "recall")}
    )
    assert set(result.per_type) <= set(Page(chunks_report.html()).texts["th"])


def test_a_report_of_tags(half_right):
    tagger = Tagger(epochs=1).fit(half_right).model_
    tags_report, result = tagger.report(half_right), tagger.evaluate(half_right)
    assert {name: 100 * value for name, value in values(tags_report).items() if name in result.accuracy} == (
        pytest.approx(result.accuracy)
    )
    assert "Tags" in Page(tags_report.html()).texts["h2"]


def test_a_report_of_raw_text(half_right):
    parser = unkernel.load(GOLDEN / "text-parser.uk")
    text_report, result = parser.report(half_right), parser.evaluate(half_right)
    assert values(text_report)["Words F1"] == pytest.approx(result.words.f1 / 100)
    measures = text_report.measures["TextParser"]
    assert all(
        measure.method == "Wilson" and measure.low <= measure.value <= measure.high for measure in measures
    )
    page = Page(text_report.html())
    assert {"Relations", "Distance"} <= set(page.texts["h2"])
    assert page.find_elements("b") == page.loads == []


def test_trees_of_other_words(half_right):
    """Words that were split differently are not counted as correct."""
    gold = Treebank.from_words([["can", "not", "go"]], [["AUX", "PART", "VERB"]])
    gold = gold.with_trees([[3, 3, 0]], [["aux", "advmod:neg", "root"]])
    actual = Treebank.from_words([["cannot", "go"]], [["AUX", "VERB"]])
    actual = actual.with_trees([[2, 0]], [["aux", "root"]])
    compared = compare_trees(gold, actual)
    assert compared.relations.tolist() == ["aux", "advmod", "root"]
    assert compared.aligned_relations.tolist() == [NO_WORD, NO_WORD, "root"]
    assert compared.predicted_relations.tolist() == ["aux", "root"]
    assert compared.correct_heads.tolist() == [False, False, True]
    assert compared.lengths.tolist() == [2, 1, 0]
    parser = unkernel.load(GOLDEN / "text-parser.uk")
    result = parser.evaluate(half_right)
    trees = compare_trees(half_right, result.answer)
    correct_labels = trees.correct_heads & (trees.relations == trees.aligned_relations)
    assert (trees.correct_heads.sum(), correct_labels.sum()) == (result.uas.n_right, result.las.n_right)


def test_results_become_frames(half_right):
    pytest.importorskip("pandas")
    trees = unkernel.load(GOLDEN / "trees-online.uk").evaluate(half_right)
    assert trees.to_frame().label.tolist() == [result.label for result in trees.per_label]
    chunks = unkernel.load(GOLDEN / "chunks-svm.uk").evaluate(GOLDEN / "chunks.txt")
    assert chunks.to_frame().f1.tolist() == [result.f1 for result in chunks.per_type.values()]
    bunsetsu = unkernel.load(GOLDEN / "bunsetsu-svm.uk").evaluate(GOLDEN / "bunsetsu.knp")
    assert bunsetsu.to_frame().dependency_accuracy.tolist() == [bunsetsu.dependency_accuracy]
    text = unkernel.load(GOLDEN / "text-parser.uk")
    assert text.evaluate(half_right).to_frame().measure[0] == "tokens"
    assert text.tagger.evaluate(half_right).to_frame().column.tolist()[-1] == "all"


def test_reports_of_rows_need_labels():
    model = unkernel.PolySVC(degree=1).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="y, the right answers, must be given"):
        report(model, np.eye(4))


def test_parsers_are_described_in_notebooks():
    parser = unkernel.load(GOLDEN / "trees-online.uk")
    assert Page(parser._repr_html_()).texts["caption"] == ["ArcEagerModel"]
