"""Sentences in the CoNLL-U format, and the trees that dependency kernels compare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from unkernel.data.files import Source, name_of, read_blocks
from unkernel.data.preorder import Preorder
from unkernel.errors import FormatError

Shape = Literal["grct", "lct", "loct"]
Lexical = Literal["lemma", "form", "lower"]
PartOfSpeech = Literal["upos", "xpos"]

_COLUMNS = 10
_HEAD_COLUMN = 6
_LONGEST_NUMBER = 9  # digits; no sentence has so many words
_NOT_A_WORD = re.compile(r"[0-9]+[-.][0-9]+", re.ASCII)


class Word(NamedTuple):
    """A word of a sentence, with what CoNLL-U says of it; ``"_"`` is nothing said.

    Attributes
    ----------
    form, lemma, upos, xpos : str
        The word as it is written, as a dictionary has it, and its part of speech, the universal and the
        treebank's own.
    head : int
        The number, counted from 1, of the word it depends on; 0 for the root.
    deprel : str
        How it depends on that word.
    feats, deps, misc : str
        The other columns, as they are in the file.
    """

    form: str
    lemma: str
    upos: str
    xpos: str
    head: int
    deprel: str
    feats: str = "_"
    deps: str = "_"
    misc: str = "_"


@dataclass(frozen=True)
class Sentence:
    """A sentence: its words and the comments above it, without the ``#``."""

    words: tuple[Word, ...]
    comments: tuple[str, ...] = ()

    @property
    def metadata(self) -> dict[str, str]:
        """The comments ``key = value`` as a table; one without ``=`` is a key with an empty value."""
        pairs = (comment.partition("=") for comment in self.comments)
        return {key.strip(): value.strip() for key, _, value in pairs}


def read_conllu(path_or_file: Source) -> list[Sentence]:
    r"""Read a file in the CoNLL-U format: the basic dependencies, one word a line.

    Lines of multiword tokens (``1-2``) and empty nodes (``1.1``) are passed over. Comments are kept with the
    sentence that follows them.

    Parameters
    ----------
    path_or_file : path, or open binary or text file
        UTF-8. Plain, or compressed by gzip, xz, bzip2 or Zstandard, whatever its name is.

    Returns
    -------
    list of Sentence

    Raises
    ------
    FormatError
        A line has not ten columns, words are not numbered 1, 2, 3, ..., a head is not there, a sentence has
        several roots or its dependencies go round in a circle; or there are no sentences.
        The column that is named counts characters, not fields.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import io
    >>> from unkernel.data.conllu_trees import read_conllu
    >>> text = "1\tdogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n"
    >>> [(word.form, word.head) for word in read_conllu(io.StringIO(text))[0].words]
    [('dogs', 2), ('bark', 0)]
    """
    name = name_of(path_or_file)
    sentences = list(_sentences(path_or_file, name))
    if not sentences:
        raise FormatError(name, 0, 0, "there are no sentences in it")
    return sentences


