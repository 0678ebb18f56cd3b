"""Compare new figures with those that are kept: ratios to peers, and not times, since machines differ.

    python benchmarks/regressions.py build/benchmarks/quick

For each task, figure and peer that both have, the ratio of our number to the peer's is compared. It ends with
1 if a ratio is worse by more than a quarter, beyond what the runs of both spread. Of times without a peer
nothing is said; sizes, accuracies and counts are compared as they are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.report import RESULTS, Figure, read

WORSE = 1.25
MORE_IS_BETTER = ("%", "/s", "F1", "NDCG")
OF_THE_MACHINE = ("s", "ms", "µs", "ns")  # units of figures that depend on how busy it is


def goodness(figure: Figure) -> float:
    """Larger is better."""
    assert figure.value
    return figure.value if figure.unit.endswith(MORE_IS_BETTER) else 1 / figure.value


def standings(path: Path) -> Iterator[tuple[tuple[str, str, str, str], float, float]]:
    """Our figures, relative to each peer's where time is measured; and how far their runs spread."""
    figures = [figure for figure in read(path).figures if figure.value]
    for mine in (figure for figure in figures if figure.ours):
        if not mine.unit.split("/")[0].endswith(OF_THE_MACHINE):
            yield (mine.task, mine.contender, mine.figure, ""), goodness(mine), 0.0
            continue
        for peer in figures:
            if not peer.ours and (peer.task, peer.figure, peer.unit) == (mine.task, mine.figure, mine.unit):
                key = (mine.task, mine.contender, mine.figure, peer.contender)
                yield key, goodness(mine) / goodness(peer), mine.spread + peer.spread


def worse(old: Path, new: Path) -> list[str]:
    before = {key: (ratio, spread) for key, ratio, spread in standings(old)}
    found = []
    for key, ratio, spread in standings(new):
        if key in before and before[key][0] > ratio * (WORSE + spread + before[key][1]):
            task, contender, figure, peer = key
            beside = f" beside {peer}" if peer else ""
            found.append(
                f"{new.stem}, {task}, {contender}{beside}: {figure} was "
                f"{before[key][0] / ratio:.2f} times as good"
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="where the new figures are")
    parser.add_argument("--against", type=Path, default=RESULTS, help="the older ones")
    given = parser.parse_args()
    found = []
    for new in sorted(given.folder.glob("*/*.json")):
        old = given.against / new.relative_to(given.folder)
        found += worse(old, new) if old.exists() else []
    print("\n".join(found) or "no figure is worse than it was")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
