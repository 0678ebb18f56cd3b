"""``unkernel.load`` and the classes' own ``load``: what type checkers are told is what comes back."""

from __future__ import annotations

import io
import typing

import pytest

import unkernel
from reference.parse_corpora import MAKERS
from unkernel import CompiledClassifier, FormatError, PolySVC, TreeClassifier, TreeSVC
from unkernel.data import read_bunsetsu, read_chunks, read_conllu
from unkernel.parsing import (
    ArcEagerModel,
    ArcEagerParser,
    BunsetsuModel,
    BunsetsuParser,
    Chunker,
    ChunkModel,
)

KINDS = {
    ArcEagerParser: (ArcEagerModel, "trees", read_conllu),
    BunsetsuParser: (BunsetsuModel, "bunsetsu", read_bunsetsu),
    Chunker: (ChunkModel, "chunks", lambda file: read_chunks(file, tagged=True)),
}
MODELS = [model for model, _, _ in KINDS.values()]


def test_all_kinds_are_in_the_type(tmp_path):
    kinds = [CompiledClassifier, TreeClassifier, *MODELS]
    names = {kind.__name__: kind for kind in kinds}
    told = set(typing.get_args(typing.get_type_hints(unkernel.load, localns=names)["return"]))
    assert told == set(kinds)
    PolySVC().fit([[0, 1], [1, 0]], [0, 1]).save(tmp_path / "rows.uk")
    TreeSVC().fit(["(A (B b))", "(A (C c))"], [0, 1]).save(tmp_path / "trees.uk")
    assert {type(unkernel.load(tmp_path / name)) for name in ("rows.uk", "trees.uk")} <= told


@pytest.mark.parametrize("estimator", KINDS)
def test_each_class_reads_its_own_files_only(estimator, tmp_path):
    model, task, read = KINDS[estimator]
    path = tmp_path / "m.uk"
    fitted = estimator().fit(read(io.BytesIO(MAKERS[task](30, 0).encode())))
    fitted.save(path)
    assert type(fitted.to_model()) is type(model.load(path)) is type(unkernel.load(path)) is model
    assert type(estimator.load(path)) is estimator
    for other in [*KINDS, *MODELS]:
        if other not in (estimator, model):
            with pytest.raises(FormatError, match="which is no"):
                other.load(path)
