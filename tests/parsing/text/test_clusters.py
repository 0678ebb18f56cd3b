"""Word clusters equal the clusters of a slow twin; files of clusters; taggers with clusters."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unkernel
from reference.clustering import Exchange
from unkernel import FormatError
from unkernel._core import ExchangeClusters
from unkernel.data import Treebank
from unkernel.parsing import Tagger, TextParser, WordClusters


@given(
    words=st.lists(st.integers(0, 8), min_size=1, max_size=40),
    clusters=st.integers(1, 4),
    n_others=st.integers(0, 2),
)
def test_words_move_to_the_likeliest_cluster(words, clusters, n_others):
    vocabulary = 9 - n_others
    options = {"vocabulary": vocabulary, "others": n_others, "clusters": clusters}
    fast = ExchangeClusters(np.array(words, np.int32), **options)
    slow = Exchange(words, vocabulary, n_others, clusters)
    for _ in range(3):
        fast.run_epoch()
        slow.run_epoch()
        assert np.asarray(fast.clusters()).tolist() == slow.cluster_of[:vocabulary]


SENTENCES = ["The cat sleeps", "a cat runs", "the dog runs", "A dog sleeps", "the 7 cats", "a 8 dogs"] * 5


def test_words_with_the_same_neighbours_share_a_cluster():
    clusters = WordClusters.learn(SENTENCES, n_clusters=4)
    assert clusters["runs"] == clusters["sleeps"] != clusters["Cat"] == clusters["dog"]
    assert clusters["3"] == clusters["7"] != clusters["the"]  # all digits are equal
    assert clusters["fish"] is None
    assert clusters.words[:2] == ["the", "a"] and len(clusters) == len(clusters.words)


def test_all_forms_of_text_give_the_same_clusters():
    text = "\n".join(SENTENCES)
    bank = Treebank.from_words([sentence.split() for sentence in SENTENCES])
    conllu_file = io.BytesIO(bank.to_bytes())
    conllu_file.name = "own.conllu"
    expected = WordClusters.learn(SENTENCES, n_clusters=3)
    for texts in (
        [io.StringIO(text)],
        [bank],
        [conllu_file],
        [[sentence.split() for sentence in SENTENCES]],
        [SENTENCES[:9], SENTENCES[9:]],
        [[*SENTENCES, " "]],
    ):
        learned = WordClusters.learn(*texts, n_clusters=3)
        assert learned.words == expected.words and learned.clusters.tolist() == expected.clusters.tolist()


def test_learning_reports_epochs_and_ends_without_moves():
    lines = []
    WordClusters.learn(SENTENCES, n_clusters=3, epochs=9, on_progress=lines.append)
    assert lines[0].startswith("epoch 1: ") and lines[-1].split(": ")[1].startswith("0 of")
    assert len(lines) < 9


def test_invalid_clusters_and_options_are_refused():
    with pytest.raises(ValueError, match="no word of the texts occurs 3 times"):
        WordClusters.learn(["a b c"])
    with pytest.raises(ValueError, match="there must be 1 to 2000 clusters"):
        WordClusters.learn(SENTENCES, n_clusters=2001)
    for words, clusters in ((["a"], [0, 1]), (["a", "a"], [0, 1]), (["a"], [-1])):
        with pytest.raises(ValueError, match="cluster"):
            WordClusters(words, np.array(clusters, np.int32))
    with pytest.raises(ValueError, match="the number of a word is out of range"):
        ExchangeClusters(np.array([3], np.int32), vocabulary=2, others=1, clusters=2)


def test_files(tmp_path):
    clusters = WordClusters.learn(SENTENCES, n_clusters=3)
    clusters.save(tmp_path / "c.uk")
    for reloaded in (WordClusters.load(tmp_path / "c.uk"), unkernel.load(tmp_path / "c.uk")):
        assert reloaded.words == clusters.words and np.array_equal(reloaded.clusters, clusters.clusters)
    _, arrays, _ = clusters.to_container()
    for damaged in (
        {"words": arrays["words"]},
        arrays | {"clusters": arrays["clusters"][1:]},
        arrays | {"clusters": arrays["clusters"].astype(np.int64)},
    ):
        with pytest.raises(FormatError):
            WordClusters.from_container("c.uk", damaged, {})


@pytest.fixture(scope="module")
def bank():
    words = [sentence.split() for sentence in SENTENCES[:4]] * 3
    return Treebank.from_words(words, [["DET", "NOUN", "VERB"]] * len(words))


def test_taggers_use_clusters_of_new_words(bank, tmp_path):
    """Words that are not in the treebank get the tag of their cluster."""
    text = ["the emu sleeps", "an emu runs", "the emu runs", "an emu sleeps"]
    clusters = WordClusters.learn(SENTENCES[:4] * 3, text * 3, n_clusters=4)
    clusters.save(tmp_path / "clusters.uk")
    options = {"min_count": 1, "min_updates": 1}
    tagger = Tagger(clusters=clusters, **options).fit(bank)
    assert tagger.tag([["an", "emu", "runs"]])[0].upos == ["DET", "NOUN", "VERB"]
    explanations = tagger.explain([["an", "emu"]], top=None)
    conjunctions = [part for explanation in explanations for part in explanation.evidence]
    features = [feature for conjunction in conjunctions for feature in conjunction.features]
    assert any(feature.startswith("cluster[0]=") for feature in features)
    tagger.save(tmp_path / "tagger.uk")
    loaded = unkernel.load(tmp_path / "tagger.uk")
    assert loaded.tag([["an", "emu", "runs"]])[0].upos == ["DET", "NOUN", "VERB"]
    reloaded = Tagger(clusters=tmp_path / "clusters.uk", **options).fit(bank)
    reloaded.save(tmp_path / "again.uk")
    assert (tmp_path / "again.uk").read_bytes() == (tmp_path / "tagger.uk").read_bytes()
    refitted = Tagger.load(tmp_path / "tagger.uk").fit(bank)
    refitted.save(tmp_path / "refitted.uk")
    assert (tmp_path / "refitted.uk").read_bytes() == (tmp_path / "tagger.uk").read_bytes()


def test_taggers_learn_clusters_of_text(bank, tmp_path):
    """The words of the treebank get clusters, too."""
    text = tmp_path / "text.txt"
    text.write_text("the emu sleeps\nan emu runs\n" * 3)
    expected = WordClusters.learn(text, bank)
    tagger = Tagger(clusters=text, min_count=1, min_updates=1).fit(bank)
    assert tagger.to_model().clusters.words == expected.words
    assert tagger.to_model().clusters.clusters.tolist() == expected.clusters.tolist()
    assert Tagger(min_count=1).fit(bank).to_model().clusters is None
    tagger.save(tmp_path / "no-clusters")
    for name in ("no-clusters", "missing.uk", "text.uk"):
        (tmp_path / "text.uk").write_bytes(text.read_bytes())
        with pytest.raises((FormatError, FileNotFoundError), match=name):
            Tagger(clusters=tmp_path / name).fit(bank)


def test_text_parsers_contain_the_clusters_of_their_tagger(tmp_path):
    words = [sentence.split() for sentence in SENTENCES[:4]] * 3
    trees = {"heads": [[2, 3, 0]] * len(words), "deprels": [["det", "nsubj", "root"]] * len(words)}
    bank = Treebank.from_words(words, [["DET", "NOUN", "VERB"]] * len(words), **trees)
    tagger = Tagger(clusters=WordClusters.learn(bank, n_clusters=3), min_count=1, min_updates=1)
    nlp = TextParser(tagger=tagger, folds=2).fit(bank)
    nlp.save(tmp_path / "nlp.uk")
    assert "cluster.words" in nlp.to_model().tagger.to_container()[1]
    reloaded = TextParser.load(tmp_path / "nlp.uk")
    assert reloaded.parse("the dog runs").to_bytes() == nlp.parse("the dog runs").to_bytes()
    assert reloaded.tagger.clusters.words == tagger.clusters.words


@pytest.mark.parametrize("name", ["n_clusters", "min_count", "epochs"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "many"])
def test_parameters_that_are_no_counts_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be an int of 1 or more"):
        WordClusters.learn(["a b"] * 9, **{name: value})


def test_files_without_words_are_refused(tmp_path):
    bank = Treebank.from_words([["a", "b"]] * 9, [["X", "Y"]] * 9)
    (tmp_path / "blank.txt").write_text(" \n\n")
    with pytest.raises(FormatError, match=r"blank\.txt: the text has no words to learn clusters from"):
        Tagger(clusters=tmp_path / "blank.txt").fit(bank)


def test_inputs_that_are_not_text_are_refused(tmp_path):
    with pytest.raises(TypeError, match="each sentence must be a string or a list of strings"):
        WordClusters.learn([[1, 2]] * 9)
    (tmp_path / "latin1.txt").write_bytes(b"a b\nd\xe9j\xe0 vu\n")
    with pytest.raises(FormatError, match=r"latin1\.txt:2: byte 0xE9 is not UTF-8: convert the text first"):
        WordClusters.learn(tmp_path / "latin1.txt")
