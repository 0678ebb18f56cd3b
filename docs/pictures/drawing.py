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
WIDTH = 4.7  # inches: legible on a telephone, and not too large where there is room
OURS, THEIRS, OTHERS = "#0072b2", "#8a8a8a", "#d55e00"  # of the palette of Okabe and Ito, but for the grey
TEXT, FAINT, GRID, PALE, PAPER = "#222222", "#666666", "#dddddd", "#e8f1f8", "#ffffff"
# The same colours on a dark page. The names are CSS variables, which docs/_static/unkernel.css sets, too.
DARK = {
    "ours": (OURS, "#56b4e9"),
    "theirs": (THEIRS, "#8f8f8f"),
    "others": (OTHERS, "#f08a5d"),
    "text": (TEXT, "#e4e4e4"),
    "faint": (FAINT, "#a8a8a8"),
    "grid": (GRID, "#444444"),
    "pale": (PALE, "#1d3442"),
    "paper": (PAPER, "#14181e"),
}

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
    figure.suptitle(words, x=0.01, ha="left", weight="bold", fontsize=12)


def put_small_print(figure: Figure, words: str) -> None:
    """At the foot: what was measured, by which command, where and when."""
    figure.supxlabel(words, x=0.01, ha="left", fontsize=7, color=FAINT)


def save(figure: Figure, name: str) -> None:
    """Write ``docs/_static/pictures/NAME.svg``; the same figures make the same file."""
    rcParams["svg.hashsalt"] = name
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None, "Creator": None}, transparent=True)
    lines = with_both_palettes(path.read_text()).splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n")
    print(path.relative_to(ROOT))


def with_both_palettes(svg: str) -> str:
    """Return a picture whose colours follow the page: by CSS variables, with the reader's setting alone."""
    for name, (light, _) in DARK.items():
        svg = svg.replace(light, f"var(--picture-{name}, {light})")
    light, dark = (
        " ".join(f"--picture-{name}: {colors[shade]};" for name, colors in DARK.items()) for shade in (0, 1)
    )
    style = (
        f"<style>svg.picture {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ svg.picture {{ {dark} }} }}</style>"
    )
    start = svg.index("<svg ")
    svg = svg[:start] + svg[start:].replace("<svg ", '<svg class="picture" ', 1)
    end_of_tag = svg.index(">", start) + 1
    return svg[:end_of_tag] + "\n" + style + svg[end_of_tag:]
