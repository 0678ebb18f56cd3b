"""Run all benchmarks, compare their figures with the saved ones, save the new ones, and update the page.

    python benchmarks/run.py [--quick] [BENCHMARK ...]          # what `make bench` does

`--quick` runs small tasks and few rounds, which takes minutes; its figures never replace those of a whole
run. Benchmarks that fail are listed at the end. The program exits with 1 if a benchmark failed, or if a
figure is worse than the saved one (see regressions.py).
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import page
from harness.report import RESULTS, read
from harness.state import ROOT
from regressions import worse

FOLDER = Path(__file__).resolve().parent
NEW = ROOT / "build" / "benchmarks" / "results"


def benchmarks() -> list[str]:
    """Return the names of the scripts that are benchmarks."""
    files = sorted(FOLDER.glob("*.py"))
    return [file.stem for file in files if "\n    main(measure, " in file.read_text(encoding="utf-8")]


def run(names: Sequence[str], *, quick: bool) -> list[str]:
    """Run benchmarks one after another, and return the names of those that failed."""
    failed = []
    for name in names:
        began, used = time.perf_counter(), cpu_of_children()
        words = ["--into", str(NEW), *(["--quick"] if quick else [])]
        completed = subprocess.run([sys.executable, FOLDER / f"{name}.py", *words], check=False)
        wall, cpu = time.perf_counter() - began, cpu_of_children() - used
        print(f"  {wall:.0f} s, {cpu:.0f} of processor time", flush=True)
        failed += [name] if completed.returncode else []
    return failed


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def keep(new_file: Path) -> bool:
    """Copy a new file to the results, unless a short run would replace a whole run; return whether it did."""
    kept_file = RESULTS / new_file.relative_to(NEW)
    if kept_file.exists() and read(new_file).state.quick and not read(kept_file).state.quick:
        return False
    kept_file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(new_file, kept_file)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("benchmarks", nargs="*", metavar="BENCHMARK", help=f"of {', '.join(benchmarks())}")
    parser.add_argument("--quick", action="store_true", help="small tasks and few rounds")
    options = parser.parse_args()
    if unknown := set(options.benchmarks) - set(benchmarks()):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(benchmarks())}")
    shutil.rmtree(NEW, ignore_errors=True)
    failed = run(options.benchmarks or benchmarks(), quick=options.quick)
    result = []
    for new_file in sorted(NEW.glob("*/*.json")):
        kept_file = RESULTS / new_file.relative_to(NEW)
        result += worse(kept_file, new_file) if kept_file.exists() else []
        if not keep(new_file):
            print(f"{new_file.stem}: the figures of a whole run stay")
    page.write()
    print("\n".join(result) or "no figure is worse than it was")
    print("\n".join(f"{name} failed" for name in failed))
    return int(bool(failed or result))


if __name__ == "__main__":
    sys.exit(main())
