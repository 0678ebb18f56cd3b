"""The slow twin of tagging: one column after another, word by word."""

from __future__ import annotations

from collections import Counter

import numpy as np

from reference.chunking import by_frequency, plain, sections_of
from reference.chunking import value as word_value
from reference.online import Random, Weights

LEAST, RARE = 5, 0.02  # of words whose tags are known in training, and of tags that are ignored
NEARLY = 0.99  # the share of a class that is certain


def seen_tags(sentences, column, least):
    """Return words with this number of occurrences, in their plain form, and their tags by descending
    frequency.
    """
    first_seen = {}
    tags = {}
    for sentence in sentences:
        for word in sentence:
            first_seen.setdefault(word[column], len(first_seen))
            tags.setdefault(plain(word["form"]), Counter())[word[column]] += 1
    return {
        word: "|".join(
            sorted(
                (tag for tag in own if own[tag] >= RARE * own.total()),
                key=lambda tag: (-own[tag], first_seen[tag]),
            )
        )
        for word, own in tags.items()
        if own.total() >= least
    }


class Column:
    """One column: learnt from sentences, whose words are dicts of columns, and predicted for others.

    A word with one class at least `often` times, and nearly always, needs no classifier.
    """

    def __init__(
        self, name, templates, before, split, *, often, degree, min_count, min_updates, epochs, gold, seed
    ):
        core, beside = sections_of(templates)
        self.name, self.templates, self.before = name, core + beside, before
        self.core_templates = len(core)
        self.split, self.often = before[:split], often
        self.degree, self.min_count, self.min_updates = degree, min_count, min_updates
        self.epochs, self.gold, self.random = epochs, gold, Random(seed)

    def learn(self, sentences):
        self.seen = seen_tags(sentences, self.name, LEAST)
        self.classes = list(dict.fromkeys(word[self.name] for s in sentences for word in s))
        self.values = {
            part: {self.value(part, word) for s in sentences for word in s}
            for template in self.templates
            for part, _ in template
            if part != "tag"
        }
        counts = Counter(
            feature for s in sentences for i in range(len(s)) for feature in self.features(s, i, s)
        )
        kept = [feature for feature, count in counts.items() if count >= self.min_count]
        self.numbers = {feature: number for number, feature in enumerate(by_frequency(kept, counts))}
        core = sum(template < self.core_templates for template, _ in kept)
        number = self.classes.index
        words = [word for s in sentences for word in s]
        self.certain = self._certain(words)
        self.parts = {}
        for case in sorted({self.case(word) for word in words}, key=self._order(sentences)):
            own = [word for word in words if self.case(word) == case]
            every = {word[self.name] for word in own}
            self.parts[case] = sorted(number(one) for one in self._learnt(case, own) or every)
        self.weights = {
            case: Weights(self.degree, len(own), self.min_updates, core) for case, own in self.parts.items()
        }
        order = list(range(len(sentences)))
        for epoch in range(self.epochs):
            self.random.shuffle(order)
            for place in order:
                self.learn_sentence(sentences[place], epoch)
        self.seen = seen_tags(sentences, self.name, 1)

    def _order(self, sentences):
        """Return the order of cases: by the numbers of their values in the order of first appearance."""
        numbers = {
            name: {v: n for n, v in enumerate(dict.fromkeys(w[name] for s in sentences for w in s))}
            for name in self.split
        }
        return lambda case: [numbers[name][value] for name, value in zip(self.split, case, strict=True)]

    def _certain(self, words):
        """Return the class of words that nearly always have it, by form and case."""
        seen = {}
        for word in words:
            seen.setdefault((word["form"], self.case(word)), Counter())[word[self.name]] += 1
        most = {key: (own.most_common(1)[0], own.total()) for key, own in seen.items()}
        return {
            key: one
            for key, ((one, count), total) in most.items()
            if count >= max(NEARLY * total, self.often)
        }

    def _learnt(self, case, words):
        """Return the classes of a part that have several words, or a word with several classes."""
        forms, doubted = {}, set()
        for word in words:
            forms.setdefault(word[self.name], set()).add(word["form"])
            if (word["form"], case) not in self.certain:
                doubted.add(word[self.name])
        return {one for one, own in forms.items() if len(own) > 1 or one in doubted}

    def case(self, word):
        return tuple(word[name] for name in self.split)

    def value(self, attribute, word):
        if attribute == "seen":
            return self.seen.get(plain(word["form"]), "")
        if attribute in self.before:
            return word[attribute]
        return word_value(attribute, word["form"], "")

    def features(self, sentence, i, tagged):
        def one(attribute, offset):
            at = i + offset
            if not 0 <= at < len(sentence):
                return ("<", ">")[at >= 0] * 2
            if attribute == "tag":
                return ("tag", tagged[at][self.name])
            return "=" + self.value(attribute, sentence[at])

        return [(n, tuple(one(*place) for place in template)) for n, template in enumerate(self.templates)]

    def row(self, sentence, i, tagged):
        result = self.features(sentence, i, tagged)
        return sorted(self.numbers[feature] for feature in result if feature in self.numbers)

    def learn_sentence(self, sentence, epoch):
        tagged = [dict(word) for word in sentence]
        for i, word in enumerate(sentence):
            classes, weights = self.parts[self.case(word)], self.weights[self.case(word)]
            if len(classes) == 1 or self.classes.index(word[self.name]) not in classes:
                continue
            row = self.row(sentence, i, tagged)
            scores = weights.scores(row)
            weights.examples += 1
            right = classes.index(self.classes.index(word[self.name]))
            wrong = max((k for k in range(len(classes)) if k != right), key=scores.__getitem__)
            if scores[wrong] >= scores[right]:
                weights.update(row, right, wrong)
                if epoch >= self.gold:
                    tagged[i][self.name] = self.classes[classes[wrong]]

    def find(self, sentence):
        """Set the column of each word."""
        first = next(iter(self.parts))
        for word in sentence:
            word[self.name] = None
        for i, word in enumerate(sentence):
            case = self.case(word) if self.case(word) in self.parts else first
            classes = self.parts[case]
            place = 0
            if (word["form"], case) in self.certain:
                word[self.name] = self.certain[word["form"], case]
                continue
            if len(classes) > 1:
                place = int(np.argmax(self._averaged(case, self.row(sentence, i, sentence))))
            word[self.name] = self.classes[classes[place]]

    def _averaged(self, case, row):
        weights = self.weights[case]
        kept = set(weights.kept())
        averages = {c: weights.average(c) for c in kept}
        largest = max((np.abs(average).max() for average in averages.values()), default=0.0)
        unit = 2.0**-10
        while largest * (2 if weights.n_classes == 2 else 1) > unit * 32766:
            unit *= 2
        total = np.zeros(weights.n_classes)
        for conjunction in weights.conjunctions(row):
            if conjunction in kept:
                total += np.rint(averages[conjunction] / unit) * unit
        return total
