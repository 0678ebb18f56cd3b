"""Represent lemmas as edits of words. The edits are the classes of a lemmatizer.

An edit changes the case of a word (to lower case, to a capital first letter, or not at all). It then cuts
letters off both ends and adds letters there: ``running`` becomes ``run`` by cutting four letters off its end.
Many words share an edit, so a lemmatizer also handles words that did not occur in training.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher
from functools import lru_cache

_CASES: dict[str, Callable[[str], str]] = {
    "k": lambda form: form,  # unchanged
    "l": str.lower,
    "c": str.capitalize,
}
_NEW_WORD = "="  # prefix of an edit that replaces the whole word


@lru_cache(maxsize=1 << 16)
def find_edit(form: str, lemma: str) -> str:
    """Return the shortest edit that turns a word into its lemma.

    Examples
    --------
    >>> find_edit("running", "run"), find_edit("Dogs", "dog"), find_edit("gemacht", "machen")
    ('k:0:4:0:', 'l:0:1:0:', 'k:2:1:0:en')
    """
    edits = [_find_edit_with_case(case, change(form), lemma) for case, change in _CASES.items()]
    possible = [edit for edit in edits if edit is not None]
    return min(possible, key=len) if possible else _NEW_WORD + lemma


def _find_edit_with_case(case: str, form: str, lemma: str) -> str | None:
    """Return the edit of a form that is in the given case already; None if no letter would be kept."""
    match = SequenceMatcher(None, form, lemma, autojunk=False).find_longest_match()
    if not match.size:
        return None
    before = lemma[: match.b]
    after = lemma[match.b + match.size :]
    return f"{case}:{match.a}:{len(form) - match.a - match.size}:{len(before)}:{before}{after}"


@lru_cache(maxsize=1 << 16)
def apply_edit(edit: str, form: str) -> str:
    """Return the lemma that an edit makes from a word; a word that is too short is returned unchanged.

    Examples
    --------
    >>> apply_edit("l:0:1:0:", "Cats"), apply_edit("=be", "were"), apply_edit("k:0:4:0:", "a")
    ('cat', 'be', 'a')
    """
    if edit.startswith(_NEW_WORD):
        return edit[len(_NEW_WORD) :]
    case, cut_before, cut_after, added_before, added = edit.split(":", 4)
    changed = _CASES[case](form)
    begin, end = int(cut_before), len(changed) - int(cut_after)
    if begin >= end:
        return form
    return added[: int(added_before)] + changed[begin:end] + added[int(added_before) :]
