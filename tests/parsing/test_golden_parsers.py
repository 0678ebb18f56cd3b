"""Files of earlier versions: they load, predict and explain as before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import unkernel
from unkernel.data import read_bunsetsu, read_chunks, read_conllu

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(path.stem for path in GOLDEN.glob("*.uk"))
TEXTS = {"trees": "trees.conllu", "bunsetsu": "bunsetsu.knp", "chunks": "chunks.txt", "text": "text.raw"}
READERS = {
    ".conllu": read_conllu,
    ".knp": read_bunsetsu,
    ".txt": lambda path: read_chunks(path, tagged=True),
    ".raw": lambda path: path.read_bytes().decode(),
}
NUMBER = re.compile(r"[+-]\d[\d.]*(?:e[+-]\d+)?")


def text_of(name: str):
    named_text = GOLDEN / f"{name.partition('-')[2]}.conllu"
    path = named_text if named_text.exists() else GOLDEN / TEXTS[name.partition("-")[0]]
    return READERS[path.suffix](path)


def check_answers(parser, name: str) -> None:
    assert parser.parse(text_of(name)).to_bytes() == (GOLDEN / f"{name}.parsed").read_bytes()


def test_every_kind_has_a_golden_file():
    assert {name.partition("-")[0] for name in FILES} == set(TEXTS)


@pytest.mark.parametrize("name", FILES)
def test_old_files_answer_as_before(name, tmp_path):
    parser = unkernel.load(GOLDEN / f"{name}.uk")
    check_answers(parser, name)
    parser.save(tmp_path / "again.uk")
    check_answers(unkernel.load(tmp_path / "again.uk"), name)


@pytest.mark.parametrize("name", FILES)
def test_old_files_explain_as_before(name):
    """Features have the same names as before, and the same weights."""
    text = text_of(name)
    explained_text = text if isinstance(text, str) else text[:2]
    explained = "".join(
        f"{explanation}\n"
        for explanation in unkernel.load(GOLDEN / f"{name}.uk").explain(explained_text, top=3)
    )
    expected = (GOLDEN / f"{name}.explained").read_text()
    assert NUMBER.sub("", explained) == NUMBER.sub("", expected)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (explained, expected)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-5, abs=1e-9)
