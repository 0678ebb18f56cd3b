"""Drawings of dependencies show the trees, overlap nowhere, and escape all words."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.drawings import find_heads
from unkernel.data import ChunkCorpus, Treebank, read_bunsetsu
from unkernel.data.text.drawing import draw_chunks, draw_svg, draw_text
from unkernel.data.text.drawing._input import count_cells
from unkernel.data.text.drawing._svg import _CORNER, _LABEL_SIZE, _WORD_SIZE, _estimate_width

HEARING = (
    ["A", "hearing", "is", "scheduled", "on", "the", "issue", "today", "."],
    [2, 4, 4, 0, 7, 7, 2, 4, 4],
)
LABELS = ["det", "nsubj:pass", "aux", "root", "case", "det", "nmod", "obl", "punct"]


@st.composite
def trees(draw, max_words=14):
    """Draw the heads of a tree, possibly with crossings, counted from 1, with 0 for the root."""
    order = draw(st.permutations(range(draw(st.integers(1, max_words)))))
    heads = [0] * len(order)
    for place, word in enumerate(order[1:], start=1):
        heads[word] = order[draw(st.integers(0, place - 1))] + 1
    return heads


@st.composite
def any_heads(draw, max_words=10):
    """Draw any mixture of roots, words without heads, trees and cycles."""
    count = draw(st.integers(0, max_words))
    return [
        draw(st.integers(-1, count).filter(lambda head, word=word: head != word))
        for word in range(1, count + 1)
    ]


# --- For the terminal -------------------------------------------------------------------------------


def test_a_tree_with_crossing_arcs():
    assert draw_text(*HEARING, LABELS) == (
        "    ╭─── A          det\n"
        "  ╭─┼─── hearing    nsubj:pass\n"
        "  ├─│─── is         aux\n"
        "──┼─│─── scheduled  root\n"
        "  │ │ ╭─ on         case\n"
        "  │ │ ├─ the        det\n"
        "  │ ╰─┴─ issue      nmod\n"
        "  ├───── today      obl\n"
        "  ╰───── .          punct\n"
    )


def test_east_asian_words_and_heads_from_0():
    words = ["太郎は", "花子が", "読んでいる", "本を", "次郎に", "渡した"]
    assert draw_text(words, [5, 2, 3, 5, 5, -1], list("DDDDD_"), base=0) == (
        "  ╭───── 太郎は      D\n"
        "  │   ╭─ 花子が      D\n"
        "  │ ╭─┴─ 読んでいる  D\n"
        "  ├─┴─── 本を        D\n"
        "  ├───── 次郎に      D\n"
        "──┴───── 渡した\n"
    )


def test_combining_marks_take_no_cell():
    assert count_cells("e\u0301") == 1
    assert draw_text(["e\u0301", "ab"], [2, 0], ["x", "y"]) == "  ╭─ e\u0301   x\n──┴─ ab  y\n"


def test_words_without_heads_and_cycles_are_drawn():
    assert draw_text(["a", "b"], [-1, -1]) == " a\n b\n"
    assert draw_text(list("abcde"), [2, 1, 2, 0, 4]) == (
        "     1  a  ← 2\n     2  b  ← 1\n     3  c  ← 2\n──┬─ 4  d\n  ╰─ 5  e\n"
    )
    assert draw_text(list("abc"), [-1, 1, 1]) == "  ╭─ a\n  ├─ b\n  ╰─ c\n"
    assert draw_text([], []) == ""


@given(trees())
def test_the_tree_can_be_read_off_the_picture(heads):
    drawing = draw_text(["w"] * len(heads), heads)
    assert "←" not in drawing
    trunks = [line.removesuffix(" w") for line in drawing.splitlines()]
    assert [head + 1 for head in find_heads(trunks)] == heads


WORD = st.text(max_size=12)


@given(any_heads(), st.integers(1, 60), st.data())
def test_every_line_has_its_word_and_fits(heads, width, data):
    column = st.lists(WORD, min_size=len(heads), max_size=len(heads))
    words, labels, tags = (data.draw(column) for _ in range(3))
    lines = draw_text(words, heads, labels, tags, width=width).split("\n")
    assert len(lines) == len(heads) + 1
    assert all(count_cells(line) <= width for line in lines)


def test_control_characters_do_not_reach_the_terminal():
    drawing = draw_text(["\x1b[2J", "a\nb", "\u202egnp", "\x9b"], [0, 1, 1, 1], ["\x07"] * 4)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", drawing)
    assert drawing.count("\n") == 4


@pytest.mark.parametrize("heads", [list(range(2000)), [0] + [1] * 1999, [*range(2, 2001), 0]])
def test_long_and_deep_sentences(heads):
    drawing = draw_text(["w"] * 2000, heads)
    assert drawing.count("\n") == 2000
    assert max(map(len, drawing.splitlines())) < 150
    assert draw_svg(["w"] * 2000, heads).count("<text ") == 2000


# --- SVG --------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


class Parsed:
    """The parts of a picture: lines, arrows, labels, words, tags."""

    def __init__(self, svg):
        self.root = ElementTree.fromstring(svg)
        lines, arrows, labels, words, tags = self.root.findall(f"{SVG}g")
        self.lines = [self.points(path.get("d")) for path in lines]
        self.arrows = [float(path.get("d")[1:].split()[0]) for path in arrows]
        self.labels, self.words, self.tags = (
            [(t.text, *self.at(t)) for t in group] for group in (labels, words, tags)
        )

    @staticmethod
    def at(text):
        return float(text.get("x")), float(text.get("y"))

    @staticmethod
    def points(path):
        """Return the vertical and horizontal segments of a path: (x1, y1, x2, y2)."""
        pieces, x, y = [], 0.0, 0.0
        for kind, coordinates in re.findall(r"([MVHQ])([^MVHQ]*)", path):
            numbers = [float(number) for number in coordinates.split()]
            new_x, new_y = {"V": (x, numbers[0]), "H": (numbers[0], y)}.get(kind, tuple(numbers[-2:]))
            if kind in "VH":
                pieces.append((min(x, new_x), min(y, new_y), max(x, new_x), max(y, new_y)))
            x, y = new_x, new_y
        return pieces


def boxes(texts, size):
    return [
        (x - _estimate_width(text, size) / 2, y - size, x + _estimate_width(text, size) / 2, y)
        for text, x, y in texts
    ]


def list_overlaps(box, other_boxes):
    return [
        other_box
        for other_box in other_boxes
        if box[0] < other_box[2] and other_box[0] < box[2] and box[1] < other_box[3] and other_box[1] < box[3]
    ]


def test_pictures_show_all_words_tags_labels_and_arcs():
    tags = ["DET", "NOUN", "AUX", "VERB", "ADP", "DET", "NOUN", "NOUN", "PUNCT"]
    picture = Parsed(draw_svg(*HEARING, LABELS, tags))
    assert [word for word, _, _ in picture.words] == HEARING[0]
    assert [tag for tag, _, _ in picture.tags] == tags
    assert sorted(label for label, _, _ in picture.labels) == sorted(LABELS)
    assert len(picture.lines) == len(picture.arrows) == len(HEARING[0])
    # Every word has an arrow above it.
    for (_, x, _), (_, next_x, _) in zip(picture.words, picture.words[1:], strict=False):
        assert sum(x - 30 < arrow < (x + next_x) / 2 for arrow in picture.arrows) >= 1


@given(any_heads(), st.data())
def test_nothing_overlaps(heads, data):
    column = st.lists(
        st.sampled_from(["x", "nsubj:pass", "dependency", "犬"]), min_size=len(heads), max_size=len(heads)
    )
    words, labels = data.draw(column), data.draw(column)
    picture = Parsed(draw_svg(words, heads, labels))
    places = boxes(picture.labels, _LABEL_SIZE) + boxes(picture.words, _WORD_SIZE)
    for number, box in enumerate(places):
        assert not list_overlaps(box, places[:number])
    for line, box in zip(picture.lines, boxes(picture.labels, _LABEL_SIZE), strict=True):
        legs = [piece[0] for piece in line if piece[0] == piece[2]]
        assert len(legs) == 1 or min(legs) + _CORNER < box[0] < box[2] < max(legs) - _CORNER  # a root has one
    width, height = float(picture.root.get("width")), float(picture.root.get("height"))
    assert all(box[0] >= 0 and box[2] <= width + 0.5 and box[1] >= 0 and box[3] <= height for box in places)
    assert all(0 <= x <= width for x in picture.arrows)
    level = [piece for line in picture.lines for piece in line if piece[1] == piece[3]]
    for number, segment in enumerate(level):
        assert not [
            earlier
            for earlier in level[:number]
            if earlier[1] == segment[1] and earlier[0] < segment[2] and segment[0] < earlier[2]
        ]
    upright = [piece for line in picture.lines for piece in line if piece[0] == piece[2]]
    for number, segment in enumerate(upright):
        assert all(abs(segment[0] - earlier[0]) > 1 for earlier in upright[:number])


@given(trees())
def test_arcs_of_trees_cross_only_where_dependencies_do(heads):
    picture = Parsed(draw_svg(["word"] * len(heads), heads))
    arcs = [tuple(sorted((word, head))) for word, head in enumerate(heads, start=1) if head]
    root = heads.index(0) + 1
    crossings = sum(a < c < b < d for a, b in arcs for c, d in arcs) + sum(a < root < b for a, b in arcs)
    level = [piece for line in picture.lines for piece in line if piece[1] == piece[3]]
    upright = [piece for line in picture.lines for piece in line if piece[0] == piece[2]]
    met = sum(h[0] < v[0] < h[2] and v[1] < h[1] < v[3] for h in level for v in upright)
    assert met == crossings


def test_labels_move_away_from_crossing_arcs():
    picture = Parsed(draw_svg(*HEARING, LABELS))
    upright = [piece for line in picture.lines for piece in line if piece[0] == piece[2]]
    for text, x, y in picture.labels:
        if text != "root":
            assert not list_overlaps(boxes([(text, x, y)], _LABEL_SIZE)[0], upright)


@given(st.lists(WORD, min_size=1, max_size=5))
def test_any_text_is_escaped(words):
    picture = Parsed(draw_svg(words, [0] + [1] * (len(words) - 1), words, words))
    assert len(picture.words) == sum(map(bool, words))
    hostile = Parsed(draw_svg(["<script>&\"'"], [0], ["</svg>"]))
    assert hostile.words[0][0] == "<script>&\"'"
    assert hostile.root.get("aria-label") == "<script>&\"'"
    assert hostile.root.find(".//script") is None


# --- Arguments --------------------------------------------------------------------------------------


def test_sentences_are_drawn_in_notebooks():
    bank = Treebank.from_words(
        [["Dogs", "bark"]], xpos=[["NNS", "VBP"]], heads=[[2, 0]], deprels=[["nsubj", "root"]]
    )
    assert bank[0].draw() == "  ╭─ Dogs  NNS  nsubj\n──┴─ bark  VBP  root\n"
    assert bank[0].draw(width=12) == draw_text(bank[0], width=12)
    assert bank[0].to_svg() == draw_svg(["Dogs", "bark"], [2, 0], ["nsubj", "root"], ["NNS", "VBP"])
    assert bank[0].to_svg() in bank[0]._repr_html_()


@pytest.mark.parametrize("draw", [draw_text, draw_svg])
def test_arguments_that_do_not_fit(draw):
    for arguments, error, message in (
        ((["a", "b"], [0]), ValueError, "1 heads for 2 words"),
        ((["a", "b"], [0, 3]), ValueError, "word 2: the head 3 is not another of 2 words"),
        ((["a", "b"], [0, 2]), ValueError, "word 2: the head 2"),
        ((["a", "b"], [0, -2]), ValueError, "word 2: the head -2"),
        ((["a", "b"], [0, 1], ["x"]), ValueError, "1 labels or tags for 2 words"),
        ((["a", "b"],), TypeError, "give a sentence of a treebank, or words and heads"),
    ):
        with pytest.raises(error, match=message):
            draw(*arguments)
    with pytest.raises(ValueError, match="base must be 0 or 1"):
        draw(["a"], [0], base=2)


def test_widths_must_be_positive():
    with pytest.raises(ValueError, match="width must be positive, got 0"):
        draw_text(["a"], [0], width=0)


# --- Chunks and bunsetsu --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tags",
    ["I-NP I-NP B-NP I-VP O", "B-NP I-NP B-NP B-VP O", "I-NP E-NP I-NP I-VP O", "B-NP E-NP S-NP S-VP O"],
)
def test_chunks_of_any_scheme_in_brackets(tags):
    words = ["the", "sea", "he", "saw", "."]
    assert draw_chunks(words, tags.split()) == "[NP the sea] [NP he] [VP saw] ."


def test_chunks_without_a_type():
    assert draw_chunks(["a", "b\x1b", "c"], ["B", "B", "I"]) == "[a] [b\ufffd c]"
    assert draw_chunks([], []) == ""


def test_chunks_are_drawn_in_notebooks():
    words, tags = [["<b>", "saw"]], [["B-NP", "B-VP"]]
    sentence = ChunkCorpus.from_words(words, tags=tags)[0]
    assert sentence.draw() == "[NP <b>] [VP saw]\n"
    assert "[NP &lt;b&gt;] [VP saw]" in sentence._repr_html_()
    assert ChunkCorpus.from_words(words)[0].draw() == "<b> saw\n"


def test_bunsetsu_are_drawn_in_notebooks():
    lines = "* 0 1D\n本 ほん 本 名詞 普通名詞 * *\n* 1 -1D\n読む よむ 読む 動詞 * * *\nEOS\n"
    (sentence,) = read_bunsetsu(io.BytesIO(lines.encode()))
    assert sentence.draw() == draw_text(["本", "読む"], [1, -1], base=0)
    assert sentence.to_svg() == draw_svg(["本", "読む"], [1, -1], base=0)
    assert sentence.to_svg() in sentence._repr_html_()
