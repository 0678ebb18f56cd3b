"""The figures of one benchmark, and the JSON file that keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.state import State, find_contender_version, now
from harness.timing import Times

RESULTS = Path(__file__).resolve().parents[1] / "results"
OURS = "unkernel"
HEADLINE_MACHINE = "x86_64"  # the machine of headline figures and charts, on which all peers were built


@dataclass(frozen=True)
class Figure:
    """One number.

    Attributes
    ----------
    task, contender : str
        What was measured, and which program. Names of our contenders begin with ``unkernel``.
    figure, unit : str
        The quantity, such as ``"training"``, and its unit, such as ``"CPU s"``.
    value : float or None
        None if the contender did not reach the goal; `note` gives the reason.
    version : str
        Version of the contender.
    repeats : int
        Number of runs; the best run counts.
    spread : float
        Relative difference between the median of the runs and the best run.
    at : float or None
        Horizontal coordinate, if the number is a point of a curve.
    """

    task: str
    contender: str
    figure: str
    unit: str
    value: float | None
    version: str = ""
    repeats: int = 1
    spread: float = 0.0
    note: str = ""
    at: float | None = None

    @property
    def ours(self) -> bool:
        return self.contender.startswith(OURS)


class Report:
    """Collects the figures of a benchmark, prints each figure when it is added, and saves all figures."""

    def __init__(self, benchmark: str, *, quick: bool = False) -> None:
        self.benchmark = benchmark
        self.quick = quick
        self.state = now(quick)
        self.figures: list[Figure] = []
        self.left_out: dict[str, str] = {}

    def add(
        self,
        task: str,
        contender: str,
        figure: str,
        unit: str,
        value: float | Times | None,
        *,
        version: str = "",
        note: str = "",
        at: float | None = None,
    ) -> None:
        """Add one number, or the best of several times."""
        if isinstance(value, Times):
            number, repeats, spread = value.best, len(value.values), round(value.spread, 3)
        else:
            number, repeats, spread = value, 1, 0.0
        number = None if number is None else float(f"{number:.4g}")
        version = version or find_contender_version(contender)
        new_figure = Figure(task, contender, figure, unit, number, version, repeats, spread, note, at)
        self.figures.append(new_figure)
        place = "" if at is None else f" at {at:g}"
        remark = f" ({note})" if note else ""
        print(f"  {task}, {contender}{place}: {figure} {format_with_unit(new_figure)}{remark}", flush=True)

    def leave_out(self, what: str, reason: object) -> None:
        """Record that a contender or a task is left out, and the reason."""
        self.left_out[what] = str(reason).strip().splitlines()[-1] if str(reason).strip() else "no reason"
        print(f"  {what}: left out ({self.left_out[what]})", flush=True)

    def path(self, folder: Path) -> Path:
        """Return the path of the file of figures: ``FOLDER/MACHINE/BENCHMARK.json``."""
        return folder / self.state.machine / f"{self.benchmark}.json"

    def save(self, folder: Path) -> Path:
        """Write the file of figures."""
        path = self.path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = {
            "benchmark": self.benchmark,
            "state": self.state.to_json(),
            "left_out": self.left_out,
            "figures": [_without_defaults(figure) for figure in self.figures],
        }
        lines = json.dumps(stored | {"figures": []}, indent=1, ensure_ascii=False)[: -len("[]\n}")]
        rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in stored["figures"])
        path.write_text(f"{lines}[\n{rows}\n ]\n}}\n", encoding="utf-8")
        return path


@dataclass(frozen=True)
class Saved:
    """A file of figures."""

    benchmark: str
    state: State
    left_out: dict[str, str]
    figures: list[Figure]


def read(path: Path) -> Saved:
    stored = json.loads(path.read_text(encoding="utf-8"))
    figures = [Figure(**row) for row in stored["figures"]]
    return Saved(stored["benchmark"], State(**stored["state"]), stored["left_out"], figures)


def read_saved(folder: Path = RESULTS) -> Iterator[Saved]:
    """Return all files of figures, grouped by machine."""
    for path in sorted(folder.glob("*/*.json")):
        yield read(path)


def format_with_unit(figure: Figure) -> str:
    """Return the number with its unit."""
    return f"{digits(figure)} {figure.unit}".strip()


def digits(figure: Figure) -> str:
    """Return the number as text; percentages have two decimals."""
    if figure.unit == "%" and figure.value is not None:
        return f"{figure.value:.2f}"
    return number(figure.value)


def number(value: float | None) -> str:
    """Format a number with three significant digits, or all digits before the point."""
    if value is None:
        return "not reached"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:.2e}"


def _without_defaults(figure: Figure) -> dict[str, object]:
    defaults = Figure("", "", "", "", None)
    return {
        key: value
        for key, value in asdict(figure).items()
        if key in ("task", "contender", "figure", "unit", "value") or value != getattr(defaults, key)
    }
