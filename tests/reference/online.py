"""The slow twin of online training: weights are a dictionary of conjunctions."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, takewhile

import numpy as np

from reference.arc_eager import LEFT_ARC, RIGHT_ARC, SHIFT, State, costs, finished, start_beam, step
from reference.conjunctions import number

MASK = 2**64 - 1
GOLD_WIDTH = 4  # width of the beam that is confined to the gold tree


class Random:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        z ^= z >> 31
        return ((z >> 32) * bound) >> 32

    def shuffle(self, items):
        for end in range(len(items), 1, -1):
            other = self.below(end)
            items[end - 1], items[other] = items[other], items[end - 1]


class Weights:
    """The averaged perceptron over conjunctions of at most `degree` columns, of which one may be outside the
    core.
    """

    def __init__(self, degree, n_classes, min_updates, core):
        self.degree, self.n_classes, self.min_updates = degree, n_classes, min_updates
        self.core = core
        self.updates = Counter()
        self.weights = {}
        self.corrections = {}
        self.examples = 1

    def conjunctions(self, row):
        result = [c for size in range(self.degree + 1) for c in combinations(row, size)]
        return [c for c in result if sum(column >= self.core for column in c) <= 1]

    def kept(self):
        return [c for c, times in self.updates.items() if times >= self.min_updates]

    def scores(self, row):
        frequent = [c for c in self.conjunctions(row) if self.updates[c] >= self.min_updates]
        scores = np.sum([self.weights[c] for c in frequent], axis=0) + np.zeros(self.n_classes)
        return np.array([0.0, scores[1] - scores[0]]) if self.n_classes == 2 else scores

    def update(self, row, correct, predicted):
        change = np.zeros(self.n_classes)
        change[correct], change[predicted] = 1, -1
        self._change(row, change)

    def add(self, row, class_index, amount):
        change = np.zeros(self.n_classes)
        change[class_index] = amount
        if self.n_classes != 2 or class_index == 1:  # the first of two classes has no score
            self._change(row, change)

    def _change(self, row, change):
        for c in self.conjunctions(row):
            self.updates[c] += 1
            self.weights[c] = self.weights.get(c, 0) + change
            self.corrections[c] = self.corrections.get(c, 0) + change * self.examples

    def continue_from_averages(self):
        unit = _unit([self.average(c) for c in self.kept()], self.n_classes)
        self.weights = {c: np.rint(self.average(c) / unit) * unit for c in self.weights}
        self.corrections = dict.fromkeys(self.weights, 0.0)
        self.examples = 1

    def average(self, conjunction):
        return self.weights[conjunction] - self.corrections[conjunction] / self.examples


def mean(runs):
    """Return the mean of runs: columns by descending number of conjunctions, weights by number, intercept."""
    frequent = dict.fromkeys(c for run in runs for c in run.kept())
    averages = {c: sum(_average(run, c) / len(runs) for run in runs) for c in frequent}
    unit = _unit(averages.values(), runs[0].n_classes)
    column_counts = Counter(column for c in frequent for column in c)
    columns = sorted(column_counts, key=lambda column: (-column_counts[column], column))
    rank = {column: rank_of_column for rank_of_column, column in enumerate(columns)}
    stored = {c: _round_to_unit(average, unit) for c, average in averages.items()}
    numbers = {
        number([rank[column] for column in c], runs[0].degree, True): stored[c]
        for c in frequent
        if c and np.rint(averages[c] / unit).any()
    }
    intercept = stored.get((), _round_to_unit(np.zeros(runs[0].n_classes), unit))
    return columns, dict(sorted(numbers.items())), intercept


def _average(run, conjunction):
    return run.average(conjunction) if conjunction in run.kept() else np.zeros(run.n_classes)


def _unit(averages, n_classes):
    """Return the unit to whose multiples averages are rounded: the finest power of two that fits 16 bits."""
    largest = max((np.abs(average).max() for average in averages), default=0.0)
    unit = 2.0**-10
    while largest * (2 if n_classes == 2 else 1) > unit * 32766:
        unit *= 2
    return unit


def _round_to_unit(average, unit):
    average = np.rint(average / unit) * unit
    return [float(average[1] - average[0])] if len(average) == 2 else average.tolist()


class Trainer:
    def __init__(
        self, frame, *, degree, min_updates, gold_epochs, exploration, seed, beam=1, greedy_epochs=0
    ):
        self.frame, self.gold_epochs, self.exploration = frame, gold_epochs, exploration
        self.beam, self.greedy_epochs = beam, greedy_epochs
        self.random = Random(seed)
        self.order = list(range(len(frame.sentences)))
        self.epochs = 0
        core = frame.core("moves"), frame.core("labels")
        self.moves = [Weights(degree, len(classes), min_updates, core[0]) for classes in frame.moves.classes]
        self.arcs = [Weights(degree, len(classes), min_updates, core[1]) for classes in frame.arcs.classes]

    def run_epoch(self):
        """Return counts of moves, wrong moves, arcs, wrong labels, sentences and wrong sentences."""
        if self.beam > 1 and self.epochs == self.greedy_epochs:
            for weights in self.moves + self.arcs:
                weights.continue_from_averages()
        self.random.shuffle(self.order)
        self.counts = Counter()
        greedy = self.beam == 1 or self.epochs < self.greedy_epochs
        learn = self.learn_greedily if greedy else self.learn_with_beam
        for sentence in self.order:
            learn(self.frame.sentences[sentence], *self.frame.trees[sentence])
        self.epochs += 1
        names = ("moves", "wrong moves", "arcs", "wrong labels", "sentences", "wrong sentences")
        return tuple(self.counts[name] for name in names)

    # --- With a beam --------------------------------------------------------------------------------

    def learn_with_beam(self, sentence, heads, labels):
        """Update at the step where the best wrong sequence leads the best correct sequence by most."""
        for weights in self.moves + self.arcs:
            weights.examples += 1
        scores = (
            lambda part, row: self.moves[part].scores(row),
            lambda part, row: self.arcs[part].scores(row),
        )
        free = correct = start_beam(len(sentence))
        max_lead = -np.inf
        while not finished(free) or not finished(correct):
            free = step(self.frame, sentence, free, self.beam, scores)
            correct = step(self.frame, sentence, correct, GOLD_WIDTH, scores, gold=(heads, labels))
            lead = free[0].score - correct[0].score
            if lead >= max_lead and not is_correct(free[0].path, heads, labels):
                max_lead, paths = lead, (correct[0].path, free[0].path)
        self.counts["sentences"] += 1
        if is_correct(free[0].path, heads, labels):
            return
        self.counts["wrong sentences"] += 1
        first_difference = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(*paths, strict=False))))
        for path, amount in zip(paths, (1, -1), strict=True):
            self.add_along(path, first_difference, amount, sentence)

    def add_along(self, path, first, amount, sentence):
        state, frame = State(len(sentence)), self.frame
        for position, (move, label) in enumerate(path):
            differs = position >= first
            if differs and state.stack:
                part = frame.moves.part(frame.move_case(state, sentence))
                if move in frame.moves.classes[part]:
                    class_index = frame.moves.classes[part].index(move)
                    self.moves[part].add(frame.row("moves", state, sentence), class_index, amount)
            if differs and label is not None:
                arc = state.arc(move)
                part = frame.arcs.part(frame.arc_case(arc, sentence))
                class_index = frame.arcs.classes[part].index(frame.labels.index(label))
                self.arcs[part].add(frame.row("labels", state, sentence, arc), class_index, amount)
            state.apply(move, label)

    # --- Greedily -----------------------------------------------------------------------------------

    def learn_greedily(self, sentence, heads, labels):
        state = State(len(sentence))
        while not state.finished:
            move = self.learn_move(state, sentence, heads) if state.stack else SHIFT
            label = None
            if move in (LEFT_ARC, RIGHT_ARC):
                label = self.learn_label(state, sentence, state.arc(move), heads, labels)
            state.apply(move, label)

    def learn_move(self, state, sentence, heads):
        part = self.frame.moves.part(self.frame.move_case(state, sentence))
        classes, weights = self.frame.moves.classes[part], self.moves[part]
        row = self.frame.row("moves", state, sentence)
        scores = dict(zip(classes, weights.scores(row), strict=True))
        weights.examples += 1
        move_costs = {move: cost for move, cost in costs(state, heads).items() if move in classes}
        if not move_costs:
            return min(costs(state, heads))
        min_cost = min(move_costs.values())
        correct = max((m for m in classes if move_costs.get(m) == min_cost), key=scores.__getitem__)
        wrong_moves = [m for m in classes if move_costs.get(m, min_cost) != min_cost]
        self.counts["moves"] += 1
        if not wrong_moves or scores[predicted := max(wrong_moves, key=scores.__getitem__)] < scores[correct]:
            return correct
        self.counts["wrong moves"] += 1
        weights.update(row, classes.index(correct), classes.index(predicted))
        exploring = self.epochs >= self.gold_epochs and self.random.below(1 << 20) < self.exploration * (
            1 << 20
        )
        return predicted if exploring else correct

    def learn_label(self, state, sentence, arc, heads, labels):
        part = self.frame.arcs.part(self.frame.arc_case(arc, sentence))
        classes, weights = self.frame.arcs.classes[part], self.arcs[part]
        row = self.frame.row("labels", state, sentence, arc)
        scores = weights.scores(row)
        best_class = int(np.argmax(scores))
        weights.examples += 1
        head, child = arc
        if heads[child - 1] != head:
            return self.frame.labels[classes[best_class]]
        gold = labels[child - 1]
        correct = classes.index(self.frame.labels.index(gold))
        self.counts["arcs"] += 1
        wrong_labels = [place for place in range(len(classes)) if place != correct]
        if (
            not wrong_labels
            or scores[predicted := max(wrong_labels, key=scores.__getitem__)] < scores[correct]
        ):
            return gold
        self.counts["wrong labels"] += 1
        weights.update(row, correct, predicted)
        return gold if self.epochs < self.gold_epochs else self.frame.labels[classes[best_class]]


def is_correct(path, heads, labels):
    """Return whether all moves of a sequence have the least cost, and gold arcs have their labels."""
    state = State(len(heads))
    for move, label in path:
        move_costs = costs(state, heads)
        if move_costs[move] > min(move_costs.values()):
            return False
        if move in (LEFT_ARC, RIGHT_ARC):
            head, child = state.arc(move)
            if heads[child - 1] == head and labels[child - 1] != label:
                return False
        state.apply(move, label)
    return True
