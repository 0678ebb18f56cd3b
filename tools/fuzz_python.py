"""Fuzz the readers in Python: models of other programs, `.uk` files, records, texts and templates.

    python tools/fuzz_python.py --runs 20000           # for each target; `make fuzz-python`
    python tools/fuzz_python.py --targets uk --seed 7

Coverage guides the search: an input that makes the interpreter step from one line of unkernel to another for
the first time is kept and mutated further. `.uk` files are damaged with their digests, without digests, and
with recomputed digests, which hide the damage (tools/fuzz_models.py recomputes digests in all of its inputs).
Loaded models compute scores and explanations. An input fails if the result is neither an answer nor a
ValueError, or if it takes more than a second of processor time. Failing inputs are kept in build/fuzz_python.
tools/fuzz.py fuzzes native readers, a hundred times as fast and with sanitizers.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

import unkernel  # noqa: E402
from fuzz_readers import readers  # noqa: E402
from reference import damage  # noqa: E402
from reference.parser_damage import change_a_setting  # noqa: E402
from reference.resigned_files import Parts, change  # noqa: E402
from reference.small_models import VALID_MODELS  # noqa: E402

SUBPACKAGES = ("data", "models", "engines", "records", "parsing")
TRACED = tuple(str(Path(unkernel.__file__).parent / room) for room in SUBPACKAGES)
FAILURES = ROOT / "build" / "fuzz_python"
MAX_MEMORY_BYTES = 4 << 30
MAX_SECONDS = 1.0
MAX_INPUT_BYTES = 16384
TOKENS = [
    b"0",
    b"1",
    b"-1",
    b"+",
    b".",
    b"1e308",
    b"1e-400",
    b"nan",
    b"inf",
    b":",
    b"#",
    b" ",
    b"\n",
    b"\r\n",
]
TOKENS += [
    b"2147483647",
    b"4294967296",
    b"18446744073709551616",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"\xff",
]


class Steps:
    """Record the pairs of consecutive lines that were executed in the traced files."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int, int]] = set()
        self.news = 0

    def __enter__(self) -> None:
        self.news = 0
        sys.settrace(self._on_call)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        """Return the function that Python calls at each line of a frame; None if it is not traced."""
        name = frame.f_code.co_filename
        if not name.startswith(TRACED):
            return None
        previous_line = 0

        def on_event(inner: FrameType, kind: str, _: Any) -> Callable[..., Any]:
            nonlocal previous_line
            if kind == "line":
                step = (name, previous_line, inner.f_lineno)
                previous_line = inner.f_lineno
                if step not in self.seen:
                    self.seen.add(step)
                    self.news += 1
            return on_event

        return on_event


def mutate_text(content: bytes, pool: Sequence[bytes], rng: random.Random) -> bytes:
    """Return a text with one to three changes to a byte, a token, a part, a line or the end."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place, donor = rng.randrange(len(content) + 1), rng.choice(pool)
        match rng.randrange(6):
            case 0:
                content = content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
            case 1:
                content = content[:place] + rng.choice(TOKENS) + content[place + rng.randrange(3) :]
            case 2:
                content = content[:place] + content[place + rng.randrange(1, 17) :]
            case 3:
                part = content[place : place + rng.randrange(1, 65)]
                content = content[:place] + part + content[place:]
            case 4:
                content = content[:place] + donor[rng.randrange(len(donor) + 1) :]
            case _:
                lines = content.split(b"\n")
                lines.insert(rng.randrange(len(lines) + 1), lines.pop(rng.randrange(len(lines))))
                content = b"\n".join(lines)
    return content[:MAX_INPUT_BYTES]


def mutate_header(content: bytes, pool: Sequence[bytes], rng: random.Random) -> bytes:
    """Change the header as text, with a matching length."""
    length = int.from_bytes(content[:8], "little")
    text = mutate_text(content[8 : 8 + length].rstrip(), [b'"', b"}", b'{"a":1}'], rng)
    text += b" " * (-(8 + len(text)) % 64)
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


def mutate_file(content: bytes, pool: Sequence[bytes], rng: random.Random) -> bytes:
    """Return a `.uk` file with changes to the header, a byte, or arrays and settings (signed or not)."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    kind = rng.choice([mutate_header, *damage.CHANGES_OF_FILES, change_a_setting, change, change, change])
    if kind is mutate_header:
        return mutate_header(content, pool, rng)
    try:
        if kind is change:
            return change(Parts.from_bytes(content), rng)[1].content()
        return bytes(kind(content, numbers)[1])
    except (LookupError, AttributeError, ValueError, TypeError):
        # This kind of damage needs a file of another kind, or a valid file.
        return mutate_header(content, pool, rng)


# --- Questions ----------------------------------------------------------------------------------------


def questions() -> list[Callable[[Any], object]]:
    """Return questions to models and classifiers; a model of the wrong kind raises a TypeError."""
    rng = np.random.default_rng(1)
    ones = (rng.random((3, 12)) < 0.6).astype(float)
    trees = ["(S (NP (D the) (N dog)) (VP barks))", "(S x)"]
    record = {"age": 3, "job": "a", "member": True}
    return [
        lambda model: model.scores(ones),
        lambda model: model.scores(trees),
        lambda model: model.predict(ones, n_jobs=1),
        lambda model: model.decision_function(ones * 0.5),
        lambda model: model.predict(trees),
        lambda model: model.score_one([0, 3, 5]),
        lambda model: model.score_one(trees[0]),
        lambda model: model.explain([0, 3, 5], top=3),
        lambda model: model.explain(trees[0], top=3),
        lambda model: model.predict_one(record),
        lambda model: model.heaviest(5),
        str,
    ]


