"""Corpora in notebooks."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET

import pytest

from reference.parse_corpora import MAKERS
from unkernel.data import ChunkCorpus, Treebank, read_bunsetsu, read_chunks, read_conllu

READ = {
    "trees": read_conllu,
    "bunsetsu": read_bunsetsu,
    "chunks": lambda file: read_chunks(file, tagged=True),
}


@pytest.mark.parametrize("task", READ)
@pytest.mark.parametrize("sentences", [0, 1, 3, 4, 1003])
def test_the_first_sentences_are_shown(task, sentences):
    corpus = READ[task](io.BytesIO(MAKERS[task](sentences, 0).encode()))
    page = corpus._repr_html_()
    ET.fromstring(f"<div>{page}</div>")  # well-formed
    assert f"{sentences} sentence{'' if sentences == 1 else 's'}" in page
    assert page.count(corpus[0]._repr_html_() if sentences else "<svg") == min(sentences, 1)
    assert ("and 1,000 more" in page) == (sentences == 1003)
    assert (" more<" in page) == (sentences > 3)


@pytest.mark.parametrize("kind", [Treebank, ChunkCorpus])
def test_words_are_no_markup(kind):
    page = kind.from_words([["<script>", "&", "a"]])._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page
    ET.fromstring(f"<div>{page}</div>")
