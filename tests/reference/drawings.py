"""Read a tree from its drawing for the terminal."""

from __future__ import annotations

LEFT = set("┬┴┼")  # where a head joins its bar
UP, DOWN = set("╰├┴┼│"), set("╭├┬┼│")


def find_heads(trunks: list[str]) -> list[int]:
    """Return the row of each word's head, -1 for a root; `trunks` are the drawn lines without the words."""
    return [find_head(trunks, row) for row in range(len(trunks))]


def find_head(trunks: list[str], row: int) -> int:
    column = len(trunks[row]) - 1
    while column >= 0 and trunks[row][column] not in "╭╰├ ":
        column -= 1  # along the line, through the word's own bar and under crossing bars
    if column < 0:
        return -1
    assert trunks[row][column] != " ", "a line comes from nowhere"
    return next(other for other in bar(trunks, row, column) if trunks[other][column] in LEFT)


def bar(trunks: list[str], row: int, column: int) -> list[int]:
    """Return the rows joined by a bar."""
    first = last = row
    while trunks[first][column] in UP:
        first -= 1
        assert trunks[first][column] in DOWN, "a bar ends in the air"
    while trunks[last][column] in DOWN:
        last += 1
        assert trunks[last][column] in UP, "a bar ends in the air"
    return list(range(first, last + 1))
