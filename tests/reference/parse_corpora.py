"""Small corpora of a small language, in the formats that ``unkernel parse`` reads."""

from __future__ import annotations

import random

DETERMINERS, NOUNS, VERBS = ("the", "a"), ("dog", "cat", "man", "tree"), ("saw", "bit", "liked")


def treebank(sentences: int, seed: int) -> str:
    """Return sentences of subject, verb and object; a phrase may be attached to the verb or the object."""
    draw = random.Random(seed)
    return "".join(_tree(draw, number) for number in range(sentences))


def _tree(draw: random.Random, number: int) -> str:
    words = [
        *_phrase(draw, 0, 3, "nsubj"),
        (draw.choice(VERBS), "VERB", 0, "root"),
        *_phrase(draw, 3, 3, "obj"),
    ]
    if draw.random() < 0.5:
        preposition = draw.choice(["in", "near"])
        head = 5 if preposition == "in" else 3
        words += [(preposition, "ADP", 8, "case"), *_phrase(draw, 6, head, "nmod" if head == 5 else "obl")]
    words.append((".", "PUNCT", 3, "punct"))
    lines = [f"# sent_id = {number}"]
    for place, (form, tag, head, relation) in enumerate(words, 1):
        lines.append(f"{place}\t{form}\t{form}\t{tag}\t_\t_\t{head}\t{relation}\t_\t_")
    return "\n".join([*lines, "\n"])


def _phrase(draw: random.Random, before: int, head: int, relation: str) -> list[tuple[str, str, int, str]]:
    return [
        (draw.choice(DETERMINERS), "DET", before + 2, "det"),
        (draw.choice(NOUNS), "NOUN", head, relation),
    ]


def chunks(sentences: int, seed: int, *, tags: bool = True) -> str:
    draw = random.Random(seed)
    return "".join(_chunked(draw, tags) for _ in range(sentences))


def _chunked(draw: random.Random, tags: bool) -> str:
    noun_phrase = [("DT", "B-NP", DETERMINERS), ("NN", "I-NP", NOUNS)]
    words = [
        *noun_phrase,
        ("VBD", "B-VP", VERBS),
        *(noun_phrase if draw.random() < 0.7 else []),
        (".", "O", "."),
    ]
    columns = [[draw.choice(forms), pos, *([tag] if tags else [])] for pos, tag, forms in words]
    return "\n".join([*(" ".join(fields) for fields in columns), "\n"])


def bunsetsu(sentences: int, seed: int) -> str:
    """Return nouns: with の they depend on the next bunsetsu, with を on the last."""
    draw = random.Random(seed)
    return "".join(_japanese(draw, number) for number in range(sentences))


def _japanese(draw: random.Random, number: int) -> str:
    particles = [draw.choice("のを") for _ in range(draw.randint(2, 4))]
    lines, last = [f"# S-ID:{number}"], len(particles)
    for place, particle in enumerate(particles):
        noun = draw.choice(["本", "人", "車"])
        head = place + 1 if particle == "の" else last
        lines += [f"* {place} {head}D", f"{noun} よみ {noun} 名詞 普通名詞 * *"]
        lines.append(f"{particle} {particle} {particle} 助詞 格助詞 * *")
    lines += [f"* {last} -1D", "読む よむ 読む 動詞 * 子音動詞マ行 基本形", "EOS", ""]
    return "\n".join(lines)


MAKERS = {"trees": treebank, "chunks": chunks, "bunsetsu": bunsetsu}
