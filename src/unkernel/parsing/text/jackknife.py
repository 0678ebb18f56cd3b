"""Jackknifing: tag each part of a treebank with a tagger that was trained on the other parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from sklearn.base import clone

from unkernel.data.text.columns import parse_text
from unkernel.data.text.conll import Treebank
from unkernel.parsing.text.learned_column import find_tagged_columns
from unkernel.parsing.text.tagger import Tagger
from unkernel.parsing.training_progress import Reporter

_MAX_EPOCHS = 4  # half of a tagger's default epochs; accuracy is lower by a few tenths of a point


def jackknife_tags(
    bank: Treebank, tagger: Tagger, columns: Sequence[str], *, folds: int, report: Reporter
) -> Treebank:
    """Divide a treebank into `folds` parts, and tag each part with a tagger trained on the other parts.

    A parser trained on gold tags relies on tags too much, because the tags of new text contain errors. Each
    part consists of consecutive sentences: neighbouring sentences share words, and a random division would
    make the tags too good. Only `columns` are tagged. A treebank of fewer than two sentences is returned
    unchanged.
    """
    ends = np.linspace(0, len(bank), min(folds, len(bank)) + 1).astype(int)
    if len(ends) < 3:
        return bank
    pieces = []
    for number, (begin, end) in enumerate(pairwise(ends), 1):
        fold, others = bank[begin:end], bank[[*range(begin), *range(end, len(bank))]]
        pieces.append(_tag_fold(fold, others, tagger, columns).to_bytes())
        report(f"part {number} of {len(ends) - 1} tagged", share=number / (len(ends) - 1))
    return Treebank._from_text(parse_text(b"".join(pieces), "conllu", name=bank.name))


def _tag_fold(fold: Treebank, others: Treebank, tagger: Tagger, columns: Sequence[str]) -> Treebank:
    """Return `fold`, tagged by `tagger` trained on `others`; unchanged if `others` has no tags."""
    trained_columns = [name for name in find_tagged_columns(others) if name in columns]
    if not trained_columns:
        return fold
    learner: Tagger = clone(tagger)
    learner.set_params(columns=trained_columns, epochs=min(int(tagger.epochs), _MAX_EPOCHS), verbose=0)
    return learner.fit(others).tag(fold)
