"""The combinations of options that `make test` tries contain every pair of values."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import settings

from reference.selection import choose_pairs, few_examples, parametrize_pairs


@pytest.mark.parametrize("sizes", [[2, 3], [3, 2, 2], [2, 2, 2, 2], [3, 5, 4]])
def test_every_pair_is_chosen(sizes: list[int]) -> None:
    chosen = choose_pairs(sizes)
    for first, second in itertools.combinations(range(len(sizes)), 2):
        pairs = {(places[first], places[second]) for places in chosen}
        assert pairs == set(itertools.product(range(sizes[first]), range(sizes[second])))


def test_three_options_need_fewer_combinations_than_there_are() -> None:
    assert len(choose_pairs([2, 2, 2])) == 4
    assert len(choose_pairs([3, 2, 2, 2, 2])) < 48 / 4


def test_other_combinations_are_slow() -> None:
    mark = parametrize_pairs(kind=["a", "b"], normalize=[True, False], threads=[1, 2]).mark
    assert mark.args[0] == ["kind", "normalize", "threads"]
    assert sum(not combination.marks for combination in mark.args[1]) == 4
    assert len(mark.args[1]) == 8


def test_the_thorough_profile_tries_more_examples() -> None:
    thorough = settings().max_examples >= settings.get_profile("thorough").max_examples
    assert few_examples(5).max_examples == (50 if thorough else 5)
