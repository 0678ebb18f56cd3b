"""Tiny models of all kinds, and a server of them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import unkernel
from reference.text_treebanks import treebank_with_text
from unkernel import PolySVC, TreeSVC
from unkernel.data import ChunkCorpus
from unkernel.parsing import ArcEagerParser, Chunker, Tagger, TextParser, Tokenizer

if TYPE_CHECKING:
    from serve.serving import Client

NEEDED = ("httptools", "httpx", "msgspec", "prometheus_client", "starlette", "uvicorn")
if not all(map(find_spec, NEEDED)):  # of the extras serve and test
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a file of each kind. No test changes them."""
    from serve.serving import TREES, record_model

    folder = tmp_path_factory.mktemp("models")
    chunks = ChunkCorpus.from_words([["He", "left"]], [["PRP", "VBD"]], tags=[["B-NP", "B-VP"]])
    bank = treebank_with_text()
    quick = {"epochs": 2, "min_count": 1, "min_updates": 1}
    parser = ArcEagerParser(**quick, runs=1)
    text = TextParser(tokenizer=Tokenizer(epochs=4), tagger=Tagger(**quick), parser=parser)
    rows = PolySVC(degree=2).fit([[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]], [0, 1, 1, 0, 2])
    models = {
        "people": record_model(),
        "rows": unkernel.compile(rows, measure=False),
        "trees": unkernel.compile(TreeSVC().fit(TREES, ["S", "S", "NP", "NP"])),
        "chunks": Chunker(min_count=1).fit(chunks),
        "text": text.fit(bank),
        "arcs": parser.fit(bank),
    }
    for name, model in models.items():
        model.save(folder / f"{name}.uk")
    return {name: folder / f"{name}.uk" for name in models}


@pytest.fixture(scope="session")
def client(files: dict[str, Path]) -> Iterator[Client]:
    """Yield a client of a server of all models, with small limits."""
    from serve.serving import served
    from unkernel.serve import Limits

    with served(files, limits=Limits(body=20_000, batch=50, seconds=20)) as client:
        yield client
