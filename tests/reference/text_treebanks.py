"""Small treebanks with text, tags and trees, for training in a second."""

from __future__ import annotations

import io

from unkernel.data import Treebank, read_conllu

# Word, lemma, universal and own part of speech, head, relation, whether a blank follows. The form of a
# multiword token precedes its words.
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
    """Return the sentences `times` times. `without` has the first letters of columns that are left out."""
    lines = []
    for number, sentence in enumerate(SENTENCES * times):
        if comments:
            lines += ["# newpar"] if number % 4 == 0 else []
            lines.append(f"# text = {text_of(sentence).strip()}")
        lines += [*write_lines(sentence, without), ""]
    return read_conllu(io.BytesIO("\n".join([*lines, ""]).encode()), trees=True)


def tokens_of(sentence):
    """Return the form of each token and its words: one word, or the two words of a multiword token."""
    remaining = iter(sentence)
    return [
        (first[0], [next(remaining), next(remaining)] if len(first) == 1 else [first]) for first in remaining
    ]


def text_of(sentence) -> str:
    """Return the forms of tokens, with blanks."""
    return "".join(form + words[-1][-1] for form, words in tokens_of(sentence))


def write_lines(sentence, without: str):
    number = 0
    for token, words in tokens_of(sentence):
        if len(words) > 1:
            yield f"{number + 1}-{number + 2}\t{token}" + "\t_" * 8
        for form, lemma, upos, xpos, head, relation, blank in words:
            number += 1
            feats = "Number=Plur" if xpos == "NNS" else "_"
            columns = {"l": lemma, "u": upos, "x": xpos, "f": feats}
            tags = ["_" if name in without else value for name, value in columns.items()]
            misc = "_" if blank or len(words) > 1 else "SpaceAfter=No"
            yield "\t".join([str(number), form, *tags, str(head), relation, "_", misc])
