"""The types of parsers."""

from __future__ import annotations

from unkernel.parsing.arc_eager.estimator import ArcEagerParser
from unkernel.parsing.bunsetsu.estimator import BunsetsuParser
from unkernel.parsing.chunks.estimator import Chunker

Parser = ArcEagerParser | BunsetsuParser | Chunker
