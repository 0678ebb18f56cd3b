"""Replace names of parameters by names of options in error messages."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from unkernel.errors import FormatError


@contextlib.contextmanager
def name_options_in_errors() -> Iterator[None]:
    """Replace parameters by options in the messages of errors that are raised in the context."""
    try:
        yield
    except FormatError:
        raise
    except ValueError as error:
        raise ValueError(_name_options(str(error))) from error
    except MemoryError as error:
        raise MemoryError(_name_options(str(error))) from error


def _name_options(message: str) -> str:
    """Replace the parameters in those messages of the library that are known to name some."""
    message = re.sub(r"engine='(\w+)'( or '(\w+)')?", _format_engine, message)
    message = re.sub(r"learner='(\w+)'", r"--learner \1", message)
    message = re.sub(r"\bbeam=(\d+)", r"--beam \1", message)
    message = re.sub(r"^(rare|memory|threshold) must", r"--\1 must", message)
    message = re.sub(r"^trie_nodes (must|needs)", r"--trie-nodes \1", message)
    message = re.sub(r"^costs is for", "--costs is for", message)
    message = message.replace("measure=False needs trie_nodes", "--no-measure needs --trie-nodes")
    message = re.sub(
        r"^trie needs|; leave out trie$", lambda match: match[0].replace("trie", "--trie"), message
    )
    return re.sub(r"; raise memory$", "; raise --memory", message)


def _format_engine(match: re.Match[str]) -> str:
    return f"--engine {match[1]}" + (f" or {match[3]}" if match[2] else "")
