"""The slow twin of tagging: one column after another, word by word."""

from __future__ import annotations

from collections import Counter

import numpy as np

from reference.chunking import attribute_value, lexicon_form, order_by_frequency, parse_sections
from reference.online import Random, Weights

MIN_OCCURRENCES = 5  # occurrences of words whose tags are features in training
MIN_TAG_SHARE = 0.02  # tags below this share of a word's occurrences are ignored
MIN_CERTAIN_SHARE = 0.99  # share of a class that is certain


def seen_tags(sentences, column, min_count):
    """Return the tags of frequent words, by descending frequency; keys are words in their lexicon form."""
    first_seen = {}
    tags = {}
    for sentence in sentences:
        for word in sentence:
            first_seen.setdefault(word[column], len(first_seen))
            tags.setdefault(lexicon_form(word["form"]), Counter())[word[column]] += 1
    return {
        word: "|".join(
            sorted(
                (tag for tag in counts if counts[tag] >= MIN_TAG_SHARE * counts.total()),
                key=lambda tag: (-counts[tag], first_seen[tag]),
            )
        )
        for word, counts in tags.items()
        if counts.total() >= min_count
    }


class Column:
    """A tagger of one column. Sentences are lists of words, which are dicts from columns to values.

    A word needs no classifier if it occurs at least `often` times, nearly always with the same class.
    """

    def __init__(
        self, name, templates, before, split, *, often, degree, min_count, min_updates, epochs, gold, seed
    ):
        core, beside = parse_sections(templates)
        self.name, self.templates, self.before = name, core + beside, before
        self.core_templates = len(core)
        self.split, self.often = before[:split], often
        self.degree, self.min_count, self.min_updates = degree, min_count, min_updates
        self.epochs, self.gold, self.random = epochs, gold, Random(seed)

    def learn(self, sentences):
        self.seen = seen_tags(sentences, self.name, MIN_OCCURRENCES)
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
        frequent = [feature for feature, count in counts.items() if count >= self.min_count]
        self.numbers = {
            feature: number for number, feature in enumerate(order_by_frequency(frequent, counts))
        }
        core = sum(template < self.core_templates for template, _ in frequent)
        number = self.classes.index
        words = [word for s in sentences for word in s]
        self.certain = self._certain(words)
        self.parts = {}
        for case in sorted({self.case(word) for word in words}, key=self._order(sentences)):
            words_of_case = [word for word in words if self.case(word) == case]
            classes_in_part = {word[self.name] for word in words_of_case}
            learnt = self._learnt(case, words_of_case) or classes_in_part
            self.parts[case] = sorted(number(class_) for class_ in learnt)
        self.weights = {
            case: Weights(self.degree, len(classes), self.min_updates, core)
            for case, classes in self.parts.items()
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
        class_counts = {}
        for word in words:
            class_counts.setdefault((word["form"], self.case(word)), Counter())[word[self.name]] += 1
        most_common = {
            key: (counts.most_common(1)[0], counts.total()) for key, counts in class_counts.items()
        }
        return {
            key: class_
            for key, ((class_, count), total) in most_common.items()
            if count >= max(MIN_CERTAIN_SHARE * total, self.often)
        }

    def _learnt(self, case, words):
        """Return the classes of a part that have several words, or a word with several classes."""
        forms, uncertain = {}, set()
        for word in words:
            forms.setdefault(word[self.name], set()).add(word["form"])
            if (word["form"], case) not in self.certain:
                uncertain.add(word[self.name])
        return {class_ for class_, words in forms.items() if len(words) > 1 or class_ in uncertain}

    def case(self, word):
        return tuple(word[name] for name in self.split)

    def value(self, attribute, word):
        if attribute == "seen":
            return self.seen.get(lexicon_form(word["form"]), "")
        if attribute in self.before:
            return word[attribute]
        return attribute_value(attribute, word["form"], "")

    def features(self, sentence, i, tagged):
        def value_at(attribute, offset):
            position = i + offset
            if not 0 <= position < len(sentence):
                return ("<", ">")[position >= 0] * 2
            if attribute == "tag":
                return ("tag", tagged[position][self.name])
            return "=" + self.value(attribute, sentence[position])

        return [
            (n, tuple(value_at(*place) for place in template)) for n, template in enumerate(self.templates)
        ]

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
            correct = classes.index(self.classes.index(word[self.name]))
            predicted = max((k for k in range(len(classes)) if k != correct), key=scores.__getitem__)
            if scores[predicted] >= scores[correct]:
                weights.update(row, correct, predicted)
                if epoch >= self.gold:
                    tagged[i][self.name] = self.classes[classes[predicted]]

    def predict(self, sentence):
        """Set the column of each word."""
        first = next(iter(self.parts))
        for word in sentence:
            word[self.name] = None
        for i, word in enumerate(sentence):
            case = self.case(word) if self.case(word) in self.parts else first
            classes = self.parts[case]
            index = 0
            if (word["form"], case) in self.certain:
                word[self.name] = self.certain[word["form"], case]
                continue
            if len(classes) > 1:
                index = int(np.argmax(self._averaged(case, self.row(sentence, i, sentence))))
            word[self.name] = self.classes[classes[index]]

    def _averaged(self, case, row):
        weights = self.weights[case]
        frequent = set(weights.kept())
        averages = {c: weights.average(c) for c in frequent}
        largest = max((np.abs(average).max() for average in averages.values()), default=0.0)
        unit = 2.0**-10
        while largest * (2 if weights.n_classes == 2 else 1) > unit * 32766:
            unit *= 2
        total = np.zeros(weights.n_classes)
        for conjunction in weights.conjunctions(row):
            if conjunction in frequent:
                total += np.rint(averages[conjunction] / unit) * unit
        return total
