"""Word clusters as features of a parser."""

from __future__ import annotations

import numpy as np
import pytest

import unkernel
from reference.text_treebanks import treebank_with_text
from unkernel import FormatError
from unkernel.data import Treebank
from unkernel.parsing import ArcEagerModel, ArcEagerParser, TextParser, WordClusters

QUICK = {"epochs": 4, "runs": 1, "min_count": 1, "min_updates": 1}
BANK = treebank_with_text()
CLUSTERS = WordClusters(["they", "dogs", "it", "saw", "see", "cats"], np.array([0, 0, 3, 1, 1, 0], np.int32))
LEMMAS_FOR_CLUSTERS = """
[beside moves]
stack.lemma
input.lemma
input[1].lemma
[beside labels]
head.lemma
dependent.lemma
"""
TEMPLATES = "[moves]\nstack.word\nstack.upos\ninput.upos\n[labels]\nhead.upos\ndependent.word\n"


@pytest.fixture(scope="module")
def parser():
    return ArcEagerParser(clusters=CLUSTERS, **QUICK).fit(BANK)


def replace_lemmas(bank):
    names = ("forms", "upos", "heads", "deprels")
    forms, upos, heads, deprels = ([getattr(sentence, name) for sentence in bank] for name in names)
    cluster_names = [
        ["_" if CLUSTERS[word] is None else f"{CLUSTERS[word]}" for word in words] for words in forms
    ]
    return Treebank.from_words(forms, upos, lemmas=cluster_names, heads=heads, deprels=deprels)


def test_clusters_give_the_same_parser_as_a_column_of_clusters(tmp_path):
    """In the twin, a column of the treebank contains the clusters, and templates read this column."""
    (tmp_path / "own.txt").write_text(TEMPLATES)
    (tmp_path / "lemmas.txt").write_text(TEMPLATES + LEMMAS_FOR_CLUSTERS)
    bank = replace_lemmas(BANK)
    fast = ArcEagerParser(clusters=CLUSTERS, templates=tmp_path / "own.txt", **QUICK).fit(bank)
    slow = ArcEagerParser(templates=tmp_path / "lemmas.txt", **QUICK).fit(bank)
    assert fast.n_features_ == slow.n_features_
    for part, slow_part in zip(fast.parts_.values(), slow.parts_.values(), strict=True):
        assert part.model.keys.tolist() == slow_part.model.keys.tolist()
        assert part.model.weights.tolist() == slow_part.model.weights.tolist()
    new = replace_lemmas(
        Treebank.from_words(
            [["Cats", "SEE", "it"], ["dogs", "bark"]],
            [["NOUN", "VERB", "PRON"], ["NOUN", "VERB"]],
            heads=[[2, 0, 2], [2, 0]],
            deprels=[["nsubj", "root", "obj"], ["nsubj", "root"]],
        )
    )
    assert fast.parse(new).to_bytes() == slow.parse(new).to_bytes()


def test_explanations_name_clusters(parser):
    explanations = parser.explain([["Cats", "bark"]], [["NOUN", "VERB"]], top=None)
    conjunctions = [part for explanation in explanations for part in explanation.evidence]
    features = {feature for conjunction in conjunctions for feature in conjunction.features}
    assert "stack.cluster=0" in features  # "Cats" has a cluster, but is not in the treebank


def test_saved_parsers_contain_their_clusters(parser, tmp_path):
    parser.save(tmp_path / "parser.uk")
    loaded = unkernel.load(tmp_path / "parser.uk")
    assert loaded.clusters.words == CLUSTERS.words
    assert loaded.parse(BANK).to_bytes() == parser.parse(BANK).to_bytes()
    ArcEagerParser.load(tmp_path / "parser.uk").fit(BANK).save(tmp_path / "again.uk")
    assert (tmp_path / "again.uk").read_bytes() == (tmp_path / "parser.uk").read_bytes()


def test_files_without_clusters_are_read():
    _, arrays, settings = ArcEagerParser(**QUICK).fit(BANK).to_container()
    assert len(arrays.pop("strings.15")) == 0
    assert ArcEagerModel.from_container("file.uk", arrays, settings).clusters is None


def test_damaged_files(parser):
    _, arrays, settings = parser.to_container()
    without_clusters = {name: array for name, array in arrays.items() if not name.startswith("clusters.")}
    for damaged in (
        without_clusters,
        without_clusters | {"clusters.words": arrays["clusters.words"]},
        arrays | {"clusters.clusters": arrays["clusters.clusters"][1:]},
        arrays | {"clusters.clusters": -arrays["clusters.clusters"]},
    ):
        with pytest.raises(FormatError):
            ArcEagerModel.from_container("file.uk", damaged, settings)


def test_templates_of_clusters_need_clusters(tmp_path):
    (tmp_path / "own.txt").write_text(TEMPLATES.replace("stack.upos", "stack.cluster"))
    with pytest.raises(ValueError, match="no clusters are given"):
        ArcEagerParser(templates=tmp_path / "own.txt", **QUICK).fit(BANK)


def test_the_parts_of_a_text_parser_share_clusters(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("they saw cats\ndogs see cats\n" * 3)
    nlp = TextParser(clusters=text, folds=2).fit(BANK)
    expected = WordClusters.learn(text, BANK)
    for part in (nlp.to_model().tagger, nlp.to_model().parser):
        assert part.clusters.words == expected.words
        assert part.clusters.clusters.tolist() == expected.clusters.tolist()
    nlp.save(tmp_path / "nlp.uk")
    TextParser(clusters=expected, folds=2).fit(BANK).save(tmp_path / "same.uk")
    assert (tmp_path / "nlp.uk").read_bytes() == (tmp_path / "same.uk").read_bytes()
    reloaded = TextParser.load(tmp_path / "nlp.uk")
    assert reloaded.clusters is None
    assert reloaded.tagger.clusters.words == reloaded.parser.clusters.words == expected.words
