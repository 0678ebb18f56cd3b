"""Reading and writing data."""

from unkernel.data import datasets
from unkernel.data.rows.svmlight import (
    SvmlightData,
    SvmlightPart,
    read_svmlight,
    read_svmlight_parts,
    write_svmlight,
)
from unkernel.data.text.bunsetsu import (
    BunsetsuCorpus,
    BunsetsuSentence,
    Morpheme,
    read_bunsetsu,
    read_bunsetsu_parts,
)
from unkernel.data.text.chunks import ChunkCorpus, ChunkSentence, read_chunks
from unkernel.data.text.conll import Sentence, Treebank, Word, read_conllu, read_conllu_parts, read_conllx
from unkernel.data.trees.forest import Forest, TreeExample
from unkernel.data.trees.reading import TreeData, read_trees

__all__ = [
    "BunsetsuCorpus",
    "BunsetsuSentence",
    "ChunkCorpus",
    "ChunkSentence",
    "Forest",
    "Morpheme",
    "Sentence",
    "SvmlightData",
    "SvmlightPart",
    "TreeData",
    "TreeExample",
    "Treebank",
    "Word",
    "datasets",
    "read_bunsetsu",
    "read_bunsetsu_parts",
    "read_chunks",
    "read_conllu",
    "read_conllu_parts",
    "read_conllx",
    "read_svmlight",
    "read_svmlight_parts",
    "read_trees",
    "write_svmlight",
]
