"""Tags as a parser will see them: a treebank tagged by taggers that have not seen its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from sklearn.base import clone

from unkernel.data.text.columns import parse_text
from unkernel.data.text.conll import Treebank
from unkernel.parsing.text.tagger import Tagger
from unkernel.parsing.text.tagger_model import find_tagged_columns
from unkernel.parsing.training_progress import Reporter

_EPOCHS = 4  # at most: half of the usual passes cost some tenths of a point


def jackknife_tags(
    bank: Treebank, tagger: Tagger, columns: Sequence[str], *, folds: int, report: Reporter
) -> Treebank:
    """The treebank in `folds` parts, each tagged by a tagger that learnt from the others.

    A parser that learns from right tags trusts them too much: those of new text have mistakes. Parts are of
    neighbouring sentences, as a text has words that others do not have. Only `columns` are tagged. A treebank
    of fewer than two sentences stays as it is.
    """
    ends = np.linspace(0, len(bank), min(folds, len(bank)) + 1).astype(int)
    if len(ends) < 3:
        return bank
    pieces = []
    for number, (begin, end) in enumerate(pairwise(ends), 1):
        own, others = bank[begin:end], bank[[*range(begin), *range(end, len(bank))]]
        pieces.append(_tag_fold(own, others, tagger, columns).to_bytes())
        report(f"part {number} of {len(ends) - 1} tagged", share=number / (len(ends) - 1))
    return Treebank._of(parse_text(b"".join(pieces), "conllu", name=bank.name))


def _tag_fold(own: Treebank, others: Treebank, tagger: Tagger, columns: Sequence[str]) -> Treebank:
    """Some sentences with tags learnt from others; as they are where these have none."""
    found = [name for name in find_tagged_columns(others) if name in columns]
    if not found:
        return own
    learner: Tagger = clone(tagger)
    learner.set_params(columns=found, epochs=min(int(tagger.epochs), _EPOCHS), verbose=0)
    return learner.fit(others).tag(own)
