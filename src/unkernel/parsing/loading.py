"""Reading ``.uk`` files of any kind."""

from __future__ import annotations

import os

from unkernel.engines import CompiledClassifier, TreeClassifier
from unkernel.engines.classifier import classifier_from
from unkernel.models import container
from unkernel.parsing.arc_eager.estimator import ArcEagerParser
from unkernel.parsing.bunsetsu.estimator import BunsetsuParser
from unkernel.parsing.chunks.estimator import Chunker

Parser = ArcEagerParser | BunsetsuParser | Chunker
PARSERS: dict[str, type[Parser]] = {
    parser.kind: parser for parser in (ArcEagerParser, BunsetsuParser, Chunker)
}


def load(path: str | os.PathLike[str]) -> CompiledClassifier | TreeClassifier | Parser:
    """Read a ``.uk`` file and make it ready: a classifier, a parser or a chunker.

    A file that ``compile`` made is mapped into memory, and so shared among the processes that load it.

    What comes back depends on the file, which no type checker can see. Who knows what it holds says so:
    ``ArcEagerParser.load(path)``, ``BunsetsuParser.load(path)`` and ``Chunker.load(path)`` refuse files of
    other kinds, and have their own class as type; else ``isinstance`` narrows what this gives.

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
    name = os.fspath(path)
    kind, arrays, settings = container.read(path)
    if kind in PARSERS:
        return PARSERS[kind].from_container(name, arrays, settings)
    return classifier_from(name, kind, arrays, settings)
