"""Edits that make lemmas of words."""

from hypothesis import given
from hypothesis import strategies as st

from unkernel.parsing.text.lemmas import apply_edit, find_edit

words = st.text(
    st.characters(exclude_characters="\t\n\r", exclude_categories=("Cs",)), min_size=1, max_size=12
)


@given(words, words)
def test_an_edit_makes_the_lemma_of_its_word(form, lemma):
    assert apply_edit(find_edit(form, lemma), form) == lemma


@given(words, words, words)
def test_any_word_has_a_lemma(form, lemma, other):
    assert apply_edit(find_edit(form, lemma), other)


def test_words_with_the_same_ending_have_the_same_edit():
    assert find_edit("walking", "walk") == find_edit("talking", "talk")
    assert find_edit("Walks", "walk") == find_edit("Talks", "talk") != find_edit("talks", "talk")
