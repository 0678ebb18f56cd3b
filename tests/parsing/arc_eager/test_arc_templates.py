"""Template files: their syntax, and reports of mistakes."""

from __future__ import annotations

import pytest

from unkernel import FormatError
from unkernel.data import Treebank
from unkernel.parsing import ArcEagerParser

BANK = Treebank.from_words(
    [["They", "saw", "it"], ["Dogs", "bark"]],
    [["PRON", "VERB", "PRON"], ["NOUN", "VERB"]],
    heads=[[2, 0, 2], [2, 0]],
    deprels=[["nsubj", "root", "obj"], ["nsubj", "root"]],
)
VALID = "[moves]\nstack.word\ninput.word\n[labels]\nhead.word\ndependent.word\n"


def fit(text, folder):
    path = folder / "own.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return ArcEagerParser(templates=path, min_count=1, min_updates=1).fit(BANK)


@pytest.mark.parametrize(
    "text",
    [
        VALID.replace("\n", "\r\n"),
        VALID.replace("\n", "   # what it is\n\n"),
        VALID.strip(),
        "\ufeff" + VALID,
        "# why\n" + VALID.replace("stack.word", "\t stack . word"),
        VALID.replace("stack", "stack[0]").replace("dependent", "dependent[0]"),
        "[labels]\nhead.word\n[moves]\nstack.word\n[labels]\ndependent.word\n[moves]\ninput.word",
    ],
)
def test_equivalent_texts_give_the_same_templates(text, tmp_path):
    parser, expected = fit(text, tmp_path), fit(VALID, tmp_path)
    assert parser.n_features_ == expected.n_features_
    assert parser.parse(BANK).to_bytes() == expected.parse(BANK).to_bytes()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("stack.word\n", 1, r"write \[moves\] or \[labels\] above it"),
        ("\n[move]\n", 2, r"no section \[move\]: sections are \[moves\], \[beside moves\]"),
        ("[moves]\nstack\n", 2, r"'stack' is no.* feature: .*such as stack\.word"),
        ("[moves]\nstack.wrd\n", 2, "no attribute 'wrd'.* form, word"),
        ("[moves]\nstack.up.word\n", 2, "no step 'up'.* head, left"),
        ("[moves]\nhead.word\n", 2, "'head' is not an address here.* stack, input"),
        ("[labels]\n\nstack.word\n", 3, "'stack' is not an address here.* head, dependent"),
        ("[moves]\nstack[x].word\n", 2, "a position is a whole number from -1000 to 1000"),
        ("[moves]\nstack[1.word\n", 2, "position"),
        ("[moves]\nstack.head[1].word\n", 2, "only the first name of a value has a position"),
        ("[moves]\nstack.word input.word\n", 2, "a template ends with its line"),
        ("[moves]\nstack[].word\n", 2, "a position is a whole number"),
        ("[moves]\nstack[1001].word\n", 2, "a position is a whole number"),
        ("[labels]\nhead[-2147483648].word\n", 2, "a position is a whole number"),
        ("[labels]\nhead[-1001].word\n", 2, "a position is a whole number"),
        ("[moves]\nstack[-1].word\n", 2, "count from 0: use the steps before and after"),
        ("[moves]\ndirection\n", 2, r"put it under \[labels\]"),
        ("[moves]\nstack.word\nstack.word\n", 3, "'stack.word' occurs twice"),
        ("[moves]\nstack.word\nstack[0].word\n", 3, "occurs twice"),
        ("[moves]\nstack.word +\n", 2, "a name.*, not the end of the line"),
        ("[moves]\n" + " + ".join(["stack.word"] * 5), 2, "joins at most 4 values"),
        ("[moves]\nstack" + ".head" * 9 + ".word", 2, "more than 8 steps"),
        ("[beside moves]\ndirection\n", 2, r"put it under \[labels\]"),
        ("[moves]\nstack.word\n[beside moves]\nstack.word\n", 4, "'stack.word' occurs twice"),
        (
            "[beside moves]\nstack.word\n[moves]\ninput.word\n",
            4,
            r"features of a \[beside\] section come after",
        ),
        ("[beside moves]\nstack.word\n[labels]\nhead.word\n", 0, r"no feature under \[moves\]"),
        ("", 0, r"no feature under \[moves\]"),
        ("[moves]\nstack.word\n[labels]\n", 0, r"no feature under \[labels\]"),
        (b"[moves]\nstack.w\xff\n", 0, "UTF-8"),
    ],
)
def test_mistakes_name_file_and_line(text, line, message, tmp_path):
    with pytest.raises(FormatError, match=message) as caught:
        fit(text, tmp_path)
    assert caught.value.line == line
    assert "own.txt" in str(caught.value)


def test_features_with_too_many_values_are_refused(tmp_path):
    words = [f"w{number}" for number in range(70_000)]
    bank = Treebank.from_words([words], heads=[[0] + [1] * (len(words) - 1)], deprels=[["x"] * len(words)])
    path = tmp_path / "own.txt"
    path.write_text(
        "[moves]\n"
        + " + ".join(["stack.form", "input.form", "stack[1].form", "input[1].form"])
        + "\n[labels]\ndirection\n"
    )
    with pytest.raises(ValueError, match="too many values: join fewer"):
        ArcEagerParser(templates=path, epochs=1).fit(bank)


def test_missing_files_are_named():
    with pytest.raises(
        FileNotFoundError,
        match="no template file 'defualt'; built-in templates are 'default', 'rich', 'chang'",
    ):
        ArcEagerParser(templates="defualt").fit(BANK)


@pytest.mark.parametrize("templates", ["default", "chang"])
def test_built_in_templates_can_be_read(templates):
    parser = ArcEagerParser(templates=templates, min_count=1, min_updates=1).fit(BANK)
    assert parser.parse(BANK).to_bytes() == BANK.to_bytes()
