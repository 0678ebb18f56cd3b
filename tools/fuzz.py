"""Run the fuzz targets under libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer, and count runs.

    python tools/fuzz.py run --runs 200000           # in sum over the targets; `make fuzz`
    python tools/fuzz.py run --runs 100000000        # `make fuzz-long RUNS=100000000`
    python tools/fuzz.py run --targets models --runs 10000000      # targets that change arrays
    python tools/fuzz.py merge                       # new inputs into cpp/tests/corpus
    python tools/fuzz.py coverage --least 95         # lines of the readers that the corpus reaches

`run` builds the targets in build/fuzz, gives each of them a hundredth of the runs at least, and divides the
rest so that all of them take about the same time. It prints one Markdown table and exits with 1 if a target
crashed, leaked, or took more than a second or 1 GB for one input. Such inputs are kept in
build/fuzz/failures; other new inputs stay in build/fuzz/work for the next run and for `merge`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "cpp" / "tests" / "corpus"
BUILD = ROOT / "build" / "fuzz"
COVERAGE = ROOT / "build" / "coverage"

# Largest number of bytes in an input; short inputs run fast, and few faults need long ones.
MAX_INPUT_BYTES = 128
MAX_INPUT_BYTES_OF = {"fuzz_conll": 256, "fuzz_chunks": 192, "fuzz_numbers": 48, "fuzz_plans": 160}
# Targets whose inputs are changed arrays of a model, as in files with correct digests.
MODELS = ("fuzz_bunsetsu_files", "fuzz_chunker_files", "fuzz_parser_files", "fuzz_plans", "fuzz_tables")
MODELS += ("fuzz_tagger_files", "fuzz_tokenizer_files", "fuzz_tree_models", "fuzz_vectors", "fuzz_weights")
# Runs per line of the log: if a campaign is interrupted, the log lacks at most so many runs of a target.
RUNS_AT_ONCE = 2_000_000
FIRST_RUNS = 10_000

# Source files that parse text or arrays. `coverage` leaves out code that writes, packs or allocates.
READERS = (
    *(
        f"data/{name}"
        for name in ("decimal", "rows/svmlight.", "rows/svmlight_piece", "rows/svmlight_reasons")
    ),
    *(f"data/{name}" for name in ("rows/block_file", "text/bunsetsu_text", "text/column_reader")),
    *(f"data/{name}" for name in ("text/column_text", "text/head_check", "text/name_table", "text/utf8")),
    "data/trees/",
    *(f"parsing/{name}/templates" for name in ("arc_eager", "bunsetsu", "chunks")),
    "parsing/features/template_text",
)


@dataclass
class Count:
    """The results of one target."""

    runs: int = 0
    seconds: float = 0.0
    features: int = 0
    failures: list[str] = field(default_factory=list)
    slow_under_load: int = 0

    @property
    def speed(self) -> float:
        return self.runs / max(self.seconds, 1e-3)


def compiler() -> str:
    """Return the newest Clang of this machine, or $CXX if that is a Clang."""
    names = [os.environ.get("CXX", ""), "clang++", *(f"clang++-{version}" for version in range(30, 13, -1))]
    for name in names:
        if "clang" in Path(name).name and shutil.which(name):
            return name
    sys.exit(
        "fuzzing needs Clang with libFuzzer (Debian and Ubuntu: apt install clang); `ctest` runs the same "
        "targets without it"
    )


def tool(name: str) -> str:
    """Return a tool of LLVM that belongs to the compiler."""
    command = [compiler(), f"-print-prog-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def build(folder: Path, *options: str) -> None:
    """Compile the targets into `folder`; show the output if it fails."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count()))
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), *generator]
    if not (folder / "CMakeCache.txt").exists():
        configure.append(f"-DCMAKE_CXX_COMPILER={compiler()}")
    configure += ["-DUNKERNEL_TESTS=ON", "-DUNKERNEL_PYTHON=OFF", "-DUNKERNEL_UNITY=OFF", *options]
    for command in (
        configure,
        ["cmake", "--build", str(folder), "--target", "fuzz_targets", "--parallel", jobs],
    ):
        completed = subprocess.run(command, check=False, capture_output=True, text=True)
        if completed.returncode != 0:
            sys.exit(completed.stdout + completed.stderr)


def all_targets() -> list[str]:
    sources = (ROOT / "cpp" / "tests").rglob("fuzz_*.cpp")
    return sorted(source.stem for source in sources if source.stem not in ("fuzz_driver", "fuzz_libfuzzer"))


def choose_targets(names: Sequence[str] | None) -> list[str]:
    """Return the targets with these names; "models" stands for all of `MODELS`."""
    targets = [
        target for name in names or all_targets() for target in (MODELS if name == "models" else (name,))
    ]
    return list(dict.fromkeys(targets))


def program(target: str, folder: Path = BUILD) -> Path:
    return folder / "cpp" / "tests" / target


