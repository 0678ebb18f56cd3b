"""Change `.uk` files of every kind, sign them again, load them and use them.

    python tools/fuzz_models.py --runs 20000                   # in sum over the kinds; `make fuzz-python`
    python tools/fuzz_models.py --runs 1000000 --log build/fuzz/models.jsonl
    python tools/fuzz_models.py --kinds tokenizer --seed 7
    python tools/fuzz_models.py --kinds tokenizer --seed 7 --only 1234     # one input, in this process

An attacker can compute digests, so numbers, shapes, types, names and settings are changed before the digests
are computed: `unkernel verify` accepts such a file. Each file is loaded, or refused with a FormatError; a
loaded model answers or raises a ValueError. Nine in ten files are changed; the others are the same model
written differently, which must give the same answers.

It is a failure if an input crashes the process, raises anything else, takes more than a second of processor
time, more memory than a file of its size may take (unkernel.data.file_memory_limit), or answers differently
when it is read instead of mapped. Inputs run in child processes, which a signal ends after that second in any
case. Failing inputs are kept in build/fuzz/failures/models; kind, seed and number reproduce an input.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")  # children are forked

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from reference.model_zoo import Specimen, make_all_specimens  # noqa: E402
from reference.resigned_files import Parts, change, change_nothing  # noqa: E402
from reference.zoo_questions import Question, answerable, ask_one, read, sample_questions  # noqa: E402
from unkernel import FormatError, LimitError  # noqa: E402
from unkernel.data import file_memory_limit  # noqa: E402

FAILURES = ROOT / "build" / "fuzz" / "failures" / "models"
MOST_SECONDS = 1.0  # of processor time
MOST_ADDRESSES = 1 << 30  # bytes that a child may allocate: protects the machine
SHARE_UNCHANGED = 0.1
SHARE_READ_TWICE = 0.1
QUESTIONS_EACH = 3
BATCH = 500  # inputs per child
MOST_FAILURES = 20  # failures per kind, after which the search ends
MAX_SIMILAR = 3  # stored failures with the same last line


class Tally:
    """Counts in memory shared between child and parent, which survive the child."""

    _LAYOUT = struct.Struct("=qqqqqd")

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, self._LAYOUT.size)
        self.start(0)

    def start(self, first: int) -> None:
        """Begin counting with the input `first`."""
        self.number, self.refused, self.answered, self.same, self.peak = first, 0, 0, 0, 0
        self.slowest = 0.0
        self.note()

    def note(self) -> None:
        counts = (self.number, self.refused, self.answered, self.same, self.peak, self.slowest)
        self._LAYOUT.pack_into(self._memory, 0, *counts)

    def fetch(self) -> None:
        counts = self._LAYOUT.unpack_from(self._memory)
        self.number, self.refused, self.answered, self.same, self.peak, self.slowest = counts


@dataclass
class Count:
    """The results of the inputs of one kind."""

    runs: int = 0
    refused: int = 0
    answered: int = 0
    same: int = 0
    slowest: float = 0.0
    peak: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, tally: Tally, runs: int) -> None:
        self.runs += runs
        self.refused += tally.refused
        self.answered += tally.answered
        self.same += tally.same
        self.slowest = max(self.slowest, tally.slowest)
        self.peak = max(self.peak, tally.peak)


@dataclass(frozen=True)
class Input:
    """One file to try.

    Attributes
    ----------
    said : str
        Description of the change.
    content : bytes
    same : bool
        Whether it must give the answers of the unchanged model.
    """

    said: str
    content: bytes
    same: bool


class Trial:
    """The inputs of one kind, and the questions to them."""

    def __init__(self, specimen: Specimen, seed: int, path: Path) -> None:
        self.specimen, self.seed, self.path = specimen, seed, path
        self.parts = Parts.of(specimen.content)
        model = self.loaded(specimen.content)
        self.questions = answerable(model, specimen.family)
        self.answers = [ask_one(question, model) for question in self.questions]

    def loaded(self, content: bytes, **options: Any) -> Any:
        self.path.unlink(missing_ok=True)  # the old one may still be mapped
        self.path.write_bytes(content)
        return read(self.path, self.specimen.family, **options)

    def input(self, rng: Random) -> Input:
        if rng.random() < SHARE_UNCHANGED:
            output, content = change_nothing(self.parts, rng)
            return Input(output, content, same=True)
        output, parts = change(self.parts, rng)
        return Input(output, parts.content(), same=False)

    def rng(self, number: int) -> Random:
        return Random(f"{self.seed} {self.specimen.name} {number}")

    def run(self, number: int, tally: Tally) -> None:
        """Make the input with this number, and try it; an exception is a failure."""
        rng = self.rng(number)
        made = self.input(rng)
        mapped, verify = rng.random() < 0.7, rng.choice(("lazy", "lazy", True, False))
        try:
            model = self.loaded(made.content, mmap=mapped, verify=verify)
        except FormatError as error:
            check_refusal(error, made)
            tally.refused += 1
            return
        if made.same:
            self.compare(self.questions, model, self.answers, made)
            tally.same += 1
            return
        asked = sample_questions(self.questions, QUESTIONS_EACH, rng)
        answers = [ask_one(question, model) for question in asked]
        tally.answered += 1
        if rng.random() < SHARE_READ_TWICE:
            self.compare(asked, self.loaded(made.content, mmap=not mapped, verify=False), answers, made)

    def compare(self, asked: Sequence[Question], model: Any, answers: Sequence[str], made: Input) -> None:
        for question, answer in zip(asked, answers, strict=True):
            result = ask_one(question, model)
            unused = "weights" in made.said and made.same and self.questions.index(question) != 0
            if result != answer and not unused:
                raise AssertionError(f"answers differ ({made.said}): {result[:300]} and {answer[:300]}")


def check_refusal(error: FormatError, made: Input) -> None:
    """Check that valid files are not refused, and that excessive memory is refused before it is allocated."""
    if made.same:
        raise AssertionError(f"a sound file is refused ({made.said}): {error}")
    if isinstance(error, LimitError) and "there is not enough memory" in str(error):
        raise AssertionError(f"memory was taken before it was refused: {error}")


# --- A child ------------------------------------------------------------------------------------------


def run_batch(trial: Trial, numbers: range, tally: Tally, keep: Callable[[int, str], None]) -> None:
    """Try inputs in this process, which SIGPROF ends if one takes too long."""
    limit_addresses()
    base = peak_bytes()
    for number in numbers:
        tally.number = number
        tally.note()
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        try:
            trial.run(number, tally)
        except Exception:
            keep(number, traceback.format_exc())
        signal.setitimer(signal.ITIMER_PROF, 0)
        tally.slowest = max(tally.slowest, time.process_time() - began)
        grown = peak_bytes() - base
        if grown > tally.peak:
            tally.peak = grown
            if grown > allowed_bytes(trial.path):
                keep(number, f"took {grown:,} bytes, and the file has {trial.path.stat().st_size:,}")
    tally.number = numbers.stop
    tally.note()


def limit_addresses() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MOST_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def peak_bytes() -> int:
    """Return the peak memory of this process.

    No valid input comes close to the limit, so a peak above the limit always exposes a bad input.
    """
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def allowed_bytes(path: Path) -> float:
    return file_memory_limit.BASE_BYTES + file_memory_limit.BYTES_PER_FILE_BYTE * float(path.stat().st_size)


# --- The parent ---------------------------------------------------------------------------------------


class Campaign:
    """A campaign of inputs of all kinds in turn, each batch in a child process."""

    def __init__(self, chosen: Sequence[Specimen], seed: int, runs: int, log: Path | None) -> None:
        self.chosen, self.seed, self.log = chosen, seed, log
        self.each = -(-runs // max(len(chosen), 1))
        self.counts = {specimen.name: Count() for specimen in chosen}
        self.similar: Counter[str] = Counter()
        self.tally = Tally()
        self.path = (
            Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / f"fuzz-models-{os.getpid()}.uk"
        )
        self.began = time.monotonic()

    def run(self) -> int:
        """Return 1 if an input failed."""
        FAILURES.mkdir(parents=True, exist_ok=True)
        for one in (
            signal.SIGINT,
            signal.SIGTERM,
        ):  # even if a shell ignores them for background work
            signal.signal(one, signal.default_int_handler)
        try:
            for begin in range(0, self.each, BATCH):
                for specimen in self.chosen:
                    self.run_kind(specimen, range(begin, min(begin + BATCH, self.each)))
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
        finally:
            self.path.unlink(missing_ok=True)
        print(self.table())
        return int(any(count.failures for count in self.counts.values()))

    def run_kind(self, specimen: Specimen, numbers: range) -> None:
        count = self.counts[specimen.name]
        trial = Trial(specimen, self.seed, self.path)
        while numbers and len(count.failures) < MOST_FAILURES:
            self.tally.start(numbers.start)
            before = len(count.failures)
            status = self.run_child(trial, numbers)
            self.tally.fetch()
            if status == 0:
                rest = range(0)
            else:  # it ended during an input
                self.keep_crash(trial, self.tally.number, status)
                rest = range(self.tally.number + 1, numbers.stop)
            result = (rest.start if status else numbers.stop) - numbers.start
            count.add(self.tally, result)
            self.write_log(specimen.name, result, count.failures[before:])
            numbers = rest
        self.show_progress(specimen.name)

    def run_child(self, trial: Trial, numbers: range) -> int:
        """Return 0, the number of the signal that ended the child, or minus its exit status."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            self.be_child(trial, numbers, writer)
        os.close(writer)
        with os.fdopen(reader) as output:
            for line in output:
                failure = json.loads(line)
                self.keep(trial, failure["number"], failure["problem"])
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return -ended

    def be_child(self, trial: Trial, numbers: range, writer: int) -> None:
        def keep(number: int, problem: str) -> None:
            os.write(writer, (json.dumps({"number": number, "problem": problem}) + "\n").encode())

        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_DFL)
        try:
            run_batch(trial, numbers, self.tally, keep)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def keep_crash(self, trial: Trial, number: int, status: int) -> None:
        if status == signal.SIGPROF:
            problem = f"took more than {MOST_SECONDS:g} s of the processor's time"
        else:
            problem = f"ended the process: {signal.Signals(status).name if status > 0 else -status}"
        self.keep(trial, number, problem)

    def keep(self, trial: Trial, number: int, problem: str) -> None:
        """Record a failure, and keep its file unless enough similar failures are stored."""
        name = trial.specimen.name
        last = problem.strip().splitlines()[-1][:200]
        self.similar[f"{name} {last[:80]}"] += 1
        if self.similar[f"{name} {last[:80]}"] > MAX_SIMILAR:
            return
        made = trial.input(trial.rng(number))
        place = FAILURES / f"{name.replace(' ', '-').replace(',', '')}-{self.seed}-{number}.uk"
        place.write_bytes(made.content)
        place.with_suffix(".txt").write_text(f"{made.said}\n{problem}", encoding="utf-8")
        self.counts[name].failures.append(f"{place.relative_to(ROOT)} ({made.said}): {last}")
        print(self.counts[name].failures[-1], file=sys.stderr, flush=True)

    def write_log(self, name: str, runs: int, failures: Sequence[str]) -> None:
        if self.log is None:
            return
        tally = self.tally
        line = {"kind": name, "seed": self.seed, "runs": runs, "refused": tally.refused, "same": tally.same}
        line |= {
            "slowest": tally.slowest,
            "peak": tally.peak,
            "failures": list(failures),
            "time": time.time(),
        }
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def show_progress(self, name: str) -> None:
        runs = sum(count.runs for count in self.counts.values())
        failures = sum(len(count.failures) for count in self.counts.values())
        speed = runs / (time.monotonic() - self.began)
        whole = self.each * len(self.chosen)
        line = f"{runs:,} of {whole:,} inputs, {speed:,.0f} per second, {failures} failures: {name}"
        begin, end = ("\r\033[K", "") if sys.stderr.isatty() else ("", "\n")
        print(begin + line, end=end, file=sys.stderr, flush=True)

    def table(self) -> str:
        rows = [
            "| kind | files | refused | the same model | slowest, s | memory, MB | failures |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        for name, count in self.counts.items():
            counted = f"{count.runs:,} | {count.refused:,} | {count.same:,} | {count.slowest:.2f}"
            rows.append(f"| {name} | {counted} | {count.peak / 1e6:.0f} | {len(count.failures)} |")
        counts = self.counts.values()
        sums = [sum(count.runs for count in counts), sum(count.refused for count in counts)]
        sums.append(sum(count.same for count in counts))
        slowest, peak = max(count.slowest for count in counts), max(count.peak for count in counts)
        failures = [failure for count in counts for failure in count.failures]
        summed = " | ".join(f"{one:,}" for one in sums)
        rows.append(f"| sum | {summed} | {slowest:.2f} | {peak / 1e6:.0f} | {len(failures)} |")
        return "\n".join([*rows, f"\nseed {self.seed}", *failures[:50]])


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20_000, help="in sum over the kinds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=[""], help="beginnings of names; all by default")
    parser.add_argument("--log", type=Path, help="append one JSON line per batch")
    parser.add_argument("--only", type=int, help="the number of one input, to look at it")
    arguments = parser.parse_args(words)
    chosen = [
        specimen for specimen in make_all_specimens() if specimen.name.startswith(tuple(arguments.kinds))
    ]
    if arguments.only is not None:
        trial = Trial(chosen[0], arguments.seed, Path("/tmp") / f"fuzz-models-{os.getpid()}.uk")
        print(trial.input(trial.rng(arguments.only)).said, "in", trial.path)
        trial.run(arguments.only, Tally())
        return 0
    return Campaign(chosen, arguments.seed, arguments.runs, arguments.log).run()


if __name__ == "__main__":
    sys.exit(main())
