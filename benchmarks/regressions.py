"""Compare new figures with saved ones: ratios to peers instead of times, because machines differ.

    python benchmarks/regressions.py build/benchmarks/quick

For each task, figure and peer in both sets of figures, the ratio of our time to the peer's time is compared.
The program exits with 1 if a ratio is worse by more than a quarter plus the spread of the runs. Times without
a peer are not compared. Megabytes and counts (of passes, weights and so on) are compared directly, and
percentages must not fall by more than one point. Figures in other units, such as certified gaps, are not
compared.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.report import RESULTS, Figure, read

WORSE = 1.25
POINTS = 1.0
TIME = re.compile(r"\b(s|ms|µs|ns)\b")  # units of figures that depend on how busy the machine is
SIZES = ("MB", "bytes", "number")


Key = tuple[str, str, str, str]


def goodness(figure: Figure) -> float:
    """Return a number that is larger for a better time or speed."""
    assert figure.value
    return figure.value if "/" in figure.unit else 1 / figure.value


def standings(path: Path) -> Iterator[tuple[Key, float, float]]:
    """Return ratios of unkernel's times and speeds to each peer's with their spread, and unkernel's sizes."""
    figures = [figure for figure in read(path).figures if figure.value]
    for mine in (figure for figure in figures if figure.ours):
        if mine.unit in SIZES:
            yield (mine.task, mine.contender, mine.figure, ""), goodness(mine), 0.0
        elif TIME.search(mine.unit):
            for peer in figures:
                is_comparable = (peer.task, peer.figure, peer.unit) == (mine.task, mine.figure, mine.unit)
                if is_comparable and not peer.ours:
                    key = (mine.task, mine.contender, mine.figure, peer.contender)
                    yield key, goodness(mine) / goodness(peer), mine.spread + peer.spread


def shares(path: Path) -> dict[Key, float]:
    figures = [figure for figure in read(path).figures if figure.ours and figure.unit == "%" and figure.value]
    return {(figure.task, figure.contender, figure.figure, ""): figure.value or 0.0 for figure in figures}


def worse(old: Path, new: Path) -> list[str]:
    old_standings = {key: (ratio, spread) for key, ratio, spread in standings(old)}
    result = []
    for key, ratio, spread in standings(new):
        if key in old_standings and old_standings[key][0] > ratio * (WORSE + spread + old_standings[key][1]):
            result.append(f"{name_of(new, key)} was {old_standings[key][0] / ratio:.2f} times as good")
    old_shares, new_shares = shares(old), shares(new)
    for key in old_shares.keys() & new_shares.keys():
        if new_shares[key] < old_shares[key] - POINTS:
            result.append(f"{name_of(new, key)} was {old_shares[key]:.2f} %, and is {new_shares[key]:.2f} %")
    return sorted(result)


def name_of(path: Path, key: Key) -> str:
    task, contender, figure, peer = key
    return f"{path.stem}, {task}, {contender}{f' beside {peer}' if peer else ''}: {figure}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="where the new figures are")
    parser.add_argument("--against", type=Path, default=RESULTS, help="the older ones")
    options = parser.parse_args()
    result = []
    for new in sorted(options.folder.glob("*/*.json")):
        old = options.against / new.relative_to(options.folder)
        result += worse(old, new) if old.exists() else []
    print("\n".join(result) or "no figure is worse than it was")
    return int(bool(result))


if __name__ == "__main__":
    sys.exit(main())
