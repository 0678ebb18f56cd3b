"""``unkernel.load``, and the one table of what the rooms can load: this module stands above all of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unkernel.models import registry

if TYPE_CHECKING:
    from unkernel.engines import CompiledClassifier, TreeClassifier
    from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker

# What the metadata of a file calls it: what it holds, in words, and what reads it.
_KINDS = {
    "compiled": ("a compiled classifier", "unkernel.engines.loading:load_compiled"),
    "conjunctions": ("a model of conjunctions", "unkernel.engines.loading:load_conjunctions"),
    "kernel": ("a model of support vectors", "unkernel.engines.loading:load_kernel"),
    "linear": ("a linear model", "unkernel.engines.loading:load_linear"),
    "tree": ("a model of trees", "unkernel.engines.loading:load_tree"),
    "arc_eager_parser": (
        "a parser of dependencies",
        "unkernel.parsing.arc_eager.estimator:ArcEagerParser.from_container",
    ),
    "bunsetsu_parser": (
        "a parser of Japanese bunsetsu",
        "unkernel.parsing.bunsetsu.estimator:BunsetsuParser.from_container",
    ),
    "chunker": ("a chunker", "unkernel.parsing.chunks.estimator:Chunker.from_container"),
}

for _name, (_description, _loader) in _KINDS.items():
    registry.register(_name, _description, _loader)


def load(
    path: str | os.PathLike[str],
) -> CompiledClassifier | TreeClassifier | ArcEagerParser | BunsetsuParser | Chunker:
    """Read a ``.uk`` file and make it ready: a classifier, a parser or a chunker.

    A file that ``compile`` made is mapped into memory, and so shared among the processes that load it.

    What comes back depends on the file, which no type checker can see. If you know what the file holds, say
    so: ``ArcEagerParser.load(path)``, ``BunsetsuParser.load(path)`` and ``Chunker.load(path)`` refuse files
    of other kinds and return their own class; otherwise narrow the result by ``isinstance``.

    Returns
    -------
    CompiledClassifier, TreeClassifier, ArcEagerParser, BunsetsuParser or Chunker

    Raises
    ------
    FormatError
        If the file is not a model, is damaged, or was written by a newer unkernel.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> clf = load("model.uk")  # doctest: +SKIP
    >>> clf.predict(X)  # doctest: +SKIP
    >>> parser = ArcEagerParser.load("en.uk")  # doctest: +SKIP
    """
    from unkernel.models import container  # brings numpy in

    name = os.fspath(path)
    kind, arrays, settings = container.read(path)
    loaded: CompiledClassifier | TreeClassifier | ArcEagerParser | BunsetsuParser | Chunker
    loaded = registry.kind_of(name, kind).load(name, arrays, settings)
    return loaded
