"""Tags of chunks in all schemes, and the counts of CoNLL-2000's scorer."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.chunking import SCHEMES, find_chunks, scores_of, valid, write_tags
from unkernel import FormatError
from unkernel._core import chunk_tag_names, recode_chunks
from unkernel.data import ChunkCorpus, read_chunks
from unkernel.parsing.chunks.result import compare_chunks, read_tags

TYPES = ["NP", "VP"]
NAMES = chunk_tag_names(TYPES)
any_tags = st.lists(st.sampled_from(NAMES), min_size=1, max_size=12)


def make_corpus(*sentences: list[str]) -> ChunkCorpus:
    return ChunkCorpus.from_words([["w"] * len(tags) for tags in sentences], tags=list(sentences))


def recode(tags: list[str], scheme: str) -> list[str]:
    numbers = np.array([NAMES.index(tag) for tag in tags], np.int32)
    return [NAMES[k] for k in recode_chunks(np.array([0, len(tags)]), numbers, scheme)]


def test_the_names_of_tags():
    assert NAMES == ["O", "B-NP", "I-NP", "E-NP", "S-NP", "B-VP", "I-VP", "E-VP", "S-VP"]
    assert chunk_tag_names([""]) == ["O", "B", "I", "E", "S"]


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("IOB1", "I-NP I-NP B-NP I-VP O I-NP"),
        ("IOB2", "B-NP I-NP B-NP B-VP O B-NP"),
        ("IOE1", "I-NP E-NP I-NP I-VP O I-NP"),
        ("IOE2", "I-NP E-NP E-NP E-VP O E-NP"),
        ("IOBES", "B-NP E-NP S-NP S-VP O S-NP"),
    ],
)
def test_known_tags_in_every_scheme(scheme, tags):
    assert recode(["B-NP", "I-NP", "B-NP", "B-VP", "O", "B-NP"], scheme) == tags.split()
    assert recode(tags.split(), "IOB2") == ["B-NP", "I-NP", "B-NP", "B-VP", "O", "B-NP"]


@given(tags=any_tags, scheme=st.sampled_from(SCHEMES))
def test_recoded_tags_equal_the_slow_twin(tags, scheme):
    assert recode(tags, scheme) == write_tags(find_chunks(tags), len(tags), scheme)


@given(tags=any_tags, scheme=st.sampled_from(SCHEMES))
def test_recoding_keeps_the_chunks_and_gives_valid_tags(tags, scheme):
    recoded_tags = recode(tags, scheme)
    assert find_chunks(recoded_tags) == find_chunks(tags)
    assert valid(recoded_tags, scheme)


def test_tags_without_a_type():
    tags, types = read_tags(make_corpus(["B", "I", "O", "I"]), [])
    assert types == [""]
    assert [chunk_tag_names(types)[k] for k in tags] == ["B", "I", "O", "B"]


@pytest.mark.parametrize("tag", ["X", "B-", "o", "BNP", "-NP", "B_NP", "OO", "O-NP"])
def test_refused_tags_are_reported_with_line_and_column(tag):
    text = f"He PRP B-NP\nsaw VBD {tag}\n".encode()
    with pytest.raises(FormatError, match=rf"'{tag}' is no.* tag") as caught:
        read_tags(read_chunks(io.BytesIO(text)), [])
    assert (caught.value.line, caught.value.column) == (2, 9)


# --- Counts: small cases evaluated by hand with the scorer's rules ---------------------------------------


@pytest.mark.parametrize(
    ("gold", "predicted", "counts"),
    [
        # counts of predicted, gold and correct chunks
        ("B-NP I-NP O", "B-NP I-NP O", (1, 1, 1)),
        ("B-NP I-NP O", "B-NP O O", (1, 1, 0)),  # the chunks end at different words
        ("B-NP I-NP", "B-NP B-NP", (2, 1, 0)),
        ("B-NP I-NP", "B-VP I-VP", (1, 1, 0)),  # the chunks have different types
        ("B-NP I-NP", "I-NP I-NP", (1, 1, 1)),  # I after O begins a chunk
        ("O B-NP I-VP", "O B-NP B-VP", (2, 2, 2)),  # I after another type begins a chunk
        ("B-NP B-NP", "I-NP B-NP", (2, 2, 2)),
        ("O O", "O O", (0, 0, 0)),
        ("O O", "B-NP I-NP", (1, 0, 0)),
        ("B-NP I-NP I-NP B-VP", "B-NP I-NP B-NP B-VP", (3, 2, 1)),  # the first chunk is too short
        ("I-NP E-NP E-NP", "B-NP I-NP B-NP", (2, 2, 2)),  # E ends a chunk
    ],
)
def test_counts_by_hand(gold, predicted, counts):
    result = compare_chunks(make_corpus(gold.split()), make_corpus(predicted.split()))
    assert (result.found, result.right, result.correct) == counts


def test_chunks_end_with_their_sentence():
    result = compare_chunks(
        make_corpus(["O", "B-NP"], ["I-NP", "O"]), make_corpus(["O", "B-NP"], ["B-NP", "O"])
    )
    assert (result.found, result.right, result.correct) == (2, 2, 2)


def test_precision_and_recall_by_hand():
    gold = make_corpus(["B-NP", "I-NP", "B-VP", "B-NP", "O"], ["B-PP", "B-NP"])
    predicted = make_corpus(["B-NP", "I-NP", "B-VP", "I-VP", "O"], ["B-PP", "B-NP"])
    result = compare_chunks(gold, predicted)
    assert (result.found, result.right, result.correct) == (4, 5, 3)
    assert result.precision == 75.0
    assert result.recall == 60.0
    assert result.f1 == pytest.approx(200 * 0.75 * 0.6 / 1.35)
    assert result.accuracy == pytest.approx(600 / 7)
    assert {name: (c.found, c.right, c.correct) for name, c in result.per_type.items()} == {
        "NP": (2, 3, 2),
        "VP": (1, 1, 0),
        "PP": (1, 1, 1),
    }
    assert "75.00     60.00     66.67" in str(result)
    assert "per second" not in str(result)


def test_precision_and_recall_without_predicted_chunks_are_zero():
    result = compare_chunks(make_corpus(["B-NP"]), make_corpus(["O"]))
    assert (result.precision, result.recall, result.f1) == (0.0, 0.0, 0.0)


@given(
    st.lists(any_tags.flatmap(lambda a: st.tuples(st.just(a), st.permutations(a))), min_size=1, max_size=5)
)
def test_counts_equal_the_slow_twin(pairs):
    gold, predicted = [list(a) for a, _ in pairs], [list(b) for _, b in pairs]
    result = compare_chunks(make_corpus(*gold), make_corpus(*predicted))
    slow = scores_of(gold, predicted)
    assert (result.found, result.right, result.correct) == tuple(sum(counter.values()) for counter in slow)
    for name, counts in result.per_type.items():
        assert (counts.found, counts.right, counts.correct) == tuple(counter[name] for counter in slow)


def test_corpora_of_other_sentences_are_refused():
    with pytest.raises(ValueError, match="sentences of different lengths"):
        compare_chunks(make_corpus(["O", "O"]), make_corpus(["O"], ["O"]))
    with pytest.raises(ValueError, match="it has no tags"):
        compare_chunks(ChunkCorpus.from_words([["a"]]), ChunkCorpus.from_words([["a"]]))
