"""Reading and writing data."""

from unkernel.data import datasets
from unkernel.data.bunsetsu import (
    BunsetsuCorpus,
    BunsetsuSentence,
    Morpheme,
    read_bunsetsu,
    read_bunsetsu_parts,
)
from unkernel.data.conllu_trees import Sentence, read_conllu
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
    "Forest",
    "Morpheme",
    "Sentence",
    "SvmlightData",
    "SvmlightPart",
    "TreeData",
    "TreeExample",
    "datasets",
    "read_bunsetsu",
    "read_bunsetsu_parts",
    "read_conllu",
    "read_svmlight",
    "read_svmlight_parts",
    "read_trees",
    "write_svmlight",
]
