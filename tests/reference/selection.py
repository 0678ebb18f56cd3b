"""Which examples and combinations of options `make test` tries, and which only `make test-all` does."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

_THOROUGH_FACTOR = 10
Pair = tuple[int, int, int, int]


def few_examples(count: int, **options: Any) -> settings:
    """Return the settings of a test with costly examples: the thorough profile tries ten times as many."""
    is_thorough = settings().max_examples >= settings.get_profile("thorough").max_examples
    return settings(max_examples=count * (_THOROUGH_FACTOR if is_thorough else 1), **options)


def parametrize_pairs(**values: list[Any]) -> pytest.MarkDecorator:
    """Return a parametrisation with all combinations; those that add no new pair of values are slow.

    Parameters
    ----------
    **values : list
        The values of each parameter.

    Returns
    -------
    pytest.MarkDecorator
    """
    sizes = [len(choices) for choices in values.values()]
    chosen = set(choose_pairs(sizes))
    combinations = [
        pytest.param(
            *(choices[place] for choices, place in zip(values.values(), places, strict=True)),
            marks=() if places in chosen else pytest.mark.slow,
        )
        for places in itertools.product(*map(range, sizes))
    ]
    return pytest.mark.parametrize(list(values), combinations)


def choose_pairs(sizes: list[int]) -> list[tuple[int, ...]]:
    """Return combinations of numbers below `sizes` that together have every pair of two of them."""
    left: set[Pair] = set().union(*map(_list_pairs, itertools.product(*map(range, sizes))))
    chosen: list[tuple[int, ...]] = []
    while left:
        best = max(itertools.product(*map(range, sizes)), key=lambda places: len(left & _list_pairs(places)))
        left -= _list_pairs(best)
        chosen.append(best)
    return chosen


def _list_pairs(places: tuple[int, ...]) -> set[Pair]:
    """Return the places and values of all pairs."""
    return {
        (first, places[first], second, places[second])
        for first, second in itertools.combinations(range(len(places)), 2)
    }


def slow_after(count: int, values: Iterable[Any]) -> list[Any]:
    """Return values of a parametrisation; all but the first `count` are slow."""
    return [value if number < count else _mark_slow(value) for number, value in enumerate(values)]


def _mark_slow(value: Any) -> Any:
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
