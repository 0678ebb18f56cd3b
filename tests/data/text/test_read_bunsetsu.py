"""read_bunsetsu agrees with the slow twin, keeps every byte, and names lines and columns of errors."""

from __future__ import annotations

import io
import lzma

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reference import bunsetsu as twin
from reference import real_data
from unkernel import FormatError
from unkernel.data import read_bunsetsu, read_bunsetsu_parts

HON = "本 ほん 本 名詞 普通名詞 * *"
YOMU = "読む よむ 読む 動詞 * 子音動詞マ行 基本形"
TWO = f"# S-ID:1\n* 0 1D\n{HON}\nを を を 助詞 格助詞 * *\n* 1 -1D\n{YOMU}\nEOS\n"


def read(text, **options):
    return read_bunsetsu(io.BytesIO(text.encode(errors="surrogateescape")), **options)


@given(twin.corpora(), st.booleans(), st.booleans())
def test_reads_as_the_twin_does_and_writes_every_byte(text, carriage_returns, cut):
    text = text.replace("\n", "\r\n") if carriage_returns else text
    text = text.removesuffix("\n") if cut else text
    corpus = read(text)
    expected = twin.read(text)
    assert corpus.to_bytes() == text.encode()
    assert corpus.with_heads(corpus.heads, corpus.types).to_bytes() == text.encode()
    assert len(corpus) == len(expected)
    for sentence_read, sentence_of_twin in zip(corpus, expected, strict=True):
        assert sentence_read.heads == tuple(b.head for b in sentence_of_twin)
        assert sentence_read.types == "".join(b.type for b in sentence_of_twin)
        assert [[m._asdict() for m in b] for b in sentence_read.bunsetsu] == [
            b.morphemes for b in sentence_of_twin
        ]
    assert "".join(str(sentence) for sentence in corpus).split() == text.split()


@given(twin.corpora(), st.integers(1, 200))
def test_parts_together_equal_the_whole(text, size):
    parts = list(read_bunsetsu_parts(io.BytesIO(text.encode()), part_bytes=size))
    corpus = read(text)
    assert b"".join(part.to_bytes() for part in parts) == text.encode()
    assert [str(sentence) for part in parts for sentence in part] == [str(sentence) for sentence in corpus]


@given(twin.corpora(most_sentences=3), st.data())
def test_with_heads_changes_only_the_heads(text, data):
    corpus = read(text)
    sizes = np.diff(corpus.first_bunsetsu)
    assume((corpus.heads < np.repeat(sizes, sizes)).all())  # missing heads can be read, but not trained on
    heads = [data.draw(st.integers(-1, int(size) - 1)) for size in sizes for _ in range(size)]
    changed = corpus.with_heads(heads)
    reread = read(changed.to_bytes().decode())
    assert reread.heads.tolist() == heads
    assert set(reread.types) <= set(b"D")
    assert reread.with_heads(corpus.heads, corpus.types).to_bytes() == text.encode()


def test_a_sentence():
    sentence = read(TWO)[0]
    assert len(sentence) == 2
    assert sentence.surfaces == ("本を", "読む")
    assert sentence.text == "本を読む"
    assert sentence.bunsetsu[1][0].lemma == "読む"
    assert str(sentence) == TWO


def test_slices_are_corpora():
    corpus = read(TWO + TWO.replace("本", "犬") + "EOS\n")
    assert [len(sentence) for sentence in corpus] == [2, 2, 0]
    assert corpus[1:2].to_bytes() == TWO.replace("本", "犬").encode()
    assert len(corpus[-1]) == 0
    with pytest.raises(IndexError):
        corpus[3]


def test_lists_of_numbers_choose_sentences():
    corpus = read("".join(TWO.replace("S-ID:1", f"S-ID:{number}") for number in range(6)))
    for places in ([4, 1], np.array([0, 5]), [], np.arange(6) % 2 == 0):
        numbers = np.arange(6)[places].tolist()
        assert [str(sentence) for sentence in corpus[places]] == [str(corpus[number]) for number in numbers]
    with pytest.raises(IndexError):
        corpus[[6]]
    with pytest.raises(IndexError, match="a number, a slice or a list of numbers"):
        corpus[[[1]]]


def test_annotation_lines_of_knp_are_kept():
    text = (
        "# S-ID:1 KNP:4\n* 0 1D <BGH:本/ほん>\n+ 0 1D <BGH:本/ほん>\n"
        '本 ほん 本 名詞 6 普通名詞 1 * 0 * 0 "代表表記:本/ほん"\n'
        "* 1 -1D\n+ 1 -1D\n読む よむ 読む 動詞 2 * 0 子音動詞マ行 9 基本形 2\nEOS\n"
    )
    corpus = read(text)
    assert corpus[0].bunsetsu[0][0] == ("本", "ほん", "本", "名詞", "普通名詞", "*", "*")
    assert corpus[0].bunsetsu[1][0].cform == "基本形"
    assert corpus.with_heads([-1, 0]).to_bytes().decode() == text.replace("* 1 -1D", "* 1 0D").replace(
        "* 0 1D", "* 0 -1D"
    )


def test_bytes_that_are_no_text_are_kept():
    text = TWO.replace("本", "\udcff")
    assert read(text)[0].bunsetsu[0][0].surface == "\udcff"
    assert read(text).to_bytes() == text.encode(errors="surrogateescape")


