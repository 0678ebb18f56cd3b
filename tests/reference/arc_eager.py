"""The slow twin of the arc-eager parser: states are lists, and costs come from an exhaustive search.

Words count from 1. A sentence is a list of ``Word`` (data.text.conll), a tree two lists: heads, labels.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from functools import cache
from typing import NamedTuple

from reference.conjunctions import score_entries
from reference.dependencies import deprojectivise, projectivise
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
    """Return for each valid move the number of gold heads that it makes impossible, ignoring UNSHIFT."""
    headed = frozenset(word for word in state.stack if state.head(word))
    situation = _situation(state.stack, headed, state.queue)
    most_gold_heads = _search(tuple(gold))
    return {
        move: most_gold_heads(*situation) - gain - most_gold_heads(*after)
        for move, gain, after in _continuations(gold, *situation)
        if state.valid(move)
    }


def _situation(stack, words_with_head, queue):
    return tuple(stack), frozenset(words_with_head) & frozenset(stack), tuple(queue)


def _continuations(gold, stack, words_with_head, queue):
    """Yield each possible move, 1 if it makes a gold arc or 0, and the situation after it."""
    yield SHIFT, 0, _situation([*stack, queue[0]], words_with_head, queue[1:])
    if not stack:
        return
    top, first = stack[-1], queue[0]
    if top in words_with_head:
        yield REDUCE, 0, _situation(stack[:-1], words_with_head, queue)
    else:
        yield LEFT_ARC, int(gold[top - 1] == first), _situation(stack[:-1], words_with_head, queue)
    yield (
        RIGHT_ARC,
        int(gold[first - 1] == top),
        _situation([*stack, first], words_with_head | {first}, queue[1:]),
    )


@cache
def _search(gold):
    @cache
    def most_gold_heads(stack, headed, queue):
        """Return the largest number of gold heads that moves can reach. Words without a head are roots."""
        if not queue:
            return sum(gold[word - 1] == 0 for word in stack if word not in headed)
        return max(
            gain + most_gold_heads(*after) for _, gain, after in _continuations(gold, stack, headed, queue)
        )

    return most_gold_heads


def canonical_moves(heads):
    """Return the moves that build a projective tree: arcs early, and REDUCE only if necessary."""
    state, moves = State(len(heads)), []
    while not state.finished:
        move_costs = costs(state, heads)
        moves.append(
            min(
                (m for m in (LEFT_ARC, RIGHT_ARC, SHIFT, REDUCE) if m in move_costs),
                key=move_costs.__getitem__,
            )
        )
        state.apply(moves[-1])
    return moves


# --- Training data ----------------------------------------------------------------------------------


class Frame:
    """A trained parser without its weights: templates, labels, columns, and classes of each part."""

    def __init__(self, template_text, sentences, *, split, min_count):
        self.templates = Templates(template_text)
        self.split = split
        self.sentences = [list(sentence) for sentence in sentences]
        self._read_trees()
        self._count_features(min_count)

    def _read_trees(self):
        words = [word for sentence in self.sentences for word in sentence]
        roots = Counter(word.deprel for word in words if word.head == 0)
        labels_in_order = list(dict.fromkeys(word.deprel for word in words))
        self.root_label = max(
            labels_in_order, key=lambda label: roots[label]
        )  # the first of the most frequent
        trees = [projectivise([w.head for w in s], [w.deprel for w in s]) for s in self.sentences]
        marks = Counter(mark for _, _, marks in trees for mark in marks if mark)
        self.marks = {label: (label, None) for label in labels_in_order}
        for label, head_label in marks:
            if marks[label, head_label] >= FEWEST_LIFTED:
                self.marks[f"{label}↑{head_label}"] = (label, head_label)
        self.labels = list(self.marks)
        self.trees = [
            (heads, [self._mark_label(*pair) for pair in zip(labels, marks, strict=True)])
            for heads, labels, marks in trees
        ]

    def _mark_label(self, label, mark):
        name = mark and f"{mark[0]}↑{mark[1]}"
        return name if name in self.marks else label

    def _count_features(self, min_count):
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
        self.moves.assign_parts(SHIFT, self._order_of_cases("xpos"))
        self.arcs.assign_parts(self.labels.index(self.root_label), self._order_of_cases("upos"))
        self.columns = {
            section: self._number_features(children, min_count) for section, children in counts.items()
        }

    def _order_of_cases(self, column):
        """Return tags in the order of their first appearance, for each side."""
        tags = dict.fromkeys(column_value(word, column) for sentence in self.sentences for word in sentence)
        return [None, *(case for tag in tags for case in (tag, (tag, False), (tag, True)))]

    def _number_features(self, counts, min_count):
        """Return columns in the order of templates, then by frequency, then by first appearance."""

        def order(feature):
            template, values = feature
            return template, -counts[feature], [self.templates.order(*value, self.labels) for value in values]

        frequent = [feature for feature, times in counts.items() if times >= min_count]
        return {feature: column for column, feature in enumerate(sorted(frequent, key=order))}

    def core(self, section):
        """Return the number of core columns, which are joined with all columns."""
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
    """One classifier ("part") for each case of the split, the most frequent case first, and its classes."""

    def __init__(self):
        self.counts = {}

    def count(self, case, decision):
        self.counts.setdefault(case, Counter())[decision] += 1

    def assign_parts(self, default, order):
        cases = sorted((case for case in order if case in self.counts), key=lambda c: -self.counts[c].total())
        self.classes = [sorted(self.counts[case]) for case in cases] or [[default]]
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
    return deprojectivise(state.heads, labels, frame.marks)


def best_move(frame, state, sentence, move_scores, tolerance):
    valid = [move for move in MOVES if state.valid(move)]
    if not state.stack:
        return SHIFT
    part = frame.moves.part(frame.move_case(state, sentence))
    scores = move_scores(part, frame.row("moves", state, sentence))
    scores_of_valid = {
        m: score for m, score in zip(frame.moves.classes[part], scores, strict=True) if m in valid
    }
    return best(scores_of_valid, tolerance) if scores_of_valid else valid[0]


def best(scores, tolerance):
    """Return the first class with the largest score."""
    best_class = max(scores, key=scores.__getitem__)
    if any(
        scores[best_class] - score < tolerance for class_, score in scores.items() if class_ != best_class
    ):
        raise CloseCallError
    return best_class


# --- Parsing with a beam ----------------------------------------------------------------------------


class Item(NamedTuple):
    score: float
    state: State
    path: tuple  # the moves that led to the state, each with its label


def start_beam(n_words):
    return [Item(0.0, State(n_words), ())]


def finished(beam):
    return all(item.state.finished for item in beam)


def step(frame, sentence, beam, width, scores, *, gold=None):
    """Extend each item by every valid move, or, given a gold tree, by the moves of the least cost."""
    move_scores, label_scores = scores
    result = []
    for position, item in enumerate(beam):
        if item.state.finished:
            result.append((item, position, SHIFT))
            continue
        for move, score in moves_with_scores(frame, item.state, sentence, move_scores, gold):
            label, label_score = None, 0.0
            if move in (LEFT_ARC, RIGHT_ARC):
                arc = item.state.arc(move)
                label, label_score = label_with_score(
                    frame, item.state, sentence, arc, label_scores, gold=gold
                )
            next_state = deepcopy(item.state)
            next_state.apply(move, label)
            extended = Item(item.score + score + label_score, next_state, (*item.path, (move, label)))
            result.append((extended, position, move))
    result.sort(key=lambda entry: (-entry[0].score, *entry[1:]))
    return [item for item, _, _ in result[:width]]


def moves_with_scores(frame, state, sentence, move_scores, gold):
    if not state.stack:
        return [(SHIFT, 0.0)]
    valid = [move for move in MOVES if state.valid(move)]
    if gold is not None:
        move_costs = costs(state, gold[0])
        valid = [move for move in valid if move_costs[move] == min(move_costs.values())]
    part = frame.moves.part(frame.move_case(state, sentence))
    scores = move_scores(part, frame.row("moves", state, sentence))
    scored = [
        (move, score) for move, score in zip(frame.moves.classes[part], scores, strict=True) if move in valid
    ]
    return scored or [(valid[0], 0.0)]


def label_with_score(frame, state, sentence, arc, label_scores, *, gold):
    part = frame.arcs.part(frame.arc_case(arc, sentence))
    classes = frame.arcs.classes[part]
    if len(classes) == 1:
        return frame.labels[classes[0]], 0.0
    scores = label_scores(part, frame.row("labels", state, sentence, arc))
    head, child = arc
    if gold is None or gold[0][child - 1] != head:
        best_class = max(range(len(classes)), key=scores.__getitem__)
    else:
        best_class = classes.index(frame.labels.index(gold[1][child - 1]))
    return frame.labels[classes[best_class]], scores[best_class]


def parse_with_beam(frame, sentence, scores, width):
    beam = start_beam(len(sentence))
    while not finished(beam):
        beam = step(frame, sentence, beam, width, scores)
    labels = [label or frame.root_label for label in beam[0].state.labels]
    return deprojectivise(beam[0].state.heads, labels, frame.marks)


def scores_of(classifiers):
    """Return a function that scores rows by the weights of compiled classifiers; None has a single class."""

    def scores(part, row):
        if classifiers[part] is None:
            return [0.0]
        result = score_entries(classifiers[part].model, dict.fromkeys(row, 1.0)).tolist()
        return [0.0, *result] if len(result) == 1 else result

    return scores
