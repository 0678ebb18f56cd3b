"""Rules that split multiword tokens into words, learned from a treebank.

A rule makes each word from a range of the token's characters, counted from its beginning or its end, followed
by fixed characters. A token that occurred in training is split by its own rule. Any other token is split by
the rule of its ending (``n't``, ``'s``), if the rule was correct for at least nine of ten training tokens.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

# Begin, end, fixed characters, the same in capitals. A negative position counts from the end of the token; -1
# is after the last character.
Word = tuple[int, int, str, str]
Rule = tuple[Word, ...]
WHOLE = -1  # in place of the index of a rule: the token is not split
LONGEST_TOKEN = 64
_MAX_CONTEXT = 2  # an ending has at most this many characters before the part that is split off
_MAX_ENDING = 12
_MIN_TOKENS = 2  # smallest number of different tokens that an ending's rule splits correctly
_MIN_CORRECT_SHARE = 0.9  # smallest share of the tokens with an ending that its rule splits correctly
_MAX_EXCEPTION_SHARE = 0.03  # exceptions up to this share of a token's occurrences are ignored


@dataclass(frozen=True)
class Splits:
    """The learned rules.

    Attributes
    ----------
    rules : list of Rule
    tokens : dict of int
        Maps each lowercased token to 2 × the index of its rule (or ``WHOLE``), plus 1 if the token is split
        only in some contexts.
    endings : dict of int
        Maps each lowercased ending to the index of its rule (or ``WHOLE``).
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
    """Learn rules from tokens and their words; tokens of a single word have an empty list of words."""
    rule_counts: dict[str, Counter[Rule | None]] = defaultdict(Counter)
    for form, words in tokens:
        if 1 < len(form) <= LONGEST_TOKEN:
            rule_counts[lower(form)][find_rule(form, words, lower) if len(words) > 1 else None] += 1
    splits = Splits()
    numbers: dict[Rule, int] = {}

    def number_rule(rule: Rule | None) -> int:
        if rule is None:
            return WHOLE
        if rule not in numbers:
            numbers[rule] = len(splits.rules)
            splits.rules.append(rule)
        return numbers[rule]

    for form, counts in rule_counts.items():
        if len(counts) > (None in counts):
            rule, is_ambiguous = _choose_rule(counts)
            splits.tokens[form] = 2 * number_rule(rule) + is_ambiguous
    for ending, rule in _learn_endings(rule_counts).items():
        splits.endings[ending] = number_rule(rule)
    _add_exceptions(splits, rule_counts)
    return splits


def find_rule(form: str, words: Sequence[str], lower: Callable[[str], str] = str.lower) -> Rule:
    """Return the rule that makes the words from the token.

    >>> find_rule("don't", ["do", "n't"])
    ((0, -4, '', ''), (-4, -1, '', ''))
    >>> find_rule("du", ["de", "le"])
    ((0, 1, 'e', 'E'), (1, 1, 'le', 'LE'))
    """
    size, lowered = len(form), lower(form)
    end, last = size, len(words) - 1
    tail: list[Word] = []
    while last > 0 and words[last] and lowered[:end].endswith(lower(words[last])):
        begin = end - len(words[last])
        tail.insert(0, (begin - size - 1, end - size - 1, "", ""))
        end, last = begin, last - 1
    head: list[Word] = []
    begin = 0
    for word in words[: last + 1]:
        prefix_end = begin + _count_common_prefix(lowered[begin:end], lower(word))
        fixed = word[prefix_end - begin :]
        fixed = lower(fixed) if form.isupper() else fixed
        # The end of a single stem is counted from the end of the token, so that stems may have any length.
        end_in_rule = prefix_end - size - 1 if last == 0 else prefix_end
        head.append((begin, end_in_rule, fixed, fixed.upper()))
        begin = prefix_end
    return tuple(head + tail)


def _count_common_prefix(first: str, second: str) -> int:
    """Return the length of the common prefix."""
    pairs = zip(first, second, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _choose_rule(counts: Mapping[Rule | None, int]) -> tuple[Rule | None, bool]:
    """Return the rule of a token that was split, and whether it is split only in some contexts."""
    n_whole, total = counts.get(None, 0), sum(counts.values())
    rule = max((rule for rule in counts if rule is not None), key=lambda rule: (counts[rule], rule))
    if n_whole <= _MAX_EXCEPTION_SHARE * total:
        return rule, False
    if total - n_whole <= _MAX_EXCEPTION_SHARE * total:
        return None, False
    return rule, True


def _learn_endings(rule_counts: Mapping[str, Counter[Rule | None]]) -> dict[str, Rule | None]:
    """Return the rule of each reliable ending; None for an ending whose tokens are not split."""
    candidates = {
        form[len(form) - length :]
        for form, counts in rule_counts.items()
        for rule in counts
        if rule is not None and rule[0][1] < 0
        for length in _list_lengths(-rule[0][1] - 1, len(form))
    }
    counts_of_ending: dict[str, Counter[Rule | None]] = defaultdict(Counter)
    for form, counts in rule_counts.items():
        most_frequent_rule = max(counts, key=lambda rule: (counts[rule], rule is not None))
        for length in range(1, min(len(form) - 1, _MAX_ENDING) + 1):
            if form[-length:] in candidates:
                counts_of_ending[form[-length:]][most_frequent_rule] += 1
    rule_of_ending: dict[str, Rule | None] = {}
    for ending in sorted(counts_of_ending, key=len):
        rule, times = max(counts_of_ending[ending].items(), key=lambda item: (item[1], item[0] is not None))
        # An ending is needed only if the longest shorter ending has another rule.
        shorter_rule = next(
            (rule_of_ending[ending[k:]] for k in range(1, len(ending)) if ending[k:] in rule_of_ending), None
        )
        is_reliable = times >= _MIN_TOKENS and times >= _MIN_CORRECT_SHARE * sum(
            counts_of_ending[ending].values()
        )
        if is_reliable and rule != shorter_rule:
            rule_of_ending[ending] = rule
    return rule_of_ending


def _list_lengths(split_off: int, size: int) -> range:
    """Return the possible lengths of an ending whose last `split_off` characters are split off a token."""
    longest = min(split_off + _MAX_CONTEXT, size - 1, _MAX_ENDING)
    return range(split_off, longest + 1)


def _add_exceptions(splits: Splits, rule_counts: Mapping[str, Counter[Rule | None]]) -> None:
    """Add the training tokens that are never split although their ending has a rule."""
    for form in rule_counts:
        ending = next(
            (
                form[k:]
                for k in range(max(1, len(form) - _MAX_ENDING), len(form))
                if form[k:] in splits.endings
            ),
            "",
        )
        if form not in splits.tokens and splits.endings.get(ending, WHOLE) != WHOLE:
            splits.tokens[form] = 2 * WHOLE