def fitting_questions(model: Any) -> list[Callable[[Any], object]]:
    """Return the questions that a valid model answers, or refuses properly."""
    fitting = []
    for question in questions():
        try:
            question(model)
            fitting.append(question)
        except ValueError:
            fitting.append(question)
        except (AttributeError, TypeError):
            continue  # the question is for another kind of model
    return fitting


def ask_all(model: Any, questions: Iterable[Callable[[Any], object]]) -> None:
    """Ask a model questions; any exception other than a ValueError is a failure."""
    for question in questions:
        try:
            question(model)
        except ValueError:
            continue


# --- The targets --------------------------------------------------------------------------------------


@dataclass
class Target:
    """One format to fuzz: how to read and mutate its files, and the results so far."""

    read: Callable[[Path], Any]
    mutate: Callable[[bytes, Sequence[bytes], random.Random], bytes]
    seeds: list[bytes]
    runs: int = 0
    refused: int = 0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)


def targets() -> dict[str, Target]:
    """Return one target per format of other programs and one per kind of `.uk` file."""
    result = {
        f"format {name}": Target(unkernel.read_model, mutate_text, [text])
        for name, text in VALID_MODELS.items()
    }
    trees = [
        ROOT / "tests" / "golden" / f"svmlight-tk-{name}.model"
        for name in ("one-sst-defaults", "multi-plus-lin")
    ]
    result["format svmlight-tk"] = Target(
        unkernel.read_model, mutate_text, [path.read_bytes() for path in trees]
    )
    for path in sorted((ROOT / "tests" / "models" / "golden").glob("digests-*.uk")):
        signed = path.read_bytes()
        seeds = [damage.remove_digests(signed), signed]
        name = path.stem.removeprefix("digests-")
        # A kernel model must be compiled before it can predict, so `load` refuses it.
        read = unkernel.read_model if name == "kernel" else unkernel.load
        result[f"uk {name}"] = Target(read, mutate_file, seeds)
    for reader in readers():
        mutate = mutate_file if reader.is_model else mutate_text
        result[reader.name] = Target(reader.read, mutate, reader.seeds)
    return result


def try_one(target: Target, name: str, content: bytes, path: Path, questions: Sequence[Any]) -> None:
    """Read an input, ask the result all questions, and record failures."""
    path.unlink(missing_ok=True)  # a loaded model may still map the previous file
    path.write_bytes(content)
    target.runs += 1
    start = time.process_time()
    problem = ""
    try:
        ask_all(target.read(path), questions)
    except ValueError:
        target.refused += 1
    except BaseException:
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):
            raise
        problem = traceback.format_exc()
    seconds = time.process_time() - start
    target.slowest = max(target.slowest, seconds)
    if seconds > MAX_SECONDS:
        problem = problem or f"took {seconds:.1f} seconds"
    if problem:
        place = FAILURES / f"{name.replace(' ', '-')}-{target.runs}"
        place.write_bytes(content)
        place.with_suffix(".txt").write_text(problem, encoding="utf-8")
        target.failures.append(f"{place.relative_to(ROOT)}: {problem.strip().splitlines()[-1]}")


def fuzz(target: Target, name: str, runs: int, rng: random.Random, folder: Path) -> int:
    """Fuzz a target; return the number of inputs in its pool at the end."""
    path = folder / "input"
    path.write_bytes(target.seeds[0])
    questions = fitting_questions(target.read(path))
    steps = Steps()
    pool = list(target.seeds)
    accepted = list(target.seeds)  # preferred parents: most mutations of a refused input are refused, too
    for number in range(runs):
        parent = rng.choice(accepted if rng.random() < 0.75 else pool)
        content = pool[number] if number < len(target.seeds) else target.mutate(parent, pool, rng)
        refused = target.refused
        with steps:
            try_one(target, name, content, path, questions)
        if steps.news > 0 and number >= len(target.seeds):
            pool.append(content)
            if target.refused == refused:
                accepted.append(content)
    return len(pool)


def show_progress(name: str, runs: int, failures: Sequence[str]) -> None:
    """Show progress if the output is a terminal; a log needs only the table."""
    if sys.stderr.isatty():
        print(
            f"\r\033[K{runs:,} inputs, {len(failures)} failures: {name}\r",
            end="",
            file=sys.stderr,
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000, help="inputs for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", nargs="*", default=[""], help="name prefixes; all by default")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    FAILURES.mkdir(parents=True, exist_ok=True)
    print("| target | executions | refused | kept | slowest, s | failures |\n|---|---:|---:|---:|---:|---:|")
    failures: list[str] = []
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, target in targets().items():
            if not name.startswith(tuple(arguments.targets)):
                continue
            rng = random.Random(arguments.seed)
            show_progress(name, total, failures)
            pool_size = fuzz(target, name, arguments.runs, rng, Path(folder))
            total += target.runs
            failures += target.failures
            counts = f"{target.runs:,} | {target.refused:,} | {pool_size} | {target.slowest:.2f}"
            print(f"| {name} | {counts} | {len(target.failures)} |", flush=True)
    print(f"| sum | {total:,} | | | | {len(failures)} |")
    print("\n".join(failures[:20]))
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
