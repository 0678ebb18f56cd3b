"""The options of ``compile``: checked once, then passed on as one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unkernel.data.memory import available_bytes, parse_bytes
from unkernel.engines.tables.prefix_trie import check_limit

ENGINES = ("auto", "inverted", "bitsliced", "expanded", "pruned", "split", "int16")
ENGINES_WITHOUT_TRIE = ("inverted", "bitsliced", "int16")

_DEFAULT_MEMORY_SHARE = 0.25  # share of the free memory
_DEFAULT_MEMORY_BYTES = 1e9  # used if the free memory is unknown

UNKNOWN_KEYS_CHOICES = ("ignore", "error")

OnProgress = Callable[[str], None]


@dataclass(frozen=True)
class CompileOptions:
    """Options of ``compile``.

    Attributes
    ----------
    engine : str
        One of ``ENGINES``.
    rare : float
        For ``split``: a feature is rare if it occurs in fewer support vectors than this number. A value below
        1 is a share of the support vectors.
    threshold : float or None
        For ``pruned``: conjunctions with a smaller absolute weight are dropped.
    memory : float
        Number of bytes that the tables may take.
    trie_nodes : int or None
        Number of nodes of the trie. None measures several sizes, and keeps the fastest trie if it is faster
        than no trie.
    measure : bool
        Whether to choose by measured time instead of by rules.
    cache : int or None
        Number of rows whose scores are cached.
    threads : int
        Number of threads for building.
    on_progress : callable
        Called with a short description of each candidate before it is built.
    """

    engine: str
    rare: float
    threshold: float | None
    memory: float
    trie_nodes: int | None
    measure: bool
    cache: int | None
    threads: int
    on_progress: OnProgress


def check_options(engine: str, rare: float, threshold: float | None) -> None:
    """Raise a ``ValueError`` for invalid values and invalid combinations of values."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if not _is_number(rare) or not 0 <= rare < np.inf:
        raise ValueError(f"rare must be a share below 1 or a number of support vectors, got {rare!r}")
    if (threshold is None) == (engine == "pruned"):
        raise ValueError("engine='pruned' needs a threshold above 0, and the exact engines have none")
    if threshold is not None and (not _is_number(threshold) or not 0 < threshold < np.inf):
        raise ValueError(f"threshold must be above 0, got {threshold!r}")


def check_unknown_keys(unknown_keys: str, *, is_pipeline: bool) -> None:
    """Raise a ``ValueError`` for an unknown value, or for a model whose input has no keys."""
    if unknown_keys not in UNKNOWN_KEYS_CHOICES:
        raise ValueError(
            f"unknown_keys must be one of {', '.join(UNKNOWN_KEYS_CHOICES)}, got {unknown_keys!r}"
        )
    if unknown_keys == "error" and not is_pipeline:
        raise ValueError("unknown_keys is for pipelines, whose records have keys; this model takes rows")


def check_trie(engine: str, trie: Any, nodes: int | None, *, measure: bool = True) -> None:
    """Raise a ``ValueError`` for invalid combinations of options of tries."""
    if trie is None:
        if nodes is not None:
            raise ValueError("trie_nodes needs rows to grow a trie from: give them as trie")
        return
    if engine == "int16":
        raise ValueError("engine='int16' has no prefix trie; leave out trie, or use engine='expanded'")
    if engine in ENGINES_WITHOUT_TRIE:
        raise ValueError(f"engine={engine!r} has no conjunctions, and so no prefix trie; leave out trie")
    if nodes is not None:
        check_limit(nodes, "trie_nodes")
    elif not measure:
        raise ValueError("measure=False needs trie_nodes, because the best size of a trie is measured")


def check_tree_options(options: CompileOptions, sample: Any, trie: Any) -> None:
    """Raise a ``ValueError`` for options that models of trees do not have."""
    if options.engine != "auto" or sample is not None or trie is not None:
        raise ValueError("models of trees have one engine: leave out engine, sample and trie")
    if options.cache is not None:
        raise ValueError("models of trees have no cache: leave out cache")


def parse_memory(memory: int | str | None) -> float:
    """Return the number of bytes that tables may take."""
    if memory is None:
        free = available_bytes()
        return _DEFAULT_MEMORY_SHARE * free if free else _DEFAULT_MEMORY_BYTES
    if isinstance(memory, str):
        return parse_bytes(memory)
    if isinstance(memory, bool) or not memory > 0:
        raise ValueError(f"memory must be a number of bytes above 0, or such as '200M', got {memory!r}")
    return float(memory)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
