"""A page per command of ``unkernel``, made of what ``--help`` says, into ``docs/commands``.

The pages are written when a build begins and are no part of the tree. They are reStructuredText, whose
``option`` directive gives every option an address and an entry in the index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from unkernel.cli.app import build

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LINES_AS_THEY_ARE = "\b"  # how Click marks a paragraph of examples
ARGUMENTS, OPTIONS = "Arguments", "Options"  # the titles of what belongs to no group


def write_pages(folder: Path) -> None:
    """The pages of all commands, and no others."""
    pages = dict(pages_below(()))
    folder.mkdir(parents=True, exist_ok=True)
    for old in {*folder.glob("*.rst")} - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        file = folder / name
        # A file that stays as it is need not be read again by the next build.
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def pages_below(path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Name and text of the pages of all commands below one."""
    for name in getattr(command_at(path), "commands", {}):
        below = (*path, name)
        yield f"{'-'.join(below)}.rst", page(below)
        yield from pages_below(below)


def command_at(path: Sequence[str]) -> Any:
    command = typer.main.get_command(build(path))
    for name in path:
        command = command.commands[name]  # type: ignore[attr-defined]
    return command


def page(path: tuple[str, ...]) -> str:
    command, name = command_at(path), " ".join(path)
    context = typer.Context(command, info_name=f"unkernel {name}")
    usage = re.sub(r"[{}]", "", command.get_usage(context).removeprefix("Usage: "))
    usage = usage.replace("[[FILE]...]...", "[FILE]...")  # which is optional, and may be repeated
    parts = [heading(name, "="), code(usage, "text"), *paragraphs(command.help)]
    if kinds := getattr(command, "commands", {}):
        parts += kinds_of(path, kinds)
    else:
        parts += [f".. program:: unkernel {name}", *options(command.get_params(context), context)]
    return "\n\n".join(parts) + "\n"


def paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        plain = Text.from_markup(paragraph).plain.strip()
        yield code(plain) if paragraph.startswith(LINES_AS_THEY_ARE) else escaped(plain)


def kinds_of(path: tuple[str, ...], kinds: dict[str, Any]) -> Iterator[str]:
    """What a command that has commands of its own lists, and their pages."""
    pages = {name: "-".join((*path, name)) for name in kinds}
    yield "\n".join(f":doc:`{name} <{pages[name]}>`\n   {escaped(kind.help)}" for name, kind in kinds.items())
    yield ".. toctree::\n   :hidden:\n\n" + "\n".join(f"   {page}" for page in pages.values())


def options(parameters: Sequence[Any], context: typer.Context) -> Iterator[str]:
    """Arguments and options under the titles that ``--help`` gives them."""
    groups: dict[str, list[str]] = {ARGUMENTS: [], OPTIONS: []}
    for parameter in parameters:
        names, about = parameter.get_help_record(context)
        if parameter.param_type_name == "argument":
            groups[ARGUMENTS].append(option(names.split()[0], about))
        else:
            groups.setdefault(parameter.rich_help_panel or OPTIONS, []).append(option(names, about))
    for title, members in groups.items():
        if members:
            yield heading(title, "-")
            yield from members


def option(names: str, about: str) -> str:
    """One option; what Click adds in brackets, such as its default, becomes a sentence."""
    about, _, notes = about.partition("  [")
    if notes:
        about += f" {wording(notes.removesuffix(']'))}"
    return f".. option:: {names.replace(' / ', ', ').replace(' range>', '>')}\n\n   {escaped(about)}"


def wording(notes: str) -> str:
    """``default: (2); x>=1`` in words; what is in round brackets may have semicolons of its own."""
    sentences = []
    for note in map(str.strip, re.findall(r"(?:\([^)]*\)|[^;(])+", notes)):
        if note in ("required", "default: (required)"):
            sentences.append("Required.")
        elif note.startswith("default: "):
            sentences.append(f"Default: {note.removeprefix('default: ').strip('()')}.")
        else:
            sentences.append(range_in_words(note))
    return " ".join(sentences)


def range_in_words(note: str) -> str:
    """``x>=1`` or ``0<=x<=9`` in words."""
    if note.startswith("x>="):
        return f"At least {note.removeprefix('x>=')}."
    lowest, _, largest = note.split("<=")
    return f"Between {lowest} and {largest}."


def heading(title: str, line: str) -> str:
    return f"{title}\n{line * len(title)}"


def code(text: str, language: str = "console") -> str:
    return f".. code-block:: {language}\n\n" + "\n".join(f"   {line}" for line in text.splitlines())


def escaped(text: str) -> str:
    """Text without what reStructuredText would take for markup."""
    return re.sub(r"([\\*`|_])", r"\\\1", text.strip())


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / "commands"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
