"""Damage files of arc-eager parsers, load them and parse: a separate program, because it may crash.

``python parser_damage.py FOLDER SEED COUNT FILE...`` does for parsers what ``damage.py`` does for
classifiers. Every loaded parser must still make trees.
"""

from __future__ import annotations

import contextlib
import sys
import warnings

import unkernel
from reference import damage
from reference.dependencies import is_tree
from reference.row_damage import NUMBERS, OTHERS
from unkernel.parsing import ArcEagerModel

WORDS = [["They", "saw", "it", "."], ["Dogs", "bark"], ["unheard"], ["a", "b", "c", "d", "e", "f", "g", "h"]]
TAGS = [["PRON", "VERB", "PRON", "PUNCT"], ["NOUN", "VERB"], ["X"], ["NOUN", "VERB", "_", "X"] * 2]


def change_a_setting(content, rng):
    """Replace or remove some value in the settings."""
    header, arrays = damage.split_file(content)
    settings = damage.read_settings(header)
    value, path = settings, []
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = keys[int(rng.integers(len(keys)))]
        holder, value = value, value[key]
        path.append(key)
        if rng.random() < 0.2:
            break
    if rng.random() < 0.2:
        del holder[key]
    elif isinstance(value, int) and rng.random() < 0.7:
        holder[key] = int(value + rng.integers(-2, 3))
    else:
        values = NUMBERS + OTHERS
        holder[key] = values[int(rng.integers(len(values)))]
    return f"{path}", damage.join_file(damage.replace_settings(header, settings), arrays)


def truncate(content, rng):
    end = int(rng.integers(len(content)))
    return f"{end} bytes", content[:end]


def flip_a_bit(content, rng):
    position = int(rng.integers(len(content)))
    changed = bytearray(content)
    changed[position] ^= 1 << int(rng.integers(8))
    return f"byte {position}", bytes(changed)


CHANGES = [
    truncate,
    flip_a_bit,
    damage.flip_a_byte_of_an_array,
    damage.change_an_array,
    damage.retype_an_array,
    change_a_setting,
    change_a_setting,
]


def use_parser(parser):
    """Check that every parse is a tree. Other methods may raise ValueError."""
    assert isinstance(parser, ArcEagerModel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # damaged tags are unknown tags
        parsed = parser.parse(WORDS, TAGS, xpos=TAGS, n_jobs=1)
        with contextlib.suppress(ValueError):  # words without tags
            assert all(is_tree(sentence.heads) for sentence in parser.parse(WORDS, n_jobs=1))
    assert all(is_tree(sentence.heads) for sentence in parsed)
    with contextlib.suppress(ValueError):
        parser.evaluate(parsed, n_jobs=1)
    assert parser.n_features_ >= 0 and parser.nbytes >= 0 and isinstance(parser.parameters, dict)


if __name__ == "__main__":
    damage.main(damage.DamagePlan(CHANGES, unkernel.FormatError, lambda rng: use_parser), *sys.argv[1:])
