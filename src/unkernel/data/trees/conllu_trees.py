"""Convert dependency trees to trees for tree kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

from unkernel.data.text.conll_sentence import Sentence, Word
from unkernel.data.trees.preorder import Preorder

Shape = Literal["grct", "lct", "loct"]
Lexical = Literal["lemma", "form", "lower"]
PartOfSpeech = Literal["upos", "xpos"]


def from_sentence(
    words: Sentence | Sequence[Word],
    shape: Shape = "grct",
    *,
    lexical: Lexical = "lemma",
    pos: PartOfSpeech = "upos",
) -> Preorder:
    """Convert a dependency tree to a tree for tree kernels (Croce, Moschitti & Basili, 2011).

    There are three shapes. For the sentence "Dogs bark loudly", they are:

    - ``"grct"``, centred on grammatical relations. The node of a word is its relation. Below this node are,
      in the order of the sentence, the dependents and the word's own part of speech. The word itself is below
      its part of speech::

          (@root (@nsubj (/NOUN =dog)) (/VERB =bark) (@advmod (/ADV =loudly)))

    - ``"lct"``, centred on words. The node of a word is the word itself. Below this node are the dependents
      in the order of the sentence, then the word's part of speech and its relation::

          (=bark (=dog /NOUN @nsubj) (=loudly /ADV @advmod) /VERB @root)

    - ``"loct"``, which contains only words: ``(=bark =dog =loudly)``

    The first character distinguishes the kinds of labels: ``=`` for a word, ``/`` for a part of speech, and
    ``@`` for a relation. The word "root" therefore differs from the relation "root".

    Parameters
    ----------
    words : Sentence, or sequence of Word
        The sentence; it must have exactly one root.
    shape : {"grct", "lct", "loct"}, default="grct"
        Shape of the tree. Partial tree kernels suit all three shapes, and subset tree kernels only "grct".
    lexical : {"lemma", "form", "lower"}, default="lemma"
        Text that represents a word: its lemma (or the form in lower case if there is no lemma), its form, or
        its form in lower case.
    pos : {"upos", "xpos"}, default="upos"
        Column with the parts of speech.

    Returns
    -------
    Preorder

    Raises
    ------
    ValueError
        If the words do not form a tree, or an argument has an unknown value.

    Examples
    --------
    >>> from unkernel.data.text.conll_sentence import Word
    >>> from unkernel.data.trees.conllu_trees import from_sentence
    >>> dogs = Word("Dogs", "dog", "NOUN", "NNS", 2, "nsubj")
    >>> bark = Word("bark", "bark", "VERB", "VBP", 0, "root")
    >>> from_sentence([dogs, bark], "loct")
    Preorder(labels=['=bark', '=dog'], arities=[1, 0])
    """
    _check_choice("shape", shape, Shape)
    _check_choice("lexical", lexical, Lexical)
    _check_choice("pos", pos, PartOfSpeech)
    words = words.words if isinstance(words, Sentence) else words
    heads = [word.head for word in words]
    _check_tree(heads)
    labels = [
        (
            f"={_choose_lexical(word, lexical)}",
            f"/{word.upos if pos == 'upos' else word.xpos}",
            f"@{word.deprel}",
        )
        for word in words
    ]
    walk = {"grct": _walk_relations, "lct": _walk_words_and_relations, "loct": _walk_words}[shape]
    nodes = list(walk(labels, *_list_dependents(heads)))
    return Preorder([label for label, _ in nodes], [arity for _, arity in nodes])


# --- Shapes -----------------------------------------------------------------------------------------
# Each function yields the nodes as (label, number of children), parents first. On the stack `waiting`, the
# number i represents the subtree of word i, and ~i, which is negative, the leaves of word i itself. In both
# cases, max(i, ~i) is the number of the word.

_Labels = Sequence[tuple[str, str, str]]
_Nodes = Iterator[tuple[str, int]]


def _walk_relations(labels: _Labels, root: int, dependents: list[list[int]]) -> _Nodes:
    waiting = [root]
    while waiting:
        i = waiting.pop()
        word, part_of_speech, relation = labels[max(i, ~i)]
        if i < 0:
            yield part_of_speech, 1
            yield word, 0
        else:
            yield relation, len(dependents[i]) + 1
            waiting += [j for j in reversed(dependents[i]) if j > i]
            waiting.append(~i)
            waiting += [j for j in reversed(dependents[i]) if j < i]


def _walk_words_and_relations(labels: _Labels, root: int, dependents: list[list[int]]) -> _Nodes:
    waiting = [root]
    while waiting:
        i = waiting.pop()
        word, part_of_speech, relation = labels[max(i, ~i)]
        if i < 0:
            yield part_of_speech, 0
            yield relation, 0
        else:
            yield word, len(dependents[i]) + 2
            waiting.append(~i)
            waiting += reversed(dependents[i])


def _walk_words(labels: _Labels, root: int, dependents: list[list[int]]) -> _Nodes:
    waiting = [root]
    while waiting:
        i = waiting.pop()
        yield labels[i][0], len(dependents[i])
        waiting += reversed(dependents[i])


def _list_dependents(heads: Sequence[int]) -> tuple[int, list[list[int]]]:
    """Return the position of the root, and the positions of the dependents of every word."""
    dependents: list[list[int]] = [[] for _ in heads]
    root = 0
    for i, head in enumerate(heads):
        if head == 0:
            root = i
        else:
            dependents[head - 1].append(i)
    return root, dependents


def _choose_lexical(word: Word, lexical: Lexical) -> str:
    if lexical == "form":
        return word.form
    has_lemma = lexical == "lemma" and word.lemma not in ("", "_")
    return word.lemma if has_lemma else word.form.lower()


def _check_choice(name: str, value: str, choices: object) -> None:
    if value not in get_args(choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, get_args(choices)))}, got {value!r}")


# --- Check of heads -----------------------------------------------------------------------------


class _Fault(NamedTuple):
    """The position of a word with an invalid head, and the reason why the head is invalid."""

    position: int
    reason: str


def _check_tree(heads: Sequence[int]) -> None:
    if not heads:
        raise ValueError("a sentence without words has no tree")
    fault = _find_fault(heads)
    if fault:
        raise ValueError(f"word {fault.position + 1}: {fault.reason}")


def _find_fault(heads: Sequence[int]) -> _Fault | None:
    """Return the first word whose head (a word number, 0 for the root) is invalid; None for a tree."""
    roots = [i for i, head in enumerate(heads) if head == 0]
    for i, head in enumerate(heads):
        if not 0 <= head <= len(heads):
            return _Fault(i, f"the head {head} is not a word of the sentence, which has {len(heads)}")
    if len(roots) > 1:
        return _Fault(roots[1], f"a second root; word {roots[0] + 1} is one already (head 0)")
    cycle = _find_cycle(heads)
    if cycle:
        return _Fault(cycle[0] - 1, f"the heads form a cycle, {_format_path(cycle)}")
    return None


def _find_cycle(heads: Sequence[int]) -> list[int]:
    """Return the words of the first cycle, beginning with the smallest; empty if there is no cycle."""
    first_start = [0] * (len(heads) + 1)  # for each word, the start of the walk that first reached it
    for start in range(1, len(heads) + 1):
        word = start
        while word != 0 and not first_start[word]:
            first_start[word] = start
            word = heads[word - 1]
        if word != 0 and first_start[word] == start:
            cycle = [word]
            while heads[cycle[-1] - 1] != cycle[0]:
                cycle.append(heads[cycle[-1] - 1])
            first = cycle.index(min(cycle))
            return cycle[first:] + cycle[:first]
    return []


def _format_path(cycle: list[int]) -> str:
    shown = [*cycle, cycle[0]] if len(cycle) <= 8 else [*cycle[:8], "..."]
    return " → ".join(map(str, shown))
