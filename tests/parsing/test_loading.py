"""``unkernel.load`` and the classes' own ``load``: the declared types are those returned."""

from __future__ import annotations

import io
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import unkernel
from reference.parse_corpora import MAKERS
from unkernel import CompiledClassifier, FormatError, PolySVC, TreeClassifier, TreeSVC
from unkernel.data import read_bunsetsu, read_chunks, read_conllu
from unkernel.engines import RecordClassifier
from unkernel.parsing import (
    ArcEagerModel,
    ArcEagerParser,
    BunsetsuModel,
    BunsetsuParser,
    Chunker,
    ChunkModel,
    Tagger,
    TaggerModel,
    TextParser,
    TextParserModel,
    Tokenizer,
    TokenizerModel,
    WordClusters,
)

KINDS = {
    ArcEagerParser: (ArcEagerModel, "trees", read_conllu),
    BunsetsuParser: (BunsetsuModel, "bunsetsu", read_bunsetsu),
    Chunker: (ChunkModel, "chunks", lambda file: read_chunks(file, tagged=True)),
    Tagger: (TaggerModel, "trees", read_conllu),
    TextParser: (TextParserModel, "trees", read_conllu),
    Tokenizer: (TokenizerModel, "trees", read_conllu),
}
GOLDEN = Path(__file__).parent / "golden"
MODELS = [model for model, _, _ in KINDS.values()]


def test_the_type_of_load_lists_all_kinds(tmp_path):
    kinds = [CompiledClassifier, RecordClassifier, TreeClassifier, WordClusters, *MODELS]
    names = {kind.__name__: kind for kind in kinds}
    declared_types = set(typing.get_args(typing.get_type_hints(unkernel.load, localns=names)["return"]))
    assert declared_types == set(kinds)
    PolySVC().fit([[0, 1], [1, 0]], [0, 1]).save(tmp_path / "rows.uk")
    TreeSVC().fit(["(A (B b))", "(A (C c))"], [0, 1]).save(tmp_path / "trees.uk")
    assert {type(unkernel.load(tmp_path / name)) for name in ("rows.uk", "trees.uk")} <= declared_types


@pytest.mark.parametrize("estimator", KINDS)
def test_each_class_reads_only_its_own_files(estimator, tmp_path):
    model, task, read = KINDS[estimator]
    path = tmp_path / "m.uk"
    fitted = estimator().fit(read(io.BytesIO(MAKERS[task](30, 0).encode())))
    fitted.save(path)
    assert type(fitted.to_model()) is type(model.load(path)) is type(unkernel.load(path)) is model
    assert type(estimator.load(path)) is estimator
    for other in [*KINDS, *MODELS]:
        if other not in (estimator, model):
            with pytest.raises(FormatError, match="not a "):
                other.load(path)


NUMPY_ALONE = """
import sys

sys.modules.update(dict.fromkeys(("scipy", "sklearn", "pandas", "joblib", "typer", "rich", "matplotlib")))
import unkernel

for model, text, expected in zip(*[iter(sys.argv[2:])] * 3):
    parser = unkernel.load(model)
    found = parser.parse(text)
    assert found.to_bytes() == open(expected, "rb").read(), model
    assert parser.evaluate(found)
    assert parser.explain(found[:1], top=2)
    assert parser.heaviest(3)
    parser.save(sys.argv[1])
    assert unkernel.load(sys.argv[1]).parse(found).to_bytes() == found.to_bytes(), model
    assert list(unkernel.parsing.parse_stream(parser, text))[0].n_sentences > 0
"""
FILES = {
    "trees-online": "trees.conllu",
    "trees-crossing": "crossing.conllu",
    "trees-rich": "trees.conllu",
    "bunsetsu-svm": "bunsetsu.knp",
    "bunsetsu-trie": "bunsetsu.knp",
    "bunsetsu-logistic": "bunsetsu.knp",
    "chunks-svm": "chunks.txt",
    "chunks-backward": "chunks.txt",
}


def test_numpy_is_enough_to_load_parse_explain_and_save(tmp_path):
    """The program runs in a process in which importing any other dependency fails."""
    paths = [
        str(path)
        for name, text in FILES.items()
        for path in (GOLDEN / f"{name}.uk", GOLDEN / text, GOLDEN / f"{name}.parsed")
    ]
    subprocess.run([sys.executable, "-c", NUMPY_ALONE, str(tmp_path / "again.uk"), *paths], check=True)
