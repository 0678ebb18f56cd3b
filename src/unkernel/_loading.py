"""``unkernel.load``, and the one table of what the rooms can load: this module stands above all of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from unkernel.data import showing
from unkernel.models import registry

if TYPE_CHECKING:
    from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
    from unkernel.parsing import (
        ArcEagerModel,
        BunsetsuModel,
        ChunkModel,
        TaggerModel,
        TextParserModel,
        TokenizerModel,
        WordClusters,
    )

# What the metadata of a file calls it: what it holds, in words, and what reads it.
_KINDS = {
    "compiled": ("a compiled classifier", "unkernel.engines.loading:load_compiled"),
    "conjunctions": ("a model of conjunctions", "unkernel.engines.loading:load_conjunctions"),
    "kernel": ("a model of support vectors", "unkernel.engines.loading:load_kernel"),
    "linear": ("a linear model", "unkernel.engines.loading:load_linear"),
    "tree": ("a model of trees", "unkernel.engines.loading:load_tree"),
    "records": ("a classifier of records", "unkernel.engines.records:RecordClassifier.from_container"),
    "arc_eager_parser": (
        "a parser of dependencies",
        "unkernel.parsing.arc_eager.model:ArcEagerModel.from_container",
    ),
    "bunsetsu_parser": (
        "a parser of Japanese bunsetsu",
        "unkernel.parsing.bunsetsu.model:BunsetsuModel.from_container",
    ),
    "chunker": ("a chunker", "unkernel.parsing.chunks.model:ChunkModel.from_container"),
    "tokenizer": ("a tokenizer", "unkernel.parsing.text.tokenizer_model:TokenizerModel.from_container"),
    "text_parser": (
        "a parser of raw text",
        "unkernel.parsing.text.text_parser_model:TextParserModel.from_container",
    ),
    "word_clusters": (
        "a clustering of words",
        "unkernel.parsing.text.clusters:WordClusters.from_container",
    ),
    "tagger": ("a tagger", "unkernel.parsing.text.tagger_model:TaggerModel.from_container"),
}

for _name, (_description, _loader) in _KINDS.items():
    registry.register(_name, _description, _loader)

# What rooms below are asked for, and what does it.
showing.register("report", "unkernel.report.making:report")
showing.register("html", "unkernel.report.notebooks:html_of")


def load(
    path: str | os.PathLike[str],
    *,
    verify: Literal["lazy"] | bool = "lazy",
    mmap: bool = True,
    limit: float | str | None = None,
) -> (
    CompiledClassifier
    | RecordClassifier
    | TreeClassifier
    | ArcEagerModel
    | BunsetsuModel
    | ChunkModel
    | TaggerModel
    | TextParserModel
    | TokenizerModel
    | WordClusters
):
    """Read a ``.uk`` file and make it ready: a classifier, a parser, or a part of one.

    The file is mapped into memory, and so shared among the processes that load it. Replace a model by saving
    or moving another over it, never by copying into it: what is mapped would change under those who use it,
    and a file that is cut short would end them. ``mmap=False`` reads the whole file, and has no such care.

    What comes back depends on the file, which no type checker can see: narrow it by ``isinstance``. The
    ``load`` of each class, such as ``ArcEagerModel.load(path)``, raises for files of other kinds and returns
    its own class. That of an estimator, such as ``ArcEagerParser.load(path)``, gives an estimator that can be
    fitted again.

    Parameters
    ----------
    path : path
    verify : "lazy" or bool, default="lazy"
        Which parts are compared with the digests that the file holds. "lazy": the header, and arrays up to
        64 MB in sum, which takes at most about 20 ms. True: all, and the SHA-256, and every number of the
        model that lies beside compiled tables, whose answers are compared with the model's on some rows.
        False: the header alone.
        Files that were written before there were digests load as they are; ``unkernel inspect`` says so.
    mmap : bool, default=True
        Whether the file is mapped, instead of read.
    limit : int or str, default=None
        Bytes of memory that may be taken to make the model ready, such as ``"8G"``. None allows 64 MB and
        128 times the size of the file, so that a small file of a stranger cannot take more, or what the
        environment variable ``UNKERNEL_LIMIT`` says.

    Returns
    -------
    CompiledClassifier, RecordClassifier, TreeClassifier, ArcEagerModel, BunsetsuModel, ChunkModel,
    TaggerModel, TextParserModel, TokenizerModel or WordClusters

    Raises
    ------
    FormatError
        If the file is not a model, is damaged, or was written by a newer unkernel.
    LimitError
        If it would take more memory than `limit`. It is a FormatError and a MemoryError.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> clf = load("model.uk")  # doctest: +SKIP
    >>> clf.predict(X)  # doctest: +SKIP
    >>> parser = load("en.uk")  # doctest: +SKIP
    >>> parser.parse("raw.conllu")  # doctest: +SKIP
    """
    from unkernel.data import allowance
    from unkernel.data.files import name_of
    from unkernel.models import container  # brings numpy in

    name = name_of(path)
    loaded: (
        CompiledClassifier | RecordClassifier | TreeClassifier | ArcEagerModel | BunsetsuModel | ChunkModel
    )
    with allowance.reading(path, limit):
        kind, arrays, settings = container.read(path, verify=verify, mmap=mmap)
        loaded = registry.kind_of(name, kind).load(name, arrays, settings)
        if verify and verify != "lazy":
            check_loaded(loaded, name)
    return loaded


def check_loaded(loaded: object, name: str) -> None:
    """Check what loading leaves for later, because it takes time; a ``FormatError`` of the file `name`."""
    if hasattr(loaded, "check_model"):
        loaded.check_model(name)
    if hasattr(loaded, "check_answers"):
        loaded.check_answers(name)
