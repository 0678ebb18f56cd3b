"""The syntax of templates, and the features that they make."""

import contextlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.chunking import Sentence, numbered_rows, parse_templates
from unkernel import FormatError
from unkernel._core import SequenceFeatures as Features
from unkernel._core import restored_sequence_features
from unkernel.data import ChunkCorpus
from unkernel.parsing.chunks.model import FEATURE_SOURCES

ADDRESSES = [
    "word[0]",
    "word[-1]",
    "lower[1]",
    "pos[0]",
    "pos[-2]",
    "shape[0]",
    "prefix2[0]",
    "suffix3[+1]",
    "tag[-1]",
    "tag[-2]",
]
words = st.text(st.sampled_from("aBc1-é漢"), min_size=1, max_size=5)
sentence = st.lists(st.tuples(words, st.sampled_from("NVD"), st.integers(0, 3)), min_size=1, max_size=6)
template = st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=3).map("+".join)
lines = st.lists(template, min_size=1, max_size=6, unique=True)
templates = st.tuples(lines, st.integers(1, 6)).map(
    lambda drawn: "\n".join([*drawn[0][: drawn[1]], "[beside]", *drawn[0][drawn[1] :]])
)


def chunk_features(templates, file):
    return Features(templates, file, **FEATURE_SOURCES)


def learn_features(text: str, sentences: list[Sentence], *, backward: bool = False, min_count: int = 1):
    corpus = ChunkCorpus.from_words([s.words for s in sentences], [s.pos for s in sentences])
    answers = np.array([tag for s in sentences for tag in s.tags], np.int32)
    features = chunk_features(text, "own.txt")
    offsets, columns = features.learn(corpus._text, answers, backward=backward, min_count=min_count)
    return features, [columns[a:b].tolist() for a, b in pairwise(offsets)]


@given(templates, st.lists(sentence, min_size=1, max_size=4), st.booleans(), st.integers(1, 3))
def test_features_equal_the_slow_twin(text, given_sentences, backward, min_count):
    sentences = [Sentence(*(list(column) for column in zip(*rows, strict=True))) for rows in given_sentences]
    features, rows = learn_features(text, sentences, backward=backward, min_count=min_count)
    numbers, slow = numbered_rows(parse_templates(text), sentences, backward, min_count)
    assert rows == slow
    assert features.features == len(numbers)


@given(templates, st.lists(sentence, min_size=1, max_size=3))
def test_stored_features_are_restored(text, given_sentences):
    sentences = [Sentence(*(list(column) for column in zip(*rows, strict=True))) for rows in given_sentences]
    features, _ = learn_features(text, sentences)
    arrays = features.arrays()
    restored = restored_sequence_features(
        text, "own.txt", arrays, features.features, **FEATURE_SOURCES
    ).arrays()
    assert arrays.keys() == restored.keys()
    assert all(np.array_equal(arrays[name], restored[name]) for name in arrays)


def test_comments_blank_lines_and_spaces():
    text = "# all\n\n  word[0] + pos[-1]   # both\r\n\ttag[-1]\n"
    features, _ = learn_features(text, [Sentence(["a"], ["N"], [0])])
    assert features.features == 2
    assert features.known(0) is not None


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ("words[0]", 1, "'words' is no.* attribute"),
        ("word", 5, "position"),
        ("word[", 6, "a position is a whole number from -9 to 9"),
        ("word[x]", 6, "a position is a whole number"),
        ("word[10]", 6, "a position is a whole number from -9 to 9"),
        ("word[-99999999999999]", 6, "a position is a whole number"),
        ("word[+-1]", 6, "a position is a whole number"),
        ("word[0", 7, "position"),
        ("word[0] pos[0]", 9, "join values with +"),
        ("word[0]+", 9, "a name.*, not the end of the line"),
        ("+word[0]", 1, "a name.*, not '\\+'"),
        ("word.pos[0]", 9, "only the first name of a value has a position"),
        ("word[0].pos", 9, "a value is one name with a position"),
        ("[words]", 1, "is no.* attribute"),
        ("tag[0]", 1, "only words before this one have a tag"),
        ("pos[0]+tag[1]", 8, "only words before this one have a tag"),
        ("prefix0[0]", 1, "is no.* attribute"),
        ("suffix10[0]", 1, "is no.* attribute"),
        ("Word[0]", 1, "'Word' is no.* attribute"),
        ("pos[1]", 1, "occurs twice"),
        ("+".join(["word[0]"] * 9), 1, "joins at most 8 values"),
    ],
)
def test_errors_name_the_file_the_line_and_the_column(line, column, reason):
    with pytest.raises(FormatError, match=reason) as caught:
        chunk_features(f"# mine\npos[1]\n{line}\n", "own.txt")
    assert (caught.value.file, caught.value.line, caught.value.column) == ("own.txt", 3, column)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("[beside]\nword[0]\n", 1, "\\[beside\\].* templates"),
        ("word[0]\n[beside]\npos[0]\n[beside]\n", 4, "occurs twice"),
        ("word[0]\n[beside]\nword[0]\n", 3, "occurs twice"),
    ],
)
def test_sections_that_are_refused(text, line, reason):
    with pytest.raises(FormatError, match=reason) as caught:
        chunk_features(text, "own.txt")
    assert caught.value.line == line


def test_a_file_without_templates_is_refused():
    with pytest.raises(FormatError, match="there are no templates"):
        chunk_features("# nothing\n", "own.txt")


def test_too_many_templates_are_refused():
    text = "\n".join(
        f"word[{i % 10}]+word[{i // 10 % 10}]+word[{i // 100 % 10}]+word[{i // 1000}]" for i in range(1001)
    )
    with pytest.raises(FormatError, match="more than 1000 templates"):
        chunk_features(text, "own.txt")


@given(st.text())
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(FormatError):
        chunk_features(text, "own.txt")


def test_answers_must_fit_the_text():
    corpus = ChunkCorpus.from_words([["a", "b"]])
    for answers in ([0], [0, -1]):
        with pytest.raises(ValueError, match="answers do not fit"):
            chunk_features("word[0]", "own.txt").learn(
                corpus._text, np.array(answers, np.int32), backward=False, min_count=1
            )


def test_features_are_learned_once():
    features, _ = learn_features("word[0]", [Sentence(["a"], ["N"], [0])])
    corpus = ChunkCorpus.from_words([["a"]])
    with pytest.raises(ValueError, match="learned already"):
        features.learn(corpus._text, np.array([0], np.int32), backward=False, min_count=1)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("ids.0", lambda a: a + 100),
        ("ids.0", lambda a: a - 3),
        ("ids.0", lambda a: a.astype(np.int64)),
        ("value_ends.0", lambda a: a + 1000),
        ("value_ends.0", lambda a: a[::-1].copy()),
        ("value_bytes.0", lambda a: np.full_like(a, 97)),
        ("joins.0.0", lambda a: a * 0),
        ("joins.0.0", lambda a: a | np.uint64(2**64 - 1)),
        ("joins.0.0", None),
        ("value_bytes.1", None),
    ],
)
def test_damaged_tables_are_refused(name, damage):
    text = "word[0]+pos[0]\n"
    features, _ = learn_features(text, [Sentence(["a", "b", "c"], ["N", "N", "V"], [0, 1, 0])])
    arrays = {key: np.array(array) for key, array in features.arrays().items()}
    if damage is None:
        del arrays[name]
    else:
        arrays[name] = damage(arrays[name])
    with pytest.raises(ValueError, match=r"twice|out of range|inside|overlap|no (proper )?array"):
        restored_sequence_features(text, "own.txt", arrays, features.features, **FEATURE_SOURCES)
