"""Native work ends at its time limit, on this thread and on a separate one."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

from reference.kernels import make_kernel_model
from unkernel import compile
from unkernel._core import TimeLimit
from unkernel.data import Treebank
from unkernel.data.rows.csr import CsrRows
from unkernel.parsing import Tokenizer

EXPIRED_SECONDS = 1e-9


@pytest.fixture(scope="module")
def fast():
    return compile(make_kernel_model(vectors=500, features=40), engine="inverted")


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(epochs=2).fit(Treebank.from_words([["Dogs", "bark"], ["They", "saw", "it"]] * 9))


def rows_of(count: int) -> CsrRows:
    indices = np.tile(np.arange(0, 40, 2), count)
    return CsrRows.of(np.arange(0, 20 * count + 1, 20), indices, np.ones(20 * count), 40)


@pytest.mark.parametrize("count", [1, 100])
def test_calls_after_the_time_limit_fail(fast, tokenizer, count):
    with TimeLimit(EXPIRED_SECONDS):
        with pytest.raises(TimeoutError, match="longer than the 1e-09 seconds that it may take"):
            fast.decision_function(rows_of(count))
        with pytest.raises(TimeoutError):
            tokenizer.tokenize("They bark")
    assert tokenizer.tokenize("They bark")[0].forms == ["They", "bark"]


@pytest.mark.parametrize("letters", [60_000, 10**7])
def test_a_text_of_any_length_ends_in_time(tokenizer, letters):
    """Short texts are tokenized on this thread, long texts on a separate thread."""
    texts = ["a." * (letters // 2)] * 1000  # a minute, at least
    with TimeLimit(0.2), pytest.raises(TimeoutError):
        for text in texts:
            tokenizer.tokenize(text)


def test_long_scores_end_in_time(fast):
    rows = rows_of(100_000)
    with TimeLimit(0.1), pytest.raises(TimeoutError):
        for _ in range(1000):
            fast.decision_function(rows)


def test_the_earlier_end_counts(tokenizer):
    with TimeLimit(EXPIRED_SECONDS):
        with TimeLimit(math.inf), pytest.raises(TimeoutError):
            tokenizer.tokenize("They bark")
        with pytest.raises(TimeoutError):
            tokenizer.tokenize("They bark")
    with TimeLimit(1000):
        with TimeLimit(EXPIRED_SECONDS), pytest.raises(TimeoutError):
            tokenizer.tokenize("They bark")
        tokenizer.tokenize("They bark")


def test_a_limit_applies_to_its_thread(tokenizer):
    result = []
    with TimeLimit(EXPIRED_SECONDS):
        thread = threading.Thread(target=lambda: result.append(tokenizer.tokenize("They bark")[0].forms))
        thread.start()
        thread.join()
    assert result == [["They", "bark"]]


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan])
def test_limits_are_positive(seconds):
    with pytest.raises(ValueError, match="positive"):
        TimeLimit(seconds)
