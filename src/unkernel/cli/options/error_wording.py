"""Replacement of parameter names by option names in the messages of errors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from unkernel.errors import FormatError


@contextlib.contextmanager
def name_options_in_errors() -> Iterator[None]:
    """Replace parameters by options in the messages of errors."""
    try:
        yield
    except FormatError:
        raise
    except ValueError as error:
        raise ValueError(_name_options(str(error))) from error
    except MemoryError as error:
        raise MemoryError(_name_options(str(error))) from error


def _name_options(words: str) -> str:
    words = re.sub(r"engine='(\w+)'( or '(\w+)')?", _format_engine, words)
    words = re.sub(r"learner='(\w+)'", r"--learner \1", words)
    words = re.sub(r"\bbeam=(\d+)", r"--beam \1", words)
    words = re.sub(r"^(rare|memory|threshold) must", r"--\1 must", words)
    words = re.sub(r"^trie_nodes (must|needs)", r"--trie-nodes \1", words)
    words = re.sub(r"^costs is for", "--costs is for", words)
    words = words.replace("measure=False needs trie_nodes", "--no-measure needs --trie-nodes")
    words = re.sub(r"^trie needs|; leave out trie$", lambda found: found[0].replace("trie", "--trie"), words)
    return re.sub(r"; raise memory$", "; raise --memory", words)


def _format_engine(found: re.Match[str]) -> str:
    return f"--engine {found[1]}" + (f" or {found[3]}" if found[2] else "")