def list_inputs(target: str) -> list[str]:
    """Return the folders from which libFuzzer starts; it writes into the first."""
    work = BUILD / "work" / target
    seeds = BUILD / "seeds" / target
    for folder in (work, seeds):
        folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([program(target), "--write-seeds", seeds], check=True)
    return [str(folder) for folder in (work, seeds, CORPUS / target) if folder.is_dir()]


def sanitizer_options() -> dict[str, str]:
    """Return the environment of a campaign.

    Allocation stacks are not recorded, which saves a tenth of the time. libFuzzer checks for leaks after each
    input that allocated more often than it freed, so AddressSanitizer need not check at the end.
    """
    return os.environ | {"ASAN_OPTIONS": "malloc_context_size=0:leak_check_at_exit=0"}


# --- Running ------------------------------------------------------------------------------------------


def fuzz(target: str, runs: int, seed: int, count: Count) -> None:
    """Let libFuzzer try `runs` more inputs; it stops at the first failure."""
    failures = BUILD / "failures" / target
    failures.mkdir(parents=True, exist_ok=True)
    old_failures = set(failures.iterdir())
    flags = [f"-runs={runs}", f"-seed={seed}", f"-max_len={MAX_INPUT_BYTES_OF.get(target, MAX_INPUT_BYTES)}"]
    flags += [
        "-timeout=1",
        "-rss_limit_mb=1024",
        "-malloc_limit_mb=65",
        "-detect_leaks=1",
        "-print_final_stats=1",
        "-verbosity=0",
    ]
    flags += ["-entropic=0", "-reload=0", f"-artifact_prefix={failures}/"]
    command = [str(program(target)), *flags, *list_inputs(target)]
    start = time.monotonic()
    completed = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        cwd=failures,
        env=sanitizer_options(),
    )
    count.seconds += time.monotonic() - start
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", completed.stderr)
    count.runs += int(executed[1]) if executed else 0
    if completed.returncode != 0:
        note_failure(target, completed.stderr, set(failures.iterdir()) - old_failures, count)


def note_failure(target: str, output: str, new_files: Iterable[Path], count: Count) -> None:
    """Store the output of a failure. An input that was slow because of other processes is not a failure."""
    for path in new_files:
        if path.name.startswith("timeout-") and passes(target, path):
            count.slow_under_load += 1
            path.unlink()
            return
        path.with_name(path.name + ".txt").write_text(output, encoding="utf-8")
        count.failures.append(str(path.relative_to(ROOT)))
    if not new_files:
        count.failures.append(output[-2000:])


def passes(target: str, path: Path) -> bool:
    """Return whether an input alone takes less than a second of processor time."""
    times_before = os.times()
    command = [str(program(target)), "-timeout=60", str(path)]
    completed = subprocess.run(command, check=False, capture_output=True, env=sanitizer_options())
    times_after = os.times()
    return completed.returncode == 0 and times_after.children_user - times_before.children_user < 1.0


def campaign(target: str, runs: int, seed: int, count: Count, log: Path | None) -> None:
    """Fuzz one target `runs` more times; each part of the runs adds a line to the log."""
    total = count.runs + runs
    while count.runs < total and not count.failures:
        previous_runs = count.runs
        fuzz(target, min(RUNS_AT_ONCE, total - count.runs), seed + count.runs, count)
        if log:
            line = {
                "target": target,
                "runs": count.runs - previous_runs,
                "failures": count.failures,
                "time": time.time(),
            }
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        if count.runs == previous_runs:
            break


def divide_runs(counts: dict[str, Count], runs: int) -> dict[str, int]:
    """Return how many more runs each target gets: a minimum share of `runs`, and the rest by speed."""
    minimum = runs // max(100, 2 * len(counts))
    remaining = runs - minimum * len(counts)
    speed = sum(count.speed for count in counts.values())
    return {
        target: max(0, minimum + int(remaining * count.speed / speed) - count.runs)
        for target, count in counts.items()
    }


