"""Edits that make lemmas of words."""

from hypothesis import given
from hypothesis import strategies as st

from unkernel.parsing.text.lemmas import edit_of, edited

words = st.text(
    st.characters(exclude_characters="\t\n\r", exclude_categories=("Cs",)), min_size=1, max_size=12
)


@given(words, words)
def test_an_edit_makes_the_lemma_of_its_word(form, lemma):
    assert edited(edit_of(form, lemma), form) == lemma


@given(words, words, words)
def test_any_word_has_a_lemma(form, lemma, other):
    assert edited(edit_of(form, lemma), other)


def test_words_of_one_kind_have_one_edit():
    assert edit_of("walking", "walk") == edit_of("talking", "talk")
    assert edit_of("Walks", "walk") == edit_of("Talks", "talk") != edit_of("talks", "talk")
