"""Tokenizers give the same results as their slow twin, character by character."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference import tokenizing
from unkernel.data import read_conllu
from unkernel.parsing import Tokenizer

SENTENCES = [
    ("I don't know Mr. Smith.", ["I", "do_n't", "know", "Mr.", "Smith", "."]),
    (
        "Its dog isn't 1 000 miles (or so) away!",
        ["Its", "dog", "is_n't", "1~000", "miles", "(", "or", "so", ")", "away", "!"],
    ),
    ("its late, he said.", ["it_s", "late", ",", "he", "said", "."]),
    ('"Why not?"', ['"', "Why", "not", "?", '"']),
    ("Élan d'été: l'ÉTÉ du chat...", ["Élan", "d'", "été", ":", "l'", "ÉTÉ", "de_le|du", "chat", "..."]),
    ("猫が好き。", ["猫", "が", "好き", "。"]),
    ("He didn't see its tail", ["He", "did_n't", "see", "its", "tail"]),
]
LETTERS = "aIM.'nt \n\r\t\0\"()1,éÉ猫がs’-\u00a0"


def treebank(path):
    lines = []
    for number, (text, tokens) in enumerate(SENTENCES * 8):
        lines += ["# newpar"] * (number % 5 == 0) + [f"# text = {text}"]
        word = 1
        for token in tokens:
            words, _, form = token.partition("|")
            parts = words.replace("~", " ").split("_")
            form = (form or "".join(parts)).replace("~", " ")
            if len(parts) > 1:
                lines.append(f"{word}-{word + len(parts) - 1}\t{form}" + "\t_" * 8)
            for part in parts:
                lines.append(f"{word}\t{part}" + "\t_" * 8)
                word += 1
        lines.append("")
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return read_conllu(path)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return Tokenizer(epochs=3).fit(treebank(tmp_path_factory.mktemp("bank") / "bank.conllu"))


def check_equals_twin(tokenizer, text):
    twin = tokenizing.Tokenizer(tokenizer.to_model())
    assert tokenizer.tokenize(text).to_bytes().decode() == twin.tokenize(text)


def test_the_tokenizer_makes_all_kinds_of_decisions(tokenizer):
    model = tokenizer.to_model()
    assert model.split_classifier_ is not None
    assert len(model.arrays["ending_rules"]) > 0
    assert set(model.arrays["pairs"].tolist()) > {tokenizing.ASK}


@pytest.mark.parametrize(("text", "_"), SENTENCES)
def test_training_texts(tokenizer, text, _):
    check_equals_twin(tokenizer, text)


@given(
    parts=st.lists(
        st.sampled_from([text for text, _ in SENTENCES])
        | st.text(LETTERS, max_size=12)
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
        | st.sampled_from(["x" * 70, "its " * 3, "\n\n", "HASN'T", "a" * 30 + "n't"]),
        max_size=8,
    )
)
@example(parts=["\0 a", " ", "b\r", "\r\nc"])
def test_any_text(tokenizer, parts):
    check_equals_twin(tokenizer, "".join(parts))


def test_a_text_longer_than_the_window(tokenizer):
    check_equals_twin(tokenizer, " ".join(text for text, _ in SENTENCES) * 40)
