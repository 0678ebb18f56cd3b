"""Slow twins of the reader, features and parser of bunsetsu (Japanese phrases), and sentences to try them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hypothesis import strategies as st

HEADER = re.compile(r"\* (\d+) (-?\d+)([A-Z])( .*)?")
PHRASE = re.compile(r"\+ (\d+) (-?\d+)([A-Z])( .*)?")
FIELDS = ("surface", "reading", "lemma", "pos", "subpos", "ctype", "cform")


@dataclass
class Bunsetsu:
    """A bunsetsu; morphemes are dictionaries of fields."""

    head: int
    type: str
    morphemes: list

    def word(self, position):
        """Return a morpheme, or None."""
        words = [m for m in self.morphemes if m["pos"] != "特殊"]
        candidates = {
            "first": self.morphemes,
            "last": self.morphemes[::-1],
            "function": words[::-1],
            "content": [m for m in words if m["pos"] != "助詞"][::-1],
        }[position]
        return candidates[0] if candidates else None

    def particles(self):
        return {m["surface"] for m in self.morphemes if m["pos"] == "助詞"}

    def marks(self, subpos):
        return sum(m["pos"] == "特殊" and m["subpos"] == subpos for m in self.morphemes)


def read(text):
    """Return all sentences, as lists of bunsetsu."""
    sentences, bunsetsu = [], []
    for line in text.splitlines():
        if line == "EOS":
            sentences.append(bunsetsu)
            bunsetsu = []
        elif header := HEADER.fullmatch(line):
            bunsetsu.append(Bunsetsu(int(header[2]), header[3], []))
        elif not PHRASE.fullmatch(line) and (bunsetsu and line):
            values = line.split(" ")
            values = values if len(values) == 7 else [values[k] for k in (0, 1, 2, 3, 5, 7, 9)]
            bunsetsu[-1].morphemes.append(dict(zip(FIELDS, values, strict=True)))
    return sentences


def brackets(openings, closings):
    if openings != closings:
        return "more open" if openings > closings else "more closed"
    return "balanced" if openings else "none"


def bunsetsu_values(sentence, number, attribute):
    """Return the values of an attribute of one bunsetsu."""
    bunsetsu = sentence[number]
    match attribute:
        case "beginning":
            return {"yes" if number == 0 else "no"}
        case "end":
            return {"yes" if number == len(sentence) - 1 else "no"}
        case "brackets":
            return {brackets(bunsetsu.marks("括弧始"), bunsetsu.marks("括弧終"))}
        case "punctuation":
            marks = [name for name, mark in (("comma", "読点"), ("period", "句点")) if bunsetsu.marks(mark)]
            return {" and ".join(marks) or "none"}
        case "particles":
            return bunsetsu.particles()
    raise AssertionError(attribute)


def list_between_values(sentence, modifier, candidate, heads, attribute):
    between = sentence[modifier + 1 : candidate]
    if attribute == "distance":
        distance = candidate - modifier
        return {"1" if distance == 1 else "2-5" if distance < 6 else "6-"}
    if attribute == "brackets":
        return {brackets(sum(b.marks("括弧始") for b in between), sum(b.marks("括弧終") for b in between))}
    competitors = [k for k in range(modifier + 1, candidate) if heads[k] == candidate]
    return set().union(*(sentence[k].particles() for k in competitors))


def features(sentence, modifier, candidate, heads, templates):
    """Return the names of the features of a modifier and a candidate head, given the heads decided so far."""
    numbers = {"before": modifier - 1, "modifier": modifier, "candidate": candidate, "after": candidate + 1}
    numbers_in_sentence = {role: number for role, number in numbers.items() if 0 <= number < len(sentence)}
    result = set()
    for template in templates:
        first, *attributes = template.split(".")
        values = set()
        if first == "same":
            words = [
                sentence[numbers_in_sentence[role]].word("content") if role in numbers_in_sentence else None
                for role in attributes
            ]
            if None not in words and words[0]["surface"] == words[1]["surface"]:
                values = {"yes"}
        elif first == "between":
            values = list_between_values(sentence, modifier, candidate, heads, attributes[0])
        elif first in numbers_in_sentence and len(attributes) == 2:
            word = sentence[numbers_in_sentence[first]].word(attributes[0])
            values = {word[attributes[1]]} if word else set()
        elif first in numbers_in_sentence:
            values = bunsetsu_values(sentence, numbers_in_sentence[first], attributes[0])
        result |= {f"{template}={value}" for value in values}
    return result


def parse(sentence, depends, templates):
    """Return the heads, and all decisions as pairs (names of features, answer of `depends`)."""
    heads, stack, decisions = [-1] * len(sentence), [], []
    for candidate in range(1, len(sentence)):
        stack.append(candidate - 1)
        while stack:
            if candidate < len(sentence) - 1:
                names = features(sentence, stack[-1], candidate, heads, templates)
                answer = depends(stack[-1], candidate, names)
                decisions.append((names, answer))
                if not answer:
                    break
            heads[stack.pop()] = candidate
    return heads, decisions


def follow(sentence, templates):
    """Return the decisions that lead to the sentence's own heads."""
    return parse(sentence, lambda i, j, _: sentence[i].head == j, templates)[1]


# --- Sentences ---------------------------------------------------------------------------------------

WORDS = [
    *(
        f"{word} よみ {word} 名詞 {subpos} * *"
        for word in ("本", "犬", "空")
        for subpos in ("普通名詞", "地名")
    ),
    "読む よむ 読む 動詞 * 子音動詞マ行 基本形",
    "読ん よん 読む 動詞 * 子音動詞マ行 タ系連用テ形",
    *(f"{word} {word} {word} 助詞 格助詞 * *" for word in ("が", "を", "に")),
    "も も も 助詞 副助詞 * *",
    "、 、 、 特殊 読点 * *",
    "。 。 。 特殊 句点 * *",
    "「 「 「 特殊 括弧始 * *",
    "」 」 」 特殊 括弧終 * *",
    "* * * 特殊 記号 * *",
    "# # # 特殊 記号 * *",
    "+ + + 特殊 記号 * *",
]


@st.composite
def sentences(draw, max_bunsetsu=9):
    """Draw the lines of a sentence; heads may be anything that occurs in files."""
    count = draw(st.integers(0, max_bunsetsu))
    lines = draw(st.lists(st.sampled_from(["# S-ID:1", "#", ""]), max_size=2))
    for number in range(count):
        # mostly to the right, as in real text
        head = draw(st.integers(number + 1, count - 1) | st.integers(-1, count)) if number < count - 1 else -1
        lines.append(f"* {number} {head}{draw(st.sampled_from('DDDPIA'))}")
        lines += draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
    return [*lines, "EOS"]


def corpora(most_sentences=6, min_sentences=0):
    """Draw the text of a corpus."""
    lists = st.lists(sentences(), min_size=min_sentences, max_size=most_sentences)
    return lists.map(
        lambda sentence_lines: "".join(line + "\n" for lines in sentence_lines for line in lines)
    )
