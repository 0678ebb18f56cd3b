"""The slow twin of the arc-eager parser: states are lists, and costs come from an exhaustive search.

Words count from 1. A sentence is a list of ``Word`` (data.text.conll), a tree two lists: heads, labels.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from functools import cache
from typing import NamedTuple

from reference.conjunctions import score_entries
from reference.dependencies import deprojectivised, projectivised
from reference.features import Templates, column_value

MOVES = SHIFT, REDUCE, LEFT_ARC, RIGHT_ARC = range(4)
FEWEST_LIFTED = 5


# --- The transition system --------------------------------------------------------------------------


class State:
    def __init__(self, n_words):
        self.stack = []
        self.queue = list(range(1, n_words + 1))
        self.unshifted = False  # the next word has been on the stack before
        self.heads = [0] * n_words
        self.labels = [None] * n_words

    @property
    def finished(self):
        return not self.stack and not self.queue

    @property
    def top(self):
        return self.stack[-1] if self.stack else 0

    @property
    def next(self):
        return self.queue[0] if self.queue else 0

    def head(self, word):
        return self.heads[word - 1]

    def children(self, word):
        """Return the children on the left and on the right, the outermost first."""
        children = [child for child, head in enumerate(self.heads, start=1) if head == word]
        return [child for child in children if child < word], [
            child for child in reversed(children) if child > word
        ]

    def valid(self, move):
        if move == SHIFT:
            return not self.unshifted or not self.stack
        if not self.stack:
            return False
        return move == RIGHT_ARC or (self.head(self.top) != 0) == (move == REDUCE)

    def arc(self, move):
        """Return the head and the child that a move joins."""
        return (self.next, self.top) if move == LEFT_ARC else (self.top, self.next)

    def apply(self, move, label=None):
        if move in (LEFT_ARC, RIGHT_ARC):
            head, child = self.arc(move)
            self.heads[child - 1], self.labels[child - 1] = head, label
        if move in (REDUCE, LEFT_ARC):
            self.stack.pop()
        else:
            self.stack.append(self.queue.pop(0))
            self.unshifted = False
        while not self.queue and self.stack:
            last = self.stack.pop()
            if self.head(last) == 0 and self.stack:
                self.queue, self.unshifted = [last], True


def costs(state, gold):
    """Return for each valid move the number of gold heads that it makes impossible; without UNSHIFT."""
    headed = frozenset(word for word in state.stack if state.head(word))
    before = _situation(state.stack, headed, state.queue)
    most = _search(tuple(gold))
    return {
        move: most(*before) - gain - most(*after)
        for move, gain, after in _continuations(gold, *before)
        if state.valid(move)
    }


def _situation(stack, headed, queue):
    return tuple(stack), frozenset(headed) & frozenset(stack), tuple(queue)


def _continuations(gold, stack, headed, queue):
    """Yield the moves, whether each makes a gold arc, and the state after it."""
    yield SHIFT, 0, _situation([*stack, queue[0]], headed, queue[1:])
    if not stack:
        return
    top, first = stack[-1], queue[0]
    if top in headed:
        yield REDUCE, 0, _situation(stack[:-1], headed, queue)
    else:
        yield LEFT_ARC, int(gold[top - 1] == first), _situation(stack[:-1], headed, queue)
    yield (
        RIGHT_ARC,
        int(gold[first - 1] == top),
        _situation([*stack, first], headed | {first}, queue[1:]),
    )


@cache
def _search(gold):
    @cache
    def most(stack, headed, queue):
        """Return the largest number of gold heads that can still be reached; a word without a head at the end
        is a root.
        """
        if not queue:
            return sum(gold[word - 1] == 0 for word in stack if word not in headed)
        return max(gain + most(*after) for _, gain, after in _continuations(gold, stack, headed, queue))

    return most


def canonical_moves(heads):
    """Return the moves that build a projective tree: arcs as soon as possible, REDUCE only if necessary."""
    state, moves = State(len(heads)), []
    while not state.finished:
        lost = costs(state, heads)
        moves.append(
            min((m for m in (LEFT_ARC, RIGHT_ARC, SHIFT, REDUCE) if m in lost), key=lost.__getitem__)
        )
        state.apply(moves[-1])
    return moves


# --- Training data ----------------------------------------------------------------------------------


class Frame:
    """Templates, labels, columns and parts found in training."""

    def __init__(self, template_text, sentences, *, split, min_count):
        self.templates = Templates(template_text)
        self.split = split
        self.sentences = [list(sentence) for sentence in sentences]
        self._read_trees()
        self._count(min_count)

    def _read_trees(self):
        words = [word for sentence in self.sentences for word in sentence]
        roots = Counter(word.deprel for word in words if word.head == 0)
        plain = list(dict.fromkeys(word.deprel for word in words))
        self.root_label = max(plain, key=lambda label: roots[label])  # the first of the most frequent
        trees = [projectivised([w.head for w in s], [w.deprel for w in s]) for s in self.sentences]
        marks = Counter(mark for _, _, marks in trees for mark in marks if mark)
        self.marks = {label: (label, None) for label in plain}
        for label, head_label in marks:
            if marks[label, head_label] >= FEWEST_LIFTED:
                self.marks[f"{label}↑{head_label}"] = (label, head_label)
        self.labels = list(self.marks)
        self.trees = [
            (heads, [self._marked(*both) for both in zip(labels, marks, strict=True)])
            for heads, labels, marks in trees
        ]

    def _marked(self, label, mark):
        name = mark and f"{mark[0]}↑{mark[1]}"
        return name if name in self.marks else label

    def _count(self, min_count):
        counts = {"moves": Counter(), "labels": Counter()}
        self.moves, self.arcs = Parts(), Parts()
        for sentence, (heads, labels) in zip(self.sentences, self.trees, strict=True):
            self.templates.learn(sentence)
            state = State(len(sentence))
            for move in canonical_moves(heads):
                counts["moves"].update(self.templates.features("moves", state, sentence))
                self.moves.count(self.move_case(state, sentence), move)
                label = None
                if move in (LEFT_ARC, RIGHT_ARC):
                    arc = state.arc(move)
                    label = labels[arc[1] - 1]
                    counts["labels"].update(self.templates.features("labels", state, sentence, arc))
                state.apply(move, label)
            for child, (head, label) in enumerate(zip(heads, labels, strict=True), start=1):
                if head:
                    self.arcs.count(self.arc_case((head, child), sentence), self.labels.index(label))
        self.moves.settle(SHIFT, self._order_of_cases("xpos"))
        self.arcs.settle(self.labels.index(self.root_label), self._order_of_cases("upos"))
        self.columns = {section: self._numbered(children, min_count) for section, children in counts.items()}

    def _order_of_cases(self, column):
        """Return tags in the order of their first appearance, for each side."""
        tags = dict.fromkeys(column_value(word, column) for sentence in self.sentences for word in sentence)
        return [None, *(case for tag in tags for case in (tag, (tag, False), (tag, True)))]

    def _numbered(self, counts, min_count):
        """Return columns in the order of templates, then by frequency, then by first appearance."""

        def order(feature):
            template, values = feature
            return template, -counts[feature], [self.templates.order(*value, self.labels) for value in values]

        frequent = [feature for feature, times in counts.items() if times >= min_count]
        return {feature: column for column, feature in enumerate(sorted(frequent, key=order))}

    def core(self, section):
        """Return the number of columns that are joined with all others."""
        return sum(template < self.templates.core[section] for template, _ in self.columns[section])

    def row(self, section, state, sentence, arc=None):
        columns = self.columns[section]
        result = self.templates.features(section, state, sentence, arc)
        return [columns[feature] for feature in result if feature in columns]

    def move_case(self, state, sentence):
        return column_value(sentence[state.next - 1], "xpos") if self.split == "both" else None

    def arc_case(self, arc, sentence):
        head, child = arc
        return (sentence[child - 1].upos, child < head) if self.split != "none" else None


class Parts:
    """The assignment of decisions to classifiers and classes: one for each case, the most frequent first."""

    def __init__(self):
        self.counts = {}

    def count(self, case, decision):
        self.counts.setdefault(case, Counter())[decision] += 1

    def settle(self, otherwise, order):
        cases = sorted((case for case in order if case in self.counts), key=lambda c: -self.counts[c].total())
        self.classes = [sorted(self.counts[case]) for case in cases] or [[otherwise]]
        self.numbers = {case: number for number, case in enumerate(cases)}

    def part(self, case):
        return self.numbers.get(case, 0)


# --- Parsing ----------------------------------------------------------------------------------------


class CloseCallError(Exception):
    """Two scores are so close that the order of summation decides which is larger."""


def parse(frame, sentence, move_scores, label_scores, tolerance=0.0):
    """Parse greedily; scores are functions of a part and a row. Return heads and labels."""
    state = State(len(sentence))
    while not state.finished:
        move = best_move(frame, state, sentence, move_scores, tolerance)
        label = None
        if move in (LEFT_ARC, RIGHT_ARC):
            arc = state.arc(move)
            part = frame.arcs.part(frame.arc_case(arc, sentence))
            scores = label_scores(part, frame.row("labels", state, sentence, arc))
            label = frame.labels[best(dict(zip(frame.arcs.classes[part], scores, strict=True)), tolerance)]
        state.apply(move, label)
    labels = [label or frame.root_label for label in state.labels]
    return deprojectivised(state.heads, labels, frame.marks)


def best_move(frame, state, sentence, move_scores, tolerance):
    valid = [move for move in MOVES if state.valid(move)]
    if not state.stack:
        return SHIFT
    part = frame.moves.part(frame.move_case(state, sentence))
    scores = move_scores(part, frame.row("moves", state, sentence))
    known = {m: score for m, score in zip(frame.moves.classes[part], scores, strict=True) if m in valid}
    return best(known, tolerance) if known else valid[0]


def best(scores, tolerance):
    """Return the first class with the largest score."""
    chosen = max(scores, key=scores.__getitem__)
    if any(scores[chosen] - score < tolerance for one, score in scores.items() if one != chosen):
        raise CloseCallError
    return chosen


# --- Parsing with a beam ----------------------------------------------------------------------------


class Item(NamedTuple):
    score: float
    state: State
    path: tuple  # the moves that led to the state, each with its label


def beginning(n_words):
    return [Item(0.0, State(n_words), ())]


def finished(beam):
    return all(item.state.finished for item in beam)


def step(frame, sentence, beam, width, scores, *, gold=None):
    """Extend each item by one move in every way, or only by moves that lose least of the gold tree."""
    move_scores, label_scores = scores
    result = []
    for place, item in enumerate(beam):
        if item.state.finished:
            result.append((item, place, SHIFT))
            continue
        for move, score in moves_with_scores(frame, item.state, sentence, move_scores, gold):
            label, label_score = None, 0.0
            if move in (LEFT_ARC, RIGHT_ARC):
                arc = item.state.arc(move)
                label, label_score = label_with_score(
                    frame, item.state, sentence, arc, label_scores, gold=gold
                )
            after = deepcopy(item.state)
            after.apply(move, label)
            after = Item(item.score + score + label_score, after, (*item.path, (move, label)))
            result.append((after, place, move))
    result.sort(key=lambda one: (-one[0].score, *one[1:]))
    return [item for item, _, _ in result[:width]]


def moves_with_scores(frame, state, sentence, move_scores, gold):
    if not state.stack:
        return [(SHIFT, 0.0)]
    possible = [move for move in MOVES if state.valid(move)]
    if gold is not None:
        lost = costs(state, gold[0])
        possible = [move for move in possible if lost[move] == min(lost.values())]
    part = frame.moves.part(frame.move_case(state, sentence))
    scores = move_scores(part, frame.row("moves", state, sentence))
    known = [one for one in zip(frame.moves.classes[part], scores, strict=True) if one[0] in possible]
    return known or [(possible[0], 0.0)]


def label_with_score(frame, state, sentence, arc, label_scores, *, gold):
    part = frame.arcs.part(frame.arc_case(arc, sentence))
    classes = frame.arcs.classes[part]
    if len(classes) == 1:
        return frame.labels[classes[0]], 0.0
    scores = label_scores(part, frame.row("labels", state, sentence, arc))
    head, child = arc
    if gold is None or gold[0][child - 1] != head:
        chosen = max(range(len(classes)), key=scores.__getitem__)
    else:
        chosen = classes.index(frame.labels.index(gold[1][child - 1]))
    return frame.labels[classes[chosen]], scores[chosen]


def parse_with_beam(frame, sentence, scores, width):
    beam = beginning(len(sentence))
    while not finished(beam):
        beam = step(frame, sentence, beam, width, scores)
    labels = [label or frame.root_label for label in beam[0].state.labels]
    return deprojectivised(beam[0].state.heads, labels, frame.marks)


def scores_of(classifiers):
    """Return scores from the weights of compiled classifiers; None is a classifier with a single class."""

    def scores(part, row):
        if classifiers[part] is None:
            return [0.0]
        result = score_entries(classifiers[part].model, dict.fromkeys(row, 1.0)).tolist()
        return [0.0, *result] if len(result) == 1 else result

    return scores
