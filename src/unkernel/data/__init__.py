"""Read, write and hold data: sparse rows, trees, treebanks and annotated text."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.data import datasets
    from unkernel.data.rows.svmlight import (
        SvmlightData,
        SvmlightPart,
        read_svmlight,
        read_svmlight_parts,
    )
    from unkernel.data.rows.svmlight_writer import write_svmlight
    from unkernel.data.text.bunsetsu import (
        BunsetsuCorpus,
        BunsetsuSentence,
        Morpheme,
        read_bunsetsu,
        read_bunsetsu_parts,
    )
    from unkernel.data.text.chunks import ChunkCorpus, ChunkSentence, read_chunks
    from unkernel.data.text.conll import Treebank, read_conllu, read_conllu_parts, read_conllx
    from unkernel.data.text.conll_sentence import Sentence, Word
    from unkernel.data.trees.forest import Forest, TreeExample
    from unkernel.data.trees.tree_files import TreeData, read_trees
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.data.datasets": "",
            "unkernel.data.rows.svmlight": "SvmlightData SvmlightPart read_svmlight read_svmlight_parts",
            "unkernel.data.rows.svmlight_writer": "write_svmlight",
            "unkernel.data.text.bunsetsu": "BunsetsuCorpus BunsetsuSentence Morpheme "
            "read_bunsetsu read_bunsetsu_parts",
            "unkernel.data.text.chunks": "ChunkCorpus ChunkSentence read_chunks",
            "unkernel.data.text.conll": "Treebank read_conllu read_conllu_parts read_conllx",
            "unkernel.data.text.conll_sentence": "Sentence Word",
            "unkernel.data.trees.forest": "Forest TreeExample",
            "unkernel.data.trees.tree_files": "TreeData read_trees",
        },
    )

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
