"""What the pictures share: colours that all can tell apart, saved figures of benchmarks, small print."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib import rcParams
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
from harness.report import HEADLINE_MACHINE, Saved, read  # noqa: E402
from harness.state import State  # noqa: E402

FOLDER = ROOT / "docs" / "_static" / "pictures"
OURS, THEIRS, OTHERS = "#0072b2", "#8a8a8a", "#d55e00"  # of the palette of Okabe and Ito, but for the grey
TEXT, FAINT, GRID = "#222222", "#666666", "#dddddd"

rcParams.update(
    {
        "svg.fonttype": "none",  # text stays text: small files, found by a search
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": TEXT,
        "axes.labelcolor": TEXT,
        "axes.edgecolor": GRID,
        "xtick.color": FAINT,
        "ytick.color": TEXT,
    }
)


def results(benchmark: str) -> Saved:
    """The figures that a benchmark has kept."""
    return read(ROOT / "benchmarks" / "results" / HEADLINE_MACHINE / f"{benchmark}.json")


def value_of(file: Saved, task: str, contender: str, figure: str) -> float:
    """One number of these. KeyError if it is not there."""
    for one in file.figures:
        if (one.task, one.contender, one.figure) == (task, contender, figure) and one.value is not None:
            return one.value
    raise KeyError(f"{file.benchmark} has no {figure!r} of {contender!r} for {task!r}")


def command_of(file: Saved) -> str:
    """What was typed to measure them."""
    return f"python benchmarks/{file.benchmark}.py{' --quick' if file.state.quick else ''}"


def machine_of(state: State) -> str:
    """The processor, the system and the date, in a few words."""
    processor = state.processor.replace("(R)", "").replace(" Processor", "")
    return f"{processor}, {state.system.split(' (')[0]}, Python {state.python}, {state.date}"


def microseconds(value: float) -> str:
    """Two digits that count, and the unit that a reader would choose."""
    if value >= 1000:
        return f"{value / 1000:.2g} ms"
    return f"{value:.2g} µs" if value < 100 else f"{value:.0f} µs"


def put_title(figure: Figure, words: str) -> None:
    figure.suptitle(words, x=0.01, ha="left", weight="bold", fontsize=13)


def put_small_print(figure: Figure, words: str) -> None:
    """At the foot: what was measured, by which command, where and when."""
    figure.supxlabel(words, x=0.01, ha="left", fontsize=7.5, color=FAINT)


def save(figure: Figure, name: str) -> None:
    """Write ``docs/_static/pictures/NAME.svg``; the same figures make the same file."""
    rcParams["svg.hashsalt"] = name
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
    print(path.relative_to(ROOT))
