"""Small treebanks with text, tags and trees, to learn from in a second."""

from __future__ import annotations

import io

from unkernel.data import Treebank, read_conllu

# Word, lemma, universal and own part of speech, head, relation, whether a blank follows. Words of a multiword
# token have its form before them.
SENTENCES = [
    [
        ("They", "they", "PRON", "PRP", 4, "nsubj", " "),
        ("didn't",),
        ("did", "do", "AUX", "VBD", 4, "aux", ""),
        ("n't", "not", "PART", "RB", 4, "advmod", " "),
        ("see", "see", "VERB", "VB", 0, "root", " "),
        ("it", "it", "PRON", "PRP", 4, "obj", ""),
        (".", ".", "PUNCT", ".", 4, "punct", " "),
    ],
    [
        ("Why", "why", "ADV", "WRB", 2, "advmod", " "),
        ("not", "not", "PART", "RB", 0, "root", ""),
        ("?", "?", "PUNCT", ".", 2, "punct", " "),
    ],
    [
        ("Dogs", "dog", "NOUN", "NNS", 2, "nsubj", " "),
        ("saw", "see", "VERB", "VBD", 0, "root", " "),
        ("Mr.", "Mr.", "PROPN", "NNP", 2, "obj", " "),
        ("Smith", "Smith", "PROPN", "NNP", 3, "flat", ""),
        ("!", "!", "PUNCT", ".", 2, "punct", " "),
    ],
]


def treebank_with_text(times: int = 12, *, without: str = "", comments: bool = True) -> Treebank:
    """The sentences, several times; `without` some columns, by the first letters of their names."""
    lines = []
    for number, sentence in enumerate(SENTENCES * times):
        if comments:
            lines += ["# newpar"] if number % 4 == 0 else []
            lines.append(f"# text = {text_of(sentence).strip()}")
        lines += [*lines_of(sentence, without), ""]
    return read_conllu(io.BytesIO("\n".join([*lines, ""]).encode()), trees=True)


def text_of(sentence) -> str:
    """Forms of tokens, with blanks."""
    pieces, inside = [], 0
    for word in sentence:
        if len(word) == 1:
            pieces.append(word[0])
            inside = 2
            continue
        pieces.append(word[-1] if inside else word[0] + word[-1])
        inside = max(0, inside - 1)
    return "".join(pieces)


def lines_of(sentence, without: str):
    number = inside = 0
    for word in sentence:
        if len(word) == 1:
            yield f"{number + 1}-{number + 2}\t{word[0]}" + "\t_" * 8
            inside = 2
            continue
        number += 1
        form, lemma, upos, xpos, head, relation, blank = word
        feats = "Number=Plur" if xpos == "NNS" else "_"
        given = {"l": lemma, "u": upos, "x": xpos, "f": feats}
        tags = ["_" if name in without else value for name, value in given.items()]
        misc = "_" if blank or inside else "SpaceAfter=No"
        inside = max(0, inside - 1)
        yield "\t".join([str(number), form, *tags, str(head), relation, "_", misc])
