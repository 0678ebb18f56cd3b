"""The slow twin of feature templates: from their text to tuples of values."""

from __future__ import annotations

import re
import string

ABSENT = "(absent)"  # the string value of a missing word
ADDRESS = re.compile(r"(stack|input|head|dependent)(?:\[(-?\d+)\])?")
CAPITALS_AND_DIGITS = str.maketrans(string.ascii_uppercase + string.digits, string.ascii_lowercase + "0" * 10)
COLUMNS = ("form", "lemma", "upos", "xpos", "feats")
NUMBERS = ("label", "left-valency", "right-valency", "distance", "direction")


class Templates:
    """The features of each section, and strings in the order of their first appearance."""

    def __init__(self, text):
        self.sections = {"moves": [], "labels": []}
        self.core = {"moves": 0, "labels": 0}  # numbers of core templates
        for line in (raw.partition("#")[0].strip() for raw in text.split("\n")):
            if line.startswith("["):
                name = line.strip("[]").removeprefix("beside ")
                section, in_core = self.sections[name], "beside" not in line
            elif line:
                section.append([value.replace(" ", "") for value in line.split("+")])
                self.core[name] += in_core
        self.seen = {}

    def learn(self, sentence):
        for features in self.sections.values():
            for attribute in {value.split(".")[-1] for values in features for value in values} - set(NUMBERS):
                names = self.seen.setdefault(attribute, {ABSENT: 0})
                for word in sentence:
                    names.setdefault(text_value(word, attribute), len(names))

    def order(self, attribute, value, labels):
        """Return the position of a value in the order of all values of its attribute."""
        if attribute == "label":
            return labels.index(value)
        return value if attribute in NUMBERS else self.seen[attribute][value]

    def features(self, section, state, sentence, arc=None):
        """Return for each present feature the number of its template, and its (attribute, value) pairs."""
        result = []
        for number, values in enumerate(self.sections[section]):
            filled = [(value.split(".")[-1], filled_value(value, state, sentence, arc)) for value in values]
            if None not in [value for _, value in filled]:
                result.append((number, tuple(filled)))
        return result


def column_value(word, column):
    """Return a column of a word; the universal tag replaces a missing tag of the treebank."""
    value = getattr(word, column)
    return word.upos if column == "xpos" and value == "_" else value


def filled_value(value, state, sentence, arc):
    """Return the value of an address such as `stack.word`, or None."""
    head, child = arc or (state.top, state.next)
    if value == "direction":
        return int(child < head)
    if value == "distance":
        return distance_class(abs(head - child)) if head and child else None
    base, *steps, attribute = value.split(".")
    word = word_at(base, steps, state, head, child)
    if attribute in ("label", "left-valency", "right-valency"):
        if not word:
            return None
        left, right = state.children(word)
        return {
            "label": state.labels[word - 1],
            "left-valency": min(len(left), 3),
            "right-valency": min(len(right), 3),
        }[attribute]
    return text_value(sentence[word - 1], attribute) if word else ABSENT


def word_at(base, steps, state, head, child):
    name, offset = ADDRESS.fullmatch(base).groups()
    offset = int(offset or 0)
    if name in ("stack", "input"):
        words = state.stack[::-1] if name == "stack" else state.queue
        word = words[offset] if offset < len(words) else 0
    else:
        word = word_or_none((head if name == "head" else child) + offset, state)
    for step in steps:
        word = word and step_from(word, step, state)
    return word


def step_from(word, step, state):
    left, right = state.children(word)
    if step in ("before", "after"):
        return word_or_none(word - 1 if step == "before" else word + 1, state)
    if step == "head":
        return state.head(word)
    children = left if step.startswith("left") else right
    index = 1 if step.endswith("2") else 0
    return children[index] if index < len(children) else 0


def word_or_none(word, state):
    return word if 0 < word <= len(state.heads) else 0


def distance_class(distance):
    """Return the class of a distance: 1, 2, 3, 4, 5-6, 7-9, 10-14, and more."""
    return next(number for number, end in enumerate([2, 3, 4, 5, 7, 10, 15, 1 << 40]) if distance < end)


def text_value(word, attribute):
    if attribute in COLUMNS:
        return column_value(word, attribute)
    if attribute == "shape":
        return shape(word.form)
    normal = word.form.translate(CAPITALS_AND_DIGITS)
    if attribute == "word":
        return normal
    kind, length = attribute[:-1], int(attribute[-1])
    return normal[:length] if kind == "prefix" else normal[-length:]


def shape(form):
    kinds = ""
    for character in form:
        if character.isascii():
            kind = (
                "X"
                if character.isupper()
                else "x"
                if character.islower()
                else "d"
                if character.isdigit()
                else character
            )
        else:
            kind = "u"
        if not kinds.endswith(kind):
            kinds += kind
    return kinds[:8]
