"""``unkernel.load``, and the table of all kinds of files. The table refers to all rooms."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from unkernel.data import repr_html
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

# For each kind of file, as named in the metadata of files: a description and a loader.
_KINDS = {
    "compiled": ("a compiled classifier", "unkernel.engines.classifier_files:load_compiled"),
    "conjunctions": ("a model of conjunctions", "unkernel.engines.classifier_files:load_conjunctions"),
    "kernel": ("a model of support vectors", "unkernel.engines.classifier_files:load_kernel"),
    "linear": ("a linear model", "unkernel.engines.classifier_files:load_linear"),
    "tree": ("a model of trees", "unkernel.engines.classifier_files:load_tree"),
    "records": (
        "a classifier of records",
        "unkernel.engines.records.classifier:RecordClassifier.from_container",
    ),
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

# Functions of higher rooms that lower rooms call by the name of a task.
repr_html.register("report", "unkernel.report.build_report:report")
repr_html.register("html", "unkernel.report.notebook_tables:make_notebook_html")
repr_html.register("permutation_losses", "unkernel.measures.permutation:measure_permutation_losses")
repr_html.register("shape", "unkernel.report.shape_drawing:draw_shape")
repr_html.register("lazy_records", "unkernel.distributed.collections.frames:LazyRecords")
repr_html.register("lazy_answers", "unkernel.distributed.collections.scoring:lazy_answers")


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
    """Read a ``.uk`` file: a classifier, a parser or another trained model, ready for use.

    The file is mapped into memory, and processes that load the same file share this memory. To replace a
    model, save or move another file over it. Never copy into the file: processes that have mapped it would
    read a mixture of both files, or crash. With ``mmap=False``, the whole file is read, and may be changed
    afterwards.

    The type of the result depends on the file; narrow it with ``isinstance``. The ``load`` method of a class,
    such as ``ArcEagerModel.load(path)``, always returns an object of this class, and raises an error for
    other files. The ``load`` method of an estimator, such as ``ArcEagerParser.load(path)``, returns an
    estimator that you can fit again.

    Parameters
    ----------
    path : str or path-like
        The file.
    verify : "lazy" or bool, default="lazy"
        Which parts to compare with the checksums in the file. "lazy" checks the header and the smallest
        arrays up to a total of 64 MB, which takes at most about 20 ms. True checks everything, including the
        SHA-256, every number of the model, and the predictions of the compiled tables on random rows. False
        checks only the header. Files of early versions have no checksums, and are not checked; ``unkernel
        inspect`` shows whether a file has checksums.
    mmap : bool, default=True
        Whether to map the file instead of reading it.
    limit : int or str, default=None
        Largest amount of memory in bytes that the model may take, such as ``"8G"``. None means the value of
        the environment variable ``UNKERNEL_LIMIT`` or, if it is not set, 64 MB plus 128 times the size of the
        file. The default keeps small untrusted files from taking much memory.

    Returns
    -------
    CompiledClassifier, RecordClassifier, TreeClassifier or a model of ``unkernel.parsing``
        The model in the file.

    Raises
    ------
    FormatError
        If the file is not a model, is damaged, or was written by a newer version.
    LimitError
        If loading would take more memory than ``limit``. It is a FormatError and a MemoryError.
    OSError
        If the file cannot be read.

    See Also
    --------
    compile : Compile a model and save it.
    read_model : Read a model file of another program.

    Examples
    --------
    >>> import unkernel
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> unkernel.PolySVC(C=10, gamma=1).fit(X, y).save("xor.uk")
    >>> unkernel.load("xor.uk").predict(X)
    array([0, 1, 1, 0])
    """
    from unkernel.data import file_memory_limit
    from unkernel.data.files import name_of
    from unkernel.models import container  # imports numpy

    name = name_of(path)
    loaded: (
        CompiledClassifier | RecordClassifier | TreeClassifier | ArcEagerModel | BunsetsuModel | ChunkModel
    )
    with file_memory_limit.limit_file(path, limit):
        opened = container.open_file(path, verify=verify, mmap=mmap)
        loaded = registry.kind_of(name, opened.kind).load(name, opened.arrays, opened.settings)
        if verify and verify != "lazy":
            check_loaded(loaded, name)
    if hasattr(loaded, "mapped_file"):
        loaded.mapped_file = opened.file
    return loaded


def check_loaded(loaded: object, name: str) -> None:
    """Run the slow checks that loading omits; raise a ``FormatError`` that names the file `name`."""
    if hasattr(loaded, "check_model"):
        loaded.check_model(name)
    if hasattr(loaded, "check_answers"):
        loaded.check_answers(name)
