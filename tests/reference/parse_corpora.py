"""Small corpora of a small language, in the formats that ``unkernel parse`` reads."""

from __future__ import annotations

import random

DETERMINERS, NOUNS, VERBS = ("the", "a"), ("dog", "cat", "man", "tree"), ("saw", "bit", "liked")


def treebank(sentences: int, seed: int) -> str:
    """Return sentences of subject, verb and object; a phrase may be attached to the verb or the object."""
    draw = random.Random(seed)
    return "".join(_tree_sentence(draw, number) for number in range(sentences))


def _tree_sentence(draw: random.Random, number: int) -> str:
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
    for position, (form, tag, head, relation) in enumerate(words, 1):
        lines.append(f"{position}\t{form}\t{form}\t{tag}\t_\t_\t{head}\t{relation}\t_\t_")
    return "\n".join([*lines, "\n"])


def _phrase(
    draw: random.Random, n_words_before: int, head: int, relation: str
) -> list[tuple[str, str, int, str]]:
    return [
        (draw.choice(DETERMINERS), "DET", n_words_before + 2, "det"),
        (draw.choice(NOUNS), "NOUN", head, relation),
    ]


def chunks(sentences: int, seed: int, *, tags: bool = True) -> str:
    draw = random.Random(seed)
    return "".join(_chunk_sentence(draw, tags) for _ in range(sentences))


def _chunk_sentence(draw: random.Random, tags: bool) -> str:
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
    """Return sentences of nouns: a noun with の depends on the next bunsetsu, a noun with を on the last."""
    draw = random.Random(seed)
    return "".join(_bunsetsu_sentence(draw, number) for number in range(sentences))


def _bunsetsu_sentence(draw: random.Random, number: int) -> str:
    particles = [draw.choice("のを") for _ in range(draw.randint(2, 4))]
    lines, last = [f"# S-ID:{number}"], len(particles)
    for position, particle in enumerate(particles):
        noun = draw.choice(["本", "人", "車"])
        head = position + 1 if particle == "の" else last
        lines += [f"* {position} {head}D", f"{noun} よみ {noun} 名詞 普通名詞 * *"]
        lines.append(f"{particle} {particle} {particle} 助詞 格助詞 * *")
    lines += [f"* {last} -1D", "読む よむ 読む 動詞 * 子音動詞マ行 基本形", "EOS", ""]
    return "\n".join(lines)


MAKERS = {"trees": treebank, "chunks": chunks, "bunsetsu": bunsetsu}
