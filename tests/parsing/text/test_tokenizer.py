"""Tokenizers lose no character of any text, reproduce their training text, and can be saved."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from unkernel import FormatError, load
from unkernel.data import Treebank, read_conllu
from unkernel.models import container
from unkernel.parsing import Tokenizer, TokenizerModel, original_text
from unkernel.parsing.text.gold_text import plain_text

TEXTS = [
    (["I", "do n't", "know", "."], "I don't know."),
    (["He", "did n't", "see", "Mr.", "Smith", "."], "He didn't see Mr. Smith."),
    (["It", "is n't", "the", "U.S.", ",", "is", "it", "?"], "It isn't the U.S., is it?"),
    (["Why", "not", "(", "he", "asked", ")", "?"], "Why not (he asked)?"),
    (["They", "saw", "the", "dog", "'s", "tail", "!"], "They saw the dog's tail!"),
    (["HE", "DID N'T", "KNOW", "."], "HE DIDN'T KNOW."),
    (["Mr.", "Jones", "knows", "the", "U.S.", "well", "."], "Mr. Jones knows the U.S. well."),
]


def make_treebank(texts, *, with_text=True, paragraphs=4):
    """Return a treebank of tokenized texts. A blank in a token separates its two words."""
    lines = []
    for number, (tokens, text) in enumerate(texts):
        if number % paragraphs == 0:
            lines.append("# newpar")
        if with_text:
            lines.append(f"# text = {text}")
        word, position = 1, 0
        for token in tokens:
            form = token.replace(" ", "")
            position = text.index(form, position) + len(form)
            misc = "SpaceAfter=No" if text[position : position + 1].strip() else "_"
            if " " in token:
                lines.append(f"{word}-{word + 1}\t{form}" + "\t_" * 7 + f"\t{misc}")
            for part in token.split(" "):
                lines.append(f"{word}\t{part}" + "\t_" * 7 + f"\t{'_' if ' ' in token else misc}")
                word += 1
        lines.append("")
    return Treebank._from_text(read_conllu(make_file(lines))._text)


def make_file(lines):
    import io

    return io.BytesIO("\n".join([*lines, ""]).encode())


BANK = make_treebank(TEXTS * 20)


@pytest.fixture(scope="module")
def tokenizer():
    """Return a tokenizer that no test changes."""
    return Tokenizer(epochs=4).fit(BANK)


def list_tokens(bank):
    return [[word.form for word in sentence] for sentence in bank]


# --- Results ----------------------------------------------------------------------------------------------


def test_the_training_text_is_reproduced(tokenizer):
    result = tokenizer.evaluate(BANK)
    assert (result.tokens.f1, result.words.f1, result.sentences.f1) == (100.0, 100.0, 100.0)


def test_multiword_tokens_are_ranges_with_their_words(tokenizer):
    bank = tokenizer.tokenize("I don't know.")
    assert bank.to_bytes().decode() == (
        "# newpar\n# text = I don't know.\n"
        + "1\tI" + "\t_" * 8 + "\n"
        + "2-3\tdon't" + "\t_" * 8 + "\n"
        + "2\tdo" + "\t_" * 8 + "\n"
        + "3\tn't" + "\t_" * 8 + "\n"
        + "4\tknow" + "\t_" * 7 + "\tSpaceAfter=No\n"
        + "5\t." + "\t_" * 7 + "\tSpaceAfter=No\n\n"
    )  # fmt: skip


def test_unknown_multiword_tokens_are_split_by_their_endings(tokenizer):
    assert list_tokens(tokenizer.tokenize("He hasn't. HE DIDN'T."))[0][1:3] == ["has", "n't"]
    assert list_tokens(tokenizer.tokenize("HE HASN'T SEEN."))[0][1:3] == ["HAS", "N'T"]


def test_blank_lines_end_sentences_and_begin_paragraphs(tokenizer):
    bank = tokenizer.tokenize("They saw\n\nthe dog\n \t\nthe tail")
    assert list_tokens(bank) == [["They", "saw"], ["the", "dog"], ["the", "tail"]]
    assert all("newpar" in sentence.metadata for sentence in bank)


def test_blanks_are_written_as_udpipe_does(tokenizer):
    bank = tokenizer.tokenize(" \tThey  saw\r\n\n")
    assert bank[0].misc == ["SpacesBefore=\\s\\t|SpacesAfter=\\s\\s", "SpacesAfter=\\r\\n\\n"]


@pytest.mark.filterwarnings("ignore:.*neither")
def test_treebanks_without_text_or_blanks_are_learnt_from_forms():
    for bank in (
        make_treebank(TEXTS * 3, with_text=False),
        Treebank.from_words([["a", "b", "."], ["c", "."]] * 9),
    ):
        tokenizer = Tokenizer(epochs=3, min_count=1).fit(bank)
        assert tokenizer.evaluate(bank).words.f1 == 100.0


def test_treebanks_without_marks_of_blanks_warn(tmp_path):
    lines = [f"{k}\t{form}" + "\t_" * 8 for k, form in enumerate(["ab", "."], 1)]
    (tmp_path / "a.conllu").write_text("\n".join([*lines, "", ""]) * 9, encoding="utf-8")
    with pytest.warns(
        UserWarning, match=r'a\.conllu: .* neither "# text" nor SpaceAfter=No: .* punctuation'
    ) as caught:
        Tokenizer(epochs=1).fit(read_conllu(tmp_path / "a.conllu"))
    assert len(caught) == 1
    spaced = read_conllu(make_file(["# text = ab .", *lines, ""] * 9))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for bank in (BANK[:8], spaced, Treebank.from_words([["a", "b-c"], ["d'"]] * 9)):
            Tokenizer(epochs=1).fit(bank)


def test_the_text_comment_gives_blanks_that_misc_lacks():
    lines = ["# text = ab.", *(f"{k}\t{form}" + "\t_" * 8 for k, form in enumerate(["ab", "."], 1)), ""]
    bank = read_conllu(make_file(lines * 9))
    tokenizer = Tokenizer(epochs=2, min_count=1).fit(bank)
    assert list_tokens(tokenizer.tokenize("ab."))[0] == ["ab", "."]


def test_words_count_where_the_text_contradicts_them(tmp_path):
    consistent = "# text = ab.\n1\ta{0}\tSpaceAfter=No\n2\tb{0}\tSpaceAfter=No\n3\t.{0}\t_\n\n".format(
        "\t_" * 7
    )
    (tmp_path / "a.conllu").write_text(
        consistent + 2 * consistent.replace("= ab.", "= abc."), encoding="utf-8"
    )
    bank = read_conllu(tmp_path / "a.conllu")
    with pytest.warns(UserWarning, match=r"a\.conllu:6: .* contradicts .* and 1 more like it") as caught:
        assert plain_text(bank) == "ab. ab. ab.\n"
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="the comment is ignored"):
        assert Tokenizer(epochs=1).fit(bank).evaluate(bank).tokens.n_gold == 9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plain_text(bank[:1]) == "ab.\n"


def test_languages_without_blanks_between_words():
    words = [["我", "喜欢", "猫", "。"], ["他", "喜欢", "狗", "。"], ["猫", "看", "狗", "。"]] * 8
    lines = []
    for sentence in words:
        lines += [f"{k}\t{form}" + "\t_" * 7 + "\tSpaceAfter=No" for k, form in enumerate(sentence, 1)]
        lines.append("")
    bank = read_conllu(make_file(lines))
    tokenizer = Tokenizer(epochs=6).fit(bank)
    assert list_tokens(tokenizer.tokenize("他喜欢猫。猫看狗。")) == [
        ["他", "喜欢", "猫", "。"],
        ["猫", "看", "狗", "。"],
    ]


def test_words_with_blanks_inside():
    lines = []
    for number in ("1 000", "2 500", "7 000") * 9:
        lines += [f"{k}\t{form}" + "\t_" * 8 for k, form in enumerate(["about", number, "dogs"], 1)] + [""]
    tokenizer = Tokenizer(epochs=6).fit(read_conllu(make_file(lines)))
    assert list_tokens(tokenizer.tokenize("about 7 500 dogs"))[0] == ["about", "7 500", "dogs"]
    bank = tokenizer.tokenize("about 7\t500 dogs")  # a form cannot contain a tab
    assert "7" in bank[0].forms
    assert original_text(bank) == "about 7\t500 dogs"


# --- No character is lost ---------------------------------------------------------------------------------

ODD = [
    "\0",
    "a\0b\0\0 c",
    "\x01\x02 \x1b[0m\x7f",
    "שלום עולם. مرحبا بالعالم.",
    "e\u0301\u0327 n\u0303.",
    "👩‍👩‍👧‍👦🏳️‍🌈 Hi!👍🏽",
    "\ufeffThey saw.",
    "no final newline",
    "x" * 10_000 + "." + "y " * 5_000,
    "\u00a0They\u202fsaw\u3000it.\u2028\u2029\x85",
    "\r\rA\rB\r\n\r\nC",
    "# text = 1\t_\t_\n2-3\tx|y\\n",
    "...!!!???---((((\n" * 50,
    bytes(range(256)).decode("latin-1") * 3,
    "_",
    "\\s\\n|SpaceAfter=No",
    "'" * 300,
    "don't" * 300,
]  # fmt: skip


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_unusual_texts_are_reproduced(tokenizer, text):
    check_is_reproduced(tokenizer, text)


@given(text=st.text(st.characters(exclude_categories=["Cs"])) | st.text("aA.'n t\n\r\t\0 1,-", max_size=60))
def test_generated_texts_are_reproduced(tokenizer, text):
    check_is_reproduced(tokenizer, text)


@given(data=st.binary(max_size=200))
def test_decoded_random_bytes_are_reproduced(tokenizer, data):
    check_is_reproduced(tokenizer, data.decode("utf-8", errors="replace"))


def check_is_reproduced(tokenizer, text):
    bank = tokenizer.tokenize(text)
    only_blanks = all(character.isspace() or character == "\0" for character in text)
    assert original_text(bank) == ("" if only_blanks else text)
    assert len(bank) == 0 or not only_blanks


@pytest.mark.parametrize("text", ["", " ", "\n\n\t", "\0", "\u3000"])
def test_blanks_alone_have_no_sentence(tokenizer, text):
    assert len(tokenizer.tokenize(text)) == 0


@pytest.mark.parametrize("text", ["a\ud800", "\udcff b"])
def test_half_a_surrogate_pair_is_refused(tokenizer, text):
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        tokenizer.tokenize(text)


def test_bytes_are_refused(tokenizer):
    with pytest.raises(TypeError, match="decode bytes"):
        tokenizer.tokenize(b"They saw.")


def test_threads_do_not_matter(tokenizer):
    text = "\n\n".join(f"They saw Mr. Smith {k} times. It isn't the U.S.!\nWhy not?" for k in range(2500))
    expected = tokenizer.tokenize(text, n_jobs=1).to_bytes()
    assert tokenizer.tokenize(text, n_jobs=3).to_bytes() == expected
    assert original_text(tokenizer.tokenize(text, n_jobs=2)) == text


def test_a_long_line_is_split_like_its_sentences(tokenizer):
    """Equal sentences are split equally, also at the ends of blocks of the character window."""
    sentence = "They didn't see Mr. Smith's (U.S.) dog! "
    forms = list_tokens(tokenizer.tokenize(sentence * 3000))
    assert len({tuple(sentence) for sentence in forms[1:-1]}) == 1


# --- Files ------------------------------------------------------------------------------------------------


def test_files(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.uk"
    tokenizer.save(path)
    text = "They didn't see Mr. Smith. Why not?"
    expected = tokenizer.tokenize(text).to_bytes()
    for other in (
        load(path),
        TokenizerModel.load(path),
        Tokenizer.load(path),
        pickle.loads(pickle.dumps(tokenizer)),
    ):
        assert other.tokenize(text).to_bytes() == expected
    assert isinstance(load(path), TokenizerModel)
    assert Tokenizer.load(path).get_params() == clone(tokenizer).get_params()
    refitted = Tokenizer(epochs=4).fit(BANK)
    refitted.save(tmp_path / "again.uk")
    assert (tmp_path / "again.uk").read_bytes() == path.read_bytes()


DAMAGE = {
    "pages": lambda a: a[:-1],
    "kinds": lambda a: np.full_like(a, 255),
    "shapes": lambda a: a + 9,
    "cases": lambda a: a[1:],
    "pairs": lambda a: a + 4,
    "uses": lambda a: a[1:],
    "words": lambda a: a.astype(np.int64),
    "features": lambda a: a[:1],
    "token_rules": lambda a: a + 1000,
    "tokens": lambda a: a[1:],
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_arrays_are_refused(tokenizer, name):
    _, arrays, settings_ = tokenizer.to_model().to_container()
    with pytest.raises(FormatError, match=r"damaged|array|columns"):
        TokenizerModel.from_container("x.uk", arrays | {name: DAMAGE[name](arrays[name])}, settings_)


@pytest.mark.parametrize("blank", "\0\t\n\r ")
def test_files_whose_line_ends_are_not_blanks_are_refused(tokenizer, tmp_path, blank):
    """With correct digests, such a file would make the tokenizer loop forever."""
    kind, arrays, settings = tokenizer.to_model().to_container()
    kinds = arrays["kinds"].copy()
    kinds[256 * int(arrays["pages"][0]) + ord(blank)] = 2
    for damaged in (kinds, arrays["kinds"][::-1]):
        container.write(tmp_path / "t.uk", kind, arrays | {"kinds": damaged}, settings)
        with pytest.raises(FormatError, match=r"t\.uk: .*(line ends must be blank|damaged)"):
            load(tmp_path / "t.uk")


@pytest.mark.parametrize("blanks", [" ", "\n\n", "\n", "  b"])
def test_a_megabyte_without_blanks_is_one_paragraph(tokenizer, blanks):
    """Blanks after a megabyte of text belong to its paragraph."""
    text = "a" * 2**20 + blanks
    assert original_text(tokenizer.tokenize(text)) == text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rules", [[[0, 1, "a"]]]),
        ("rules", [[]]),
        ("rules", [[[0, 10**9, "", ""]] * 2]),
        ("longest_ending", 65),
        ("parts", {}),
        ("parameters", None),
    ],
)
def test_damaged_settings_are_refused(tokenizer, name, value):
    _, arrays, settings_ = tokenizer.to_model().to_container()
    with pytest.raises(FormatError):
        TokenizerModel.from_container("x.uk", arrays, settings_ | {name: value})


def test_files_of_other_kinds_are_refused(tokenizer, tmp_path):
    from unkernel.parsing import ArcEagerModel

    tokenizer.save(tmp_path / "tokenizer.uk")
    with pytest.raises(FormatError, match="not a parser"):
        ArcEagerModel.load(tmp_path / "tokenizer.uk")


def test_parameters_and_empty_treebanks_are_checked():
    with pytest.raises(ValueError, match="epochs"):
        Tokenizer(epochs=0).fit(BANK)
    with pytest.raises(ValueError, match="no sentences"):
        Tokenizer().fit(Treebank.from_words([]))


def test_the_best_epoch_on_dev_is_kept_and_measured():
    tokenizer = Tokenizer(epochs=3).fit(BANK, dev=BANK)
    assert tokenizer.dev_result_.sentences.f1 == 100.0


def test_combining_marks_belong_to_the_character_before_them(tokenizer):
    assert list_tokens(tokenizer.tokenize("the to\u0302\u0323 tail"))[0][1] == "to\u0302\u0323"
