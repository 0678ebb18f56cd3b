"""Show what unkernel does in about half a minute: ``make demo``, or ``python examples/demo.py [FOLDER]``.

Runs some scripts of the gallery beside this file, each of which also runs alone. Everything is measured while
you wait, on data that are generated or come with Python. Their figures, and a small CSV file to try the
command line on, go into FOLDER, by default build/demo.
"""

from __future__ import annotations

import csv
import os
import runpy
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import matplotlib

matplotlib.use("agg")  # before pyplot is imported: figures go into files
import matplotlib.pyplot as plt

FOLDER = Path("build/demo")
PARTS = (
    "tables/plot_models.py",
    "classification/plot_sparse_rows.py",
    "speed/plot_one_record.py",
    "text/plot_parse.py",
    "trees/plot_python_functions.py",
    "classification/plot_dense_rows.py",
)


def main(folder: Path = FOLDER, parts: Sequence[str] = PARTS) -> None:
    """Run all parts, then show commands to try."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts, start=1):
        script = Path(__file__).parent / part
        print(f"\n=== {number}. {title_of(script)}\n", flush=True)
        run(script, folder / f"{script.stem.removeprefix('plot_')}.png")
    write_people(folder / "people.csv")
    print(f"\n=== {len(parts) + 1}. Try next\n")
    for command in commands(folder):
        print(f"  {program()} {command}")


def title_of(script: Path) -> str:
    """Return the first line of the docstring of a script."""
    return script.read_text(encoding="utf-8").split("\n", 2)[1]


def run(script: Path, picture: Path) -> None:
    """Run a script of the gallery, and keep its figure."""
    with patch.object(plt, "show"):
        runpy.run_path(str(script))
    plt.savefig(picture, dpi=150)
    plt.close("all")
    print(f"\nfigure: {picture}")


def write_people(path: Path) -> None:
    """Write records whose class depends on two columns together."""
    people = [{"age": 20 + k % 50, "job": ("clerk", "pilot", "smith")[k % 3]} for k in range(300)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["age", "job", "income"])
        writer.writeheader()
        for person in people:
            well_paid = person["age"] > 40 and person["job"] == "pilot"
            writer.writerow(person | {"income": "high" if well_paid else "low"})


def commands(folder: Path) -> list[str]:
    """Return commands that train a model, explain a prediction and make a report."""
    people, model = folder / "people.csv", folder / "income.uk"
    return [
        f"train {people} --target income -o {model}",
        f"""explain {model} '{{"age": 51, "job": "pilot"}}'""",
        f"report {model} --test {people} -o {folder / 'report.html'}",
    ]


def program() -> str:
    """Return the command `unkernel`, with its path in this environment if it is not on the PATH."""
    if shutil.which("unkernel"):
        return "unkernel"
    return os.path.relpath(Path(sys.executable).parent / "unkernel")


if __name__ == "__main__":
    try:
        main(*map(Path, sys.argv[1:2]))
    except KeyboardInterrupt:
        sys.exit(130)
