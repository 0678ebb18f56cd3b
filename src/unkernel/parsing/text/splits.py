"""Rules that split multiword tokens into words, learned from a treebank.

A rule makes each word from some characters of the token, counted from its beginning or its end, and from
fixed characters. Tokens that occurred in training have rules of their own. Other tokens are split by their
endings (``n't``, ``'s``), whose rules were correct for at least nine tokens of ten.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Word = tuple[int, int, str, str]  # begin, end, added characters, added characters in capitals
Rule = tuple[Word, ...]
WHOLE = -1  # no rule
LONGEST_TOKEN = 64
_MAX_CONTEXT = 2  # longest context in characters, before the part that is split off
_MAX_ENDING = 12
_MIN_TOKENS = 2  # an ending is learned from this number of different tokens at least
_MIN_CORRECT_SHARE = 0.9  # share of these tokens for which the rule must be correct
_MAX_EXCEPTION_SHARE = 0.03  # a smaller share of splits, or of whole tokens, is ignored


@dataclass(frozen=True)
class Splits:
    """The learned rules.

    Attributes
    ----------
    rules : list of Rule
    tokens : dict of int
        For tokens in lower case: twice the number of the token's rule (or ``WHOLE``), plus 1 if the words
        around it decide whether it is split.
    endings : dict of int
        Endings in lower case, and their rules.
    """

    rules: list[Rule] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)
    endings: dict[str, int] = field(default_factory=dict)

    @property
    def longest_ending(self) -> int:
        return max(map(len, self.endings), default=0)


def learn_splits(
    tokens: Iterable[tuple[str, Sequence[str]]], lower: Callable[[str], str] = str.lower
) -> Splits:
    """Learn rules from tokens and their words; a token that is one word has an empty list."""
    seen: dict[str, Counter[Rule | None]] = defaultdict(Counter)
    for form, words in tokens:
        if 1 < len(form) <= LONGEST_TOKEN:
            seen[lower(form)][find_rule(form, words, lower) if len(words) > 1 else None] += 1
    learnt = Splits()
    numbers: dict[Rule, int] = {}

    def number(rule: Rule | None) -> int:
        if rule is None:
            return WHOLE
        if rule not in numbers:
            numbers[rule] = len(learnt.rules)
            learnt.rules.append(rule)
        return numbers[rule]

    for form, counts in seen.items():
        if len(counts) > (None in counts):
            rule, is_ambiguous = _choose_rule(counts)
            learnt.tokens[form] = 2 * number(rule) + is_ambiguous
    for ending, rule in _learn_endings(seen).items():
        learnt.endings[ending] = number(rule)
    _add_exceptions(learnt, seen)
    return learnt


def find_rule(form: str, words: Sequence[str], lower: Callable[[str], str] = str.lower) -> Rule:
    """Return the rule that makes the words from the token.

    >>> find_rule("don't", ["do", "n't"])
    ((0, -4, '', ''), (-4, -1, '', ''))
    >>> find_rule("du", ["de", "le"])
    ((0, 1, 'e', 'E'), (1, 1, 'le', 'LE'))
    """
    size, small = len(form), lower(form)
    end, last = size, len(words) - 1
    tail: list[Word] = []
    while last > 0 and words[last] and small[:end].endswith(lower(words[last])):
        begin = end - len(words[last])
        tail.insert(0, (begin - size - 1, end - size - 1, "", ""))
        end, last = begin, last - 1
    head: list[Word] = []
    begin = 0
    for word in words[: last + 1]:
        until = begin + _count_common_prefix(small[begin:end], lower(word))
        rest = word[until - begin :]
        rest = lower(rest) if form.isupper() else rest
        # Counted from the end of the token for a stem of any length, else from its beginning.
        place = until - size - 1 if last == 0 else until
        head.append((begin, place, rest, rest.upper()))
        begin = until
    return tuple(head + tail)


def _count_common_prefix(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    pairs = zip(one, other, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _choose_rule(counts: Mapping[Rule | None, int]) -> tuple[Rule | None, bool]:
    """Return the rule of a token that was split, and whether the words around it decide."""
    whole, total = counts.get(None, 0), sum(counts.values())
    rule = max((rule for rule in counts if rule is not None), key=lambda rule: (counts[rule], rule))
    if whole <= _MAX_EXCEPTION_SHARE * total:
        return rule, False
    return (None, False) if total - whole <= _MAX_EXCEPTION_SHARE * total else (rule, True)


def _learn_endings(seen: Mapping[str, Counter[Rule | None]]) -> dict[str, Rule | None]:
    """Return rules for endings after a stem of any length; None if such tokens are not split."""
    candidates = {
        form[len(form) - length :]
        for form, counts in seen.items()
        for rule in counts
        if rule is not None and rule[0][1] < 0
        for length in _list_lengths(-rule[0][1] - 1, len(form))
    }
    counts_of_ending: dict[str, Counter[Rule | None]] = defaultdict(Counter)
    for form, counts in seen.items():
        usual = max(counts, key=lambda rule: (counts[rule], rule is not None))
        for length in range(1, min(len(form) - 1, _MAX_ENDING) + 1):
            if form[-length:] in candidates:
                counts_of_ending[form[-length:]][usual] += 1
    kept: dict[str, Rule | None] = {}
    for ending in sorted(counts_of_ending, key=len):
        rule, times = max(counts_of_ending[ending].items(), key=lambda item: (item[1], item[0] is not None))
        shorter = next((kept[ending[k:]] for k in range(1, len(ending)) if ending[k:] in kept), None)
        is_reliable = times >= _MIN_TOKENS and times >= _MIN_CORRECT_SHARE * sum(
            counts_of_ending[ending].values()
        )
        if is_reliable and rule != shorter:
            kept[ending] = rule
    return kept


def _list_lengths(split_off: int, size: int) -> range:
    longest = min(split_off + _MAX_CONTEXT, size - 1, _MAX_ENDING)
    return range(split_off, longest + 1)


def _add_exceptions(learnt: Splits, seen: Mapping[str, Counter[Rule | None]]) -> None:
    """Add tokens that are never split, although their ending has a rule."""
    for form in seen:
        ending = next(
            (
                form[k:]
                for k in range(max(1, len(form) - _MAX_ENDING), len(form))
                if form[k:] in learnt.endings
            ),
            "",
        )
        if form not in learnt.tokens and learnt.endings.get(ending, WHOLE) != WHOLE:
            learnt.tokens[form] = 2 * WHOLE