def test_a_byte_order_mark_is_kept():
    corpus = read("\ufeff" + TWO)
    assert len(corpus) == 1
    assert corpus.to_bytes().startswith(b"\xef\xbb\xbf#")


def test_compressed_files(tmp_path):
    (tmp_path / "a.knp").write_bytes(lzma.compress(TWO.encode()))
    corpus = read_bunsetsu(tmp_path / "a.knp")
    corpus.write(tmp_path / "b.knp.xz")
    assert lzma.decompress((tmp_path / "b.knp.xz").read_bytes()) == TWO.encode()


BAD = [
    (f"* 0 1D\n{HON}\n* 2 -1D\n{HON}\nEOS\n", 3, 3, "this is number 1"),
    (f"* 0 -2D\n{HON}\nEOS\n", 1, 5, "a head is the number"),
    (f"* 0 99999999999D\n{HON}\nEOS\n", 1, 5, "a head is the number"),
    (f"* 0 01D\n{HON}\nEOS\n", 1, 5, "a head is the number"),
    (f"* 0 xD\n{HON}\nEOS\n", 1, 1, "begins with a bunsetsu"),
    (f"* 0 -1D\n{HON}\n* 1 xD\nEOS\n", 3, 1, "neither a bunsetsu"),
    (f"{HON}\nEOS\n", 1, 1, "begins with a bunsetsu"),
    ("* 0 -1D\n本 ほん 本 名詞 普通名詞 *\nEOS\n", 2, 1, "this line has 6 fields"),
    ("* 0 -1D\n本\n\nEOS\n", 2, 1, "this line has 1 field"),
    ("* 0 -1D\n本 ほん  名詞 普通名詞 * *\nEOS\n", 2, 8, "a field is empty"),
    (f"* 0 -1D\n{HON}\n\nEOS\n", 3, 1, "a field is empty"),
    (f"* 0 1D\n* 1 -1D\n{HON}\nEOS\n", 2, 0, "no morphemes"),
    (f"* 0 1D\n{HON}\n* 1 -1D\nEOS\n", 4, 0, "no morphemes"),
    (f"* 0 -1D\n{HON}\n", 2, 0, "does not end with EOS"),
]


@pytest.mark.parametrize(("text", "line", "column", "reason"), BAD)
def test_bad_sentences_are_refused_or_skipped(text, line, column, reason):
    with pytest.raises(FormatError, match=reason) as caught:
        read(TWO + text)
    lines = TWO.count("\n")
    columns = {8: 12}  # counted in bytes
    assert (caught.value.line, caught.value.column) == (line + lines, columns.get(column, column))
    behind = "" if "does not end" in reason else TWO
    corpus = read(TWO + text + behind, on_error="skip")
    assert len(corpus) == (2 if behind else 1)
    assert [(error.line, error.reason) for error in corpus.skipped] == [(line + lines, caught.value.reason)]
    assert corpus.to_bytes().decode() == TWO + text + behind
    assert "\nEOS\n" + text in corpus.with_heads([-1, 0] * len(corpus)).to_bytes().decode()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# a\n1\tw\t_\tX\t_\t_\t0\troot\t_\t_\n\n2\tv\n", 2),
        (f"* 0 -1D\n{HON}\nEOS\n\nThe DT B-NP\n\nA DT B-NP\n", 5),
    ],
)
def test_files_of_another_format_are_refused_at_their_first_line(text, line):
    with pytest.raises(FormatError, match="a sentence begins with a bunsetsu") as caught:
        read(text)
    assert (caught.value.line, caught.value.column) == (line, 1)
    assert [error.line for error in read(text, on_error="skip").skipped] == [line]


def test_the_line_of_an_error_in_a_later_part():
    text = TWO * 50 + "x\nEOS\n"
    with pytest.raises(FormatError) as caught:
        list(read_bunsetsu_parts(io.BytesIO(text.encode()), part_bytes=100))
    assert caught.value.line == 50 * TWO.count("\n") + 1


def test_heads_are_checked():
    corpus = read(TWO)
    for heads in ([1], [1, 2], [-2, -1], [[1, -1]], [0.5, 1], [2**40, -1]):
        with pytest.raises(ValueError, match=r"head"):
            corpus.with_heads(heads)
    for types in (b"D", b"dD", b"DDD"):
        with pytest.raises(ValueError, match=r"types|A to Z"):
            corpus.with_heads([1, -1], types)


def test_options_are_checked():
    with pytest.raises(ValueError, match="on_error must be"):
        read(TWO, on_error="ignore")
    with pytest.raises(ValueError, match="part_bytes"):
        read_bunsetsu_parts(io.BytesIO(b""), part_bytes=0)


def test_a_file_without_sentences():
    assert len(read("")) == 0
    assert read("\n# nothing\n").to_bytes() == b"\n# nothing\n"


@pytest.mark.parametrize("name", ["wac", "kyoto-reading"])
@pytest.mark.parametrize("part", ["dev", "test"])
def test_real_corpora_are_written_byte_for_byte(name, part):
    path = real_data.path(name, part)
    with lzma.open(path) as file:
        text = file.read()
    corpus = read_bunsetsu(path)
    assert corpus.with_heads(corpus.heads, corpus.types).to_bytes() == text
    assert len(corpus) == text.count(b"\nEOS\n")


def test_surfaces_are_joined_once():
    """Explanations use surfaces in every decision: joining them each time would take quadratic time."""
    (sentence,) = read(TWO)
    assert sentence.surfaces is sentence.surfaces