def run(arguments: argparse.Namespace) -> int:
    """Fuzz each target for a few runs, which measure its speed, and then for its share of all runs."""
    build(BUILD, "-DUNKERNEL_LIBFUZZER=ON")
    log = Path(arguments.log) if arguments.log else None
    counts = {target: Count() for target in choose_targets(arguments.targets)}
    seed = arguments.seed or int(time.time())
    with ThreadPoolExecutor(arguments.jobs) as pool:
        trial_runs = min(FIRST_RUNS, arguments.runs // (2 * len(counts)))
        list(pool.map(lambda item: campaign(item[0], trial_runs, seed, item[1], log), counts.items()))
        remaining = divide_runs(counts, arguments.runs)
        list(pool.map(lambda item: campaign(item[0], remaining[item[0]], seed, item[1], log), counts.items()))
    print(table(counts, seed))
    return int(any(count.failures for count in counts.values()))


def table(counts: dict[str, Count], seed: int) -> str:
    rows = ["| target | executions | per second | inputs that failed |", "|---|---:|---:|---:|"]
    for target, count in counts.items():
        rows.append(f"| {target} | {count.runs:,} | {count.speed:,.0f} | {len(count.failures)} |")
    runs = sum(count.runs for count in counts.values())
    failures = [failure for count in counts.values() for failure in count.failures]
    rows.append(f"| sum | {runs:,} | | {len(failures)} |")
    slow = sum(count.slow_under_load for count in counts.values())
    if slow:
        rows.append(
            f"\n{slow} inputs took more than a second of the clock on a busy machine, and less alone."
        )
    return "\n".join([*rows, f"\nseed {seed}", *failures])


# --- The corpus and its coverage ----------------------------------------------------------------------


def merge(arguments: argparse.Namespace) -> int:
    """Replace the corpus by a minimal number of short inputs with the same coverage."""
    build(BUILD, "-DUNKERNEL_LIBFUZZER=ON")
    for target in choose_targets(arguments.targets):
        merged = BUILD / "merged" / target
        shutil.rmtree(merged, ignore_errors=True)
        merged.mkdir(parents=True)
        # With counts of executions as coverage, ten times as many files would be kept as with edges alone.
        flags = [
            "-set_cover_merge=1",
            "-use_counters=0",
            f"-max_len={MAX_INPUT_BYTES_OF.get(target, MAX_INPUT_BYTES)}",
        ]
        environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
        command = [str(program(target)), *flags, str(merged), *list_inputs(target)]
        subprocess.run(command, check=True, capture_output=True, env=environment)
        corpus = CORPUS / target
        corpus.mkdir(parents=True, exist_ok=True)
        for path in corpus.iterdir():
            if not path.name.startswith("was-"):  # inputs of mended failures are kept
                path.unlink()
        for path in merged.iterdir():
            shutil.copyfile(path, corpus / path.name[:12])
        sizes = [path.stat().st_size for path in corpus.iterdir()]
        print(f"{target}: {len(sizes)} inputs, {sum(sizes):,} bytes")
    return 0


def coverage(arguments: argparse.Namespace) -> int:
    """Show the lines of the readers covered by the corpus and the seeds, without mutations."""
    build(COVERAGE, "-DUNKERNEL_COVERAGE=ON", "-DUNKERNEL_LIBFUZZER=OFF")
    targets = choose_targets(arguments.targets)
    for target in targets:
        profile = {"LLVM_PROFILE_FILE": str(COVERAGE / f"{target}.profraw")}
        folders = [CORPUS / target] if (CORPUS / target).is_dir() else []
        subprocess.run(
            [program(target, COVERAGE), "0", "1", *folders],
            check=True,
            env=os.environ | profile,
            stdout=subprocess.DEVNULL,
        )
    merged = COVERAGE / "all.profdata"
    raw = [COVERAGE / f"{target}.profraw" for target in targets]
    subprocess.run([tool("llvm-profdata"), "merge", "-o", merged, *raw], check=True)
    objects = [word for target in targets for word in ("--object", str(program(target, COVERAGE)))]
    command = [tool("llvm-cov"), "export", "--summary-only", f"--instr-profile={merged}", *objects]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return report_coverage(answer["data"][0]["files"], arguments.least)


def is_reader(name: str) -> bool:
    path = name.partition("/cpp/unkernel/")[2]
    return path.startswith(READERS)


def report_coverage(files: Sequence[dict[str, Any]], min_percent: float) -> int:
    """Print a table of the readers' covered lines; return 1 if fewer than `min_percent` are covered."""
    print("| reader | lines | reached | share |\n|---|---:|---:|---:|")
    lines = reached = 0
    for file in sorted(files, key=lambda file: file["filename"]):
        summary = file["summary"]["lines"]
        if not is_reader(file["filename"]) or summary["count"] == 0:
            continue
        lines += summary["count"]
        reached += summary["covered"]
        name = file["filename"].partition("/cpp/unkernel/")[2]
        print(f"| {name} | {summary['count']} | {summary['covered']} | {summary['percent']:.1f} % |")
    share = 100 * reached / max(lines, 1)
    print(f"| sum | {lines} | {reached} | {share:.1f} % |")
    return int(share < min_percent)


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, function in (("run", run), ("merge", merge), ("coverage", coverage)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument(
            "--targets", nargs="*", help="such as fuzz_svmlight, or models; all of them by default"
        )
        if name == "run":
            command.add_argument("--runs", type=int, default=200_000, help="in sum over the targets")
            command.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at the same time")
            command.add_argument("--seed", type=int, default=0, help="0 takes the clock")
            command.add_argument("--log", help="append one JSON line per part of the campaign")
        if name == "coverage":
            command.add_argument("--least", type=float, default=0.0, help="percent of lines, else end with 1")
    return parser.parse_args(words)


if __name__ == "__main__":
    arguments = parse_arguments()
    sys.exit(arguments.function(arguments))
