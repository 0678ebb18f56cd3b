"""Reading and writing data."""

from unkernel.data import datasets
from unkernel.data.bunsetsu import (
    BunsetsuCorpus,
    BunsetsuSentence,
    Morpheme,
    read_bunsetsu,
    read_bunsetsu_parts,
)
from unkernel.data.chunks import ChunkCorpus, ChunkSentence, read_chunks
from unkernel.data.conll import Sentence, Treebank, Word, read_conllu, read_conllu_parts, read_conllx
from unkernel.data.forest import Forest, TreeExample
from unkernel.data.svmlight import (
    SvmlightData,
    SvmlightPart,
    read_svmlight,
    read_svmlight_parts,
    write_svmlight,
)
from unkernel.data.trees import TreeData, read_trees

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
