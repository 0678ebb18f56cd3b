"""``unkernel.load`` and the parsers' own ``load``: what type checkers are told is what comes back."""

from __future__ import annotations

import io
import typing

import pytest

import unkernel
from reference.parse_corpora import MAKERS
from unkernel import CompiledClassifier, FormatError, PolySVC, TreeClassifier, TreeSVC
from unkernel.data import read_bunsetsu, read_chunks, read_conllu
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker

KINDS = {
    ArcEagerParser: ("trees", read_conllu),
    BunsetsuParser: ("bunsetsu", read_bunsetsu),
    Chunker: ("chunks", lambda file: read_chunks(file, tagged=True)),
}


def test_all_kinds_are_in_the_type(tmp_path):
    known = {kind.__name__: kind for kind in (CompiledClassifier, TreeClassifier, *KINDS)}
    told = set(typing.get_args(typing.get_type_hints(unkernel.load, localns=known)["return"]))
    assert told == {CompiledClassifier, TreeClassifier, *KINDS}
    PolySVC().fit([[0, 1], [1, 0]], [0, 1]).save(tmp_path / "rows.uk")
    TreeSVC().fit(["(A (B b))", "(A (C c))"], [0, 1]).save(tmp_path / "trees.uk")
    assert {type(unkernel.load(tmp_path / name)) for name in ("rows.uk", "trees.uk")} <= told


@pytest.mark.parametrize("kind", KINDS)
def test_each_class_reads_its_own_files_only(kind, tmp_path):
    task, read = KINDS[kind]
    path = tmp_path / "m.uk"
    kind().fit(read(io.BytesIO(MAKERS[task](30, 0).encode()))).save(path)
    assert type(kind.load(path)) is type(unkernel.load(path)) is kind
    for other in set(KINDS) - {kind}:
        with pytest.raises(FormatError, match="which is no"):
            other.load(path)
