"""List the decisions that parsers make on a text, each with its row of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import ArcEagerSpec
from unkernel.data.text.bunsetsu import BunsetsuCorpus
from unkernel.data.text.chunks import ChunkCorpus
from unkernel.data.text.conll import Treebank
from unkernel.parsing.explanation import Decision

Row = NDArray[np.int32]


def trace_trees(
    spec: ArcEagerSpec, engines: tuple[list[Any], list[Any]], bank: Treebank, beam: int
) -> Iterator[tuple[Decision, Row]]:
    """Yield the decisions of a dependency parser: each move and, if the move makes an arc, then its label.

    A step with only one possible move or label is not a decision, and is left out.
    """
    decisions = spec.decisions(*engines, bank._text, beam=beam)
    arrays = {name: np.asarray(array) for name, array in decisions.items()}
    moves, arcs = spec.move_classes, spec.arc_classes
    offsets, columns = arrays.pop("offsets"), arrays.pop("columns")
    forms = cache(lambda sentence: bank[sentence].forms)
    for number, values in enumerate(zip(*(array.tolist() for array in arrays.values()), strict=True)):
        fields = dict(zip(arrays, values, strict=True))
        classes = (arcs if fields["labels"] else moves)[fields["parts"]]
        row = columns[offsets[number] : offsets[number + 1]]
        yield _make_tree_decision(fields, classes, forms(fields["sentences"])), row


def _make_tree_decision(fields: dict[str, int], classes: list[int], forms: list[str]) -> Decision:
    words = (fields["firsts"], fields["seconds"])
    kind = "label" if fields["labels"] else "move"
    allowed = fields["valid"]  # bit k is 1 if move k is possible
    return Decision(
        fields["sentences"],
        kind,
        words,
        tuple(forms[word - 1] for word in words),
        f"{kind}s.{fields['parts']}",
        classes.index(fields["chosen"]),
        None if fields["labels"] else lambda index: bool(allowed >> classes[index] & 1),
    )


def trace_bunsetsu(
    parsed: BunsetsuCorpus, offsets: NDArray[np.int64], columns: Row, part: str
) -> Iterator[tuple[Decision, Row]]:
    """Yield the decisions of a bunsetsu parser in the order of Sassano's algorithm."""
    number = 0
    for sentence_index, sentence in enumerate(parsed):
        stack: list[int] = []
        # Bunsetsu that remain on the stack depend on the last bunsetsu; the parser does not decide on them.
        for candidate in range(1, len(sentence) - 1):
            stack.append(candidate - 1)
            while stack:
                depends = sentence.heads[stack[-1]] == candidate
                pair = (stack[-1], candidate)
                forms = tuple(sentence.surfaces[bunsetsu] for bunsetsu in pair)
                words = (pair[0] + 1, pair[1] + 1)
                decision = Decision(sentence_index, "dependency", words, forms, part, int(depends), None)
                yield decision, columns[offsets[number] : offsets[number + 1]]
                number += 1
                if not depends:
                    break
                stack.pop()


def trace_chunks(
    corpus: ChunkCorpus,
    classes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    columns: Row,
    part: str,
) -> Iterator[tuple[Decision, Row]]:
    """Yield one decision per word, in text order. Words of class -1 were not decided, and are left out."""
    for number, (sentence_index, word, form) in enumerate(_enumerate_words(corpus)):
        if classes[number] >= 0:
            row = columns[offsets[number] : offsets[number + 1]]
            yield Decision(sentence_index, "tag", (word,), (form,), part, int(classes[number]), None), row


def _enumerate_words(corpus: Sequence[Any]) -> Iterator[tuple[int, int, str]]:
    """Yield, for each word, the index of its sentence, the number of the word and its form."""
    for sentence_index, sentence in enumerate(corpus):
        for word, form in enumerate(sentence.words, 1):
            yield sentence_index, word, form


def trace_tags(
    tagged: Treebank, columns: Sequence[Any], predicted: Sequence[NDArray[np.int32]]
) -> Iterator[tuple[Decision, Row]]:
    """Yield the decisions of the classifiers of a tagger, column by column.

    Parameters
    ----------
    tagged : Treebank
        The sentences with predicted tags.
    columns : sequence of LearnedColumn
        The columns that the tagger fills.
    predicted : sequence of ndarray of int32, shape (n_words,)
        For each column, the predicted class of each word.
    """
    words = [
        (sentence_index, word, form)
        for sentence_index, sentence in enumerate(tagged)
        for word, form in enumerate(sentence.forms, 1)
    ]
    for column, column_classes in zip(columns, predicted, strict=True):
        rows = column.features.rows(tagged._text, column_classes, backward=False)
        offsets, features = map(np.asarray, rows)
        parts = {tuple(classes): part for classes, part in column.cases}
        certain = set(zip(column.certain.words, column.certain.parts.tolist(), strict=True))
        for number, (sentence_index, word, form) in enumerate(words):
            # The classes of earlier columns select the part. Words with a certain class need no decision.
            case = tuple(int(classes[number]) for classes in predicted[: column.split])
            part = parts.get(case, 0)
            if column.classifiers[part] is None or (form, part) in certain:
                continue
            chosen = column.classes[part].index(column_classes[number])
            row = features[offsets[number] : offsets[number + 1]]
            part_name = f"{column.name}.{part}"
            yield Decision(sentence_index, column.name, (word,), (form,), part_name, chosen, None), row
