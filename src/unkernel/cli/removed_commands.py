"""Reject former forms of commands, with a message that shows the new form."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from unkernel.cli.learners import LEARNERS, PARSERS

_TREE_SUFFIXES = (".klp", ".conllu", ".dat")
_PARSER_COMMANDS = ("train", "run", "eval")
_TASKS = {task: kind for kind, (task, _) in PARSERS.items()}  # the kind of parser for each task


def describe_new_spelling(arguments: Sequence[str]) -> str | None:
    """Return a message that shows the new form of a former command line; None for any other command line."""
    words = list(arguments)
    if words[:1] in (["train"], ["tune"]) and len(words) > 1:
        return _rewrite_train(words[0], words[1:])
    if words[:1] == ["parse"] and len(words) > 1 and words[1] in _PARSER_COMMANDS:
        return None if Path(words[1]).exists() else _rewrite_parse(words[1], words[2:])
    return None


def _rewrite_train(command: str, words: list[str]) -> str | None:
    """Rewrite the former ``train [--model KIND] DATA [OUTPUT]``; return None for the present form."""
    if words[0] in (*LEARNERS, *PARSERS) or (not _is_file_like(words[0]) and "--model" not in words):
        return None
    kind, remaining = _take_option(words, "--model")
    if kind not in LEARNERS:
        has_trees = "--kernel" in remaining or any(word.endswith(_TREE_SUFFIXES) for word in remaining[:1])
        kind = "tree" if has_trees else "poly"
    arguments = _take_leading_arguments(remaining)
    if not arguments:
        return None
    return _format_message(
        f"unkernel {command} KIND DATA", ["unkernel", command, kind, *_move_output(arguments, remaining)]
    )


def _is_file_like(word: str) -> bool:
    """Return whether a word is, or looks like, the name of a file."""
    return word == "-" or (not word.startswith("-") and ("." in word or "*" in word or Path(word).exists()))


def _rewrite_parse(command: str, words: list[str]) -> str:
    """Rewrite the former ``parse run``, ``parse eval`` or ``parse train``."""
    if command == "run":
        return _format_message("unkernel parse run", ["unkernel", "parse", *words])
    if command == "eval":
        return _format_message("unkernel parse eval", ["unkernel", "evaluate", *words])
    task, remaining = _take_option(words, "--task")
    arguments = _take_leading_arguments(remaining)
    swapped = [*arguments[1:2], *arguments[:1]]  # in the former form, the model came first
    remaining = _move_output(swapped, [*swapped, *remaining[len(arguments) :]])
    return _format_message(
        "unkernel parse train", ["unkernel", "train", _TASKS.get(task or "", "parser"), *remaining]
    )


def _take_option(words: list[str], option: str) -> tuple[str | None, list[str]]:
    """Return the value of an option, and the words without the option and its value."""
    for index, word in enumerate(words):
        if word == option and index + 1 < len(words):
            return words[index + 1], words[:index] + words[index + 2 :]
        if word.startswith(f"{option}="):
            return word.partition("=")[2], words[:index] + words[index + 1 :]
    return None, words


def _take_leading_arguments(words: list[str]) -> list[str]:
    """Return the arguments before the first option."""
    count = next((index for index, word in enumerate(words) if word.startswith("-") and word != "-"), None)
    return words[:count]


def _move_output(arguments: list[str], words: list[str]) -> list[str]:
    """Return the words with an option in place of the last of several arguments, which was the output."""
    if len(arguments) < 2:
        return words
    return [*arguments[:-1], "-o", arguments[-1], *words[len(arguments) :]]


def _format_message(former: str, words: list[str]) -> str:
    change = "say which kind of model" if former.endswith("DATA") else f"{former} has another name now"
    return f"{change}, and outputs are options: {shlex.join(words)}"