def from_sentence(
    words: Sentence | Sequence[Word],
    shape: Shape = "grct",
    *,
    lexical: Lexical = "lemma",
    pos: PartOfSpeech = "upos",
) -> Preorder:
    """Turn a dependency tree into a tree that a kernel can compare (Croce, Moschitti & Basili, 2011).

    "Dogs bark loudly" has the shapes

    - ``"grct"``, centred on grammatical relations: the node of a word is its relation. Below it are, in the
      order of the sentence, its dependents and its own part of speech, which holds the word::

          (@root (@nsubj (/NOUN =dog)) (/VERB =bark) (@advmod (/ADV =loudly)))

    - ``"lct"``, centred on words: the node of a word is the word. Below it are its dependents, in the order
      of the sentence, and, as the last two, its part of speech and its relation::

          (=bark (=dog /NOUN @nsubj) (=loudly /ADV @advmod) /VERB @root)

    - ``"loct"``, of words only: ``(=bark =dog =loudly)``

    The first character tells the kinds of labels apart, whatever they are: a word has ``=``, a part of
    speech ``/``, a relation ``@``. The word "root" is not the relation, nor "NOUN" the part of speech.

    Parameters
    ----------
    words : Sentence, or sequence of Word
        With exactly one root.
    shape : {"grct", "lct", "loct"}, default="grct"
        Partial tree kernels go well with all three, subset tree kernels with the first.
    lexical : {"lemma", "form", "lower"}, default="lemma"
        What stands for a word: its lemma (where there is none, the form in lower case), its form, or the
        form in lower case.
    pos : {"upos", "xpos"}, default="upos"
        Which part of speech.

    Returns
    -------
    Preorder

    Raises
    ------
    ValueError
        The words make no tree, or an argument is none of those above.

    Examples
    --------
    >>> from unkernel.data.conllu_trees import Word, from_sentence
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
        (f"={_lexical(word, lexical)}", f"/{word.upos if pos == 'upos' else word.xpos}", f"@{word.deprel}")
        for word in words
    ]
    walk = {"grct": _around_relations, "lct": _around_words, "loct": _words_only}[shape]
    nodes = list(walk(labels, *_dependents(heads)))
    return Preorder([label for label, _ in nodes], [arity for _, arity in nodes])


# --- Shapes -----------------------------------------------------------------------------------------
# Each gives the nodes parents first, as labels and numbers of children. A word waits on the stack as its
# place in the sentence i, what belongs to the word alone as ~i.

_Labels = Sequence[tuple[str, str, str]]
_Nodes = Iterator[tuple[str, int]]


def _around_relations(labels: _Labels, root: int, dependents: list[list[int]]) -> _Nodes:
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


def _around_words(labels: _Labels, root: int, dependents: list[list[int]]) -> _Nodes:
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


def _words_only(labels: _Labels, root: int, dependents: list[list[int]]) -> _Nodes:
    waiting = [root]
    while waiting:
        i = waiting.pop()
        yield labels[i][0], len(dependents[i])
        waiting += reversed(dependents[i])


def _dependents(heads: Sequence[int]) -> tuple[int, list[list[int]]]:
    """The place of the root, and for every word the places of those that depend on it."""
    dependents: list[list[int]] = [[] for _ in heads]
    root = 0
    for i, head in enumerate(heads):
        if head == 0:
            root = i
        else:
            dependents[head - 1].append(i)
    return root, dependents


def _lexical(word: Word, lexical: Lexical) -> str:
    if lexical == "form":
        return word.form
    has_lemma = lexical == "lemma" and word.lemma not in ("", "_")
    return word.lemma if has_lemma else word.form.lower()


def _check_choice(name: str, value: str, choices: object) -> None:
    if value not in get_args(choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, get_args(choices)))}, got {value!r}")


# --- Whether heads make a tree ----------------------------------------------------------------------


class _Fault(NamedTuple):
    place: int
    reason: str


def _check_tree(heads: Sequence[int]) -> None:
    if not heads:
        raise ValueError("a sentence without words has no tree")
    if fault := _fault(heads):
        raise ValueError(f"word {fault.place + 1} is at fault: {fault.reason}")


def _fault(heads: Sequence[int]) -> _Fault | None:
    """Why the heads (numbers of words, 0 for the root) make no tree, and the first word that shows it."""
    roots = [i for i, head in enumerate(heads) if head == 0]
    for i, head in enumerate(heads):
        if not 0 <= head <= len(heads):
            return _Fault(i, f"the head {head} is not a word of the sentence, which has {len(heads)}")
    if len(roots) > 1:
        return _Fault(roots[1], f"a second root; word {roots[0] + 1} is one already (head 0)")
    circle = _circle(heads)
    return _Fault(circle[0] - 1, f"the heads go round in a circle, {_path(circle)}") if circle else None


def _circle(heads: Sequence[int]) -> list[int]:
    """The numbers of the words on the first circle, from the first of them on; empty where there is none."""
    seen_from = [0] * (len(heads) + 1)  # the word whose way up came here first
    for start in range(1, len(heads) + 1):
        at = start
        while at != 0 and not seen_from[at]:
            seen_from[at] = start
            at = heads[at - 1]
        if at != 0 and seen_from[at] == start:
            circle = [at]
            while (at := heads[at - 1]) != circle[0]:
                circle.append(at)
            first = circle.index(min(circle))
            return circle[first:] + circle[:first]
    return []


def _path(circle: list[int]) -> str:
    shown = [*circle, circle[0]] if len(circle) <= 8 else [*circle[:8], "..."]
    return " → ".join(map(str, shown))


# --- The file ---------------------------------------------------------------------------------------


class _Line(NamedTuple):
    """A line of the file, and how to say what is wrong with it."""

    file: str
    number: int
    text: str

    def error(self, column: int, reason: str) -> FormatError:
        return FormatError(self.file, self.number, column, reason)

    def field_error(self, field: int, reason: str) -> FormatError:
        return self.error(len("\t".join(self.text.split("\t")[:field])) + (2 if field else 1), reason)


def _sentences(source: Source, file: str) -> Iterator[Sentence]:
    comments: list[str] = []
    words: list[Word] = []
    lines: list[_Line] = []  # of the words
    for line in _lines(source, file):
        if not line.text or line.text.isspace():
            # Comments that stand by themselves belong to what follows.
            if words:
                yield _sentence(words, lines, comments)
                comments, words, lines = [], [], []
        elif line.text.startswith("#"):
            comments.append(line.text[1:].strip())
        elif word := _word(line, len(words) + 1):
            words.append(word)
            lines.append(line)
    if words:
        yield _sentence(words, lines, comments)


def _sentence(words: list[Word], lines: list[_Line], comments: list[str]) -> Sentence:
    if fault := _fault([word.head for word in words]):
        raise lines[fault.place].field_error(_HEAD_COLUMN, fault.reason)
    return Sentence(tuple(words), tuple(comments))


def _word(line: _Line, expected: int) -> Word | None:
    """The word of a line, or None where it is a multiword token or an empty node."""
    fields = line.text.split("\t")
    if len(fields) != _COLUMNS:
        raise _wrong_number_of_columns(line, len(fields))
    number, form, lemma, upos, xpos, feats, head, deprel, deps, misc = fields
    if number != str(expected):
        if _NOT_A_WORD.fullmatch(number):
            return None
        raise line.field_error(0, _wrong_number(number, expected))
    if not _is_number(head):
        raise line.field_error(_HEAD_COLUMN, f"the head {_shown(head)} is not a number; the root has 0")
    if len(head) > _LONGEST_NUMBER:
        raise line.field_error(_HEAD_COLUMN, f"the head {_shown(head)} is not a word of the sentence")
    return Word(form, lemma, upos, xpos, int(head), deprel, feats, deps, misc)


def _wrong_number_of_columns(line: _Line, found: int) -> FormatError:
    columns = "1 column" if found == 1 else f"{found} columns"
    reason = f"{columns} instead of {_COLUMNS}; tabs separate them, and _ stands in an empty one"
    if found > _COLUMNS:
        return line.field_error(_COLUMNS, reason)
    return line.error(len(line.text) + 1, reason)


def _wrong_number(number: str, expected: int) -> str:
    if _is_number(number):
        return f"word {_shown(number)} where {expected} is expected; an empty line ends a sentence"
    return f"{_shown(number)} is not the number of a word; {expected} is expected"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _lines(source: Source, file: str) -> Iterator[_Line]:
    """The lines of a file as text, without the characters that end them."""
    for number, line in enumerate(_byte_lines(source), start=1):
        line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line  # noqa: PLW2901
        try:
            yield _Line(file, number, line.removesuffix(b"\r").decode())
        except UnicodeDecodeError as error:
            column = len(line[: error.start].decode()) + 1
            raise FormatError(file, number, column, f"not UTF-8 ({error.reason})") from None


def _byte_lines(source: Source) -> Iterator[bytes]:
    held: list[bytes] = []
    for block in read_blocks(source):
        first, *others = block.split(b"\n")
        held.append(first)
        for line in others:
            yield b"".join(held)
            held = [line]
    yield b"".join(held)
