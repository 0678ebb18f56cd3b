"""Accuracy of the default parser on Universal Dependencies."""

from __future__ import annotations

import pytest

from reference import real_data
from unkernel.data import read_conllu
from unkernel.parsing import ArcEagerParser


def banks(name):
    return tuple(read_conllu(real_data.path(name, part)) for part in ("train", "dev"))


@pytest.mark.slow
def test_atis():
    """Three epochs reached 92.85 and 88.88."""
    train, dev = banks("en_atis")
    result = ArcEagerParser(epochs=3).fit(train).evaluate(dev)
    assert result.uas >= 92.3 and result.las >= 88.3


@pytest.mark.slow
def test_atis_gains_from_conjunctions():
    """The gains were 1.04 and 0.78."""
    train, dev = banks("en_atis")
    linear, pairs = (ArcEagerParser(degree).fit(train).evaluate(dev) for degree in (1, 2))
    assert pairs.uas >= linear.uas + 0.5 and pairs.las >= linear.las + 0.4


@pytest.mark.slow
def test_ewt():
    train, dev = banks("en_ewt")
    result = ArcEagerParser().fit(train).evaluate(dev)
    assert result.uas >= 88.0 and result.las >= 86.0
