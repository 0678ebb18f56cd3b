"""Change `.uk` files of every kind, sign them again, load them and use them.

    python tools/fuzz_models.py --runs 20000                   # in sum over the kinds; `make fuzz-python`
    python tools/fuzz_models.py --runs 1000000 --log build/fuzz/models.jsonl
    python tools/fuzz_models.py --kinds tokenizer --seed 7
    python tools/fuzz_models.py --kinds tokenizer --seed 7 --only 1234     # one input, in this process

An attacker can compute digests, so numbers, shapes, types, names and settings are changed before the digests
are computed: `unkernel verify` accepts such a file. Each file is loaded, or refused with a FormatError; a
loaded model answers or raises a ValueError. One file in ten holds an unchanged model, written differently,
which must give the answers of the original.

An input fails if it crashes the process, raises another exception, takes more than a second of processor time
or more memory than a file of its size may take (unkernel.data.file_memory_limit), or if its answers depend on
whether the file is read or mapped. Inputs run in child processes, which a signal ends after one second of
processor time. Failing inputs are kept in build/fuzz/failures/models; kind, seed and number reproduce an
input.
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
MAX_SECONDS = 1.0  # of processor time
MAX_BYTES_ALLOCATED = 1 << 30  # bytes that a child may allocate: protects the machine
SHARE_UNCHANGED = 0.1
SHARE_READ_TWICE = 0.1
QUESTIONS_EACH = 3
BATCH = 500  # inputs per child
MAX_FAILURES = 20  # failures per kind, after which the search ends
MAX_SIMILAR = 3  # stored failures with the same last line


class Tally:
    """Counts in memory that the parent and a child share: they survive a crash of the child.

    `number` is the current input, `peak` the largest growth of the memory in bytes, and `slowest` the longest
    time of an input in seconds. `same` counts unchanged models.
    """

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
        """Write the counts to the shared memory."""
        counts = (self.number, self.refused, self.answered, self.same, self.peak, self.slowest)
        self._LAYOUT.pack_into(self._memory, 0, *counts)

    def fetch(self) -> None:
        """Read the counts that the other process has written."""
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
    description : str
        Description of the change.
    content : bytes
    is_unchanged : bool
        Whether the model is unchanged, so that its answers must be, too.
    """

    description: str
    content: bytes
    is_unchanged: bool


class Trial:
    """Make changed files of one specimen, load them, and ask the loaded models questions."""

    def __init__(self, specimen: Specimen, seed: int, path: Path) -> None:
        self.specimen, self.seed, self.path = specimen, seed, path
        self.parts = Parts.from_bytes(specimen.content)
        model = self.load(specimen.content)
        self.questions = answerable(model, specimen.family)
        self.answers = [ask_one(question, model) for question in self.questions]

    def load(self, content: bytes, **options: Any) -> Any:
        self.path.unlink(missing_ok=True)  # a loaded model may still map the previous file
        self.path.write_bytes(content)
        return read(self.path, self.specimen.family, **options)

    def input(self, rng: Random) -> Input:
        """Return a changed file; the same generator gives the same file."""
        if rng.random() < SHARE_UNCHANGED:
            output, content = change_nothing(self.parts, rng)
            return Input(output, content, is_unchanged=True)
        output, parts = change(self.parts, rng)
        return Input(output, parts.content(), is_unchanged=False)

    def rng(self, number: int) -> Random:
        return Random(f"{self.seed} {self.specimen.name} {number}")

    def run(self, number: int, tally: Tally) -> None:
        """Make input `number` and try it. An exception is a failure."""
        rng = self.rng(number)
        candidate = self.input(rng)
        mapped, verify = rng.random() < 0.7, rng.choice(("lazy", "lazy", True, False))
        try:
            model = self.load(candidate.content, mmap=mapped, verify=verify)
        except FormatError as error:
            check_refusal(error, candidate)
            tally.refused += 1
            return
        if candidate.is_unchanged:
            self.compare(self.questions, model, self.answers, candidate)
            tally.same += 1
            return
        questions = sample_questions(self.questions, QUESTIONS_EACH, rng)
        answers = [ask_one(question, model) for question in questions]
        tally.answered += 1
        if rng.random() < SHARE_READ_TWICE:
            self.compare(
                questions, self.load(candidate.content, mmap=not mapped, verify=False), answers, candidate
            )

    def compare(
        self, questions: Sequence[Question], model: Any, answers: Sequence[str], candidate: Input
    ) -> None:
        """Raise an AssertionError if a model does not give the expected answers."""
        for question, answer in zip(questions, answers, strict=True):
            result = ask_one(question, model)
            # "weights" changes weights that the first question, for scores, does not use, but others may.
            unused = (
                "weights" in candidate.description
                and candidate.is_unchanged
                and self.questions.index(question) != 0
            )
            if result != answer and not unused:
                raise AssertionError(
                    f"answers differ ({candidate.description}): {result[:300]} and {answer[:300]}"
                )


def check_refusal(error: FormatError, candidate: Input) -> None:
    """Check that valid files are not refused, and that excessive memory is refused before it is allocated."""
    if candidate.is_unchanged:
        raise AssertionError(f"a valid file is refused ({candidate.description}): {error}")
    if isinstance(error, LimitError) and "there is not enough memory" in str(error):
        raise AssertionError(f"memory was allocated before the file was refused: {error}")


# --- A child ------------------------------------------------------------------------------------------


def run_batch(trial: Trial, numbers: range, tally: Tally, keep: Callable[[int, str], None]) -> None:
    """Try inputs in this process. SIGPROF ends the process if an input takes too long."""
    limit_addresses()
    base = peak_bytes()
    for number in numbers:
        tally.number = number
        tally.note()
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
        try:
            trial.run(number, tally)
        except Exception:
            keep(number, traceback.format_exc())
        signal.setitimer(signal.ITIMER_PROF, 0)
        tally.slowest = max(tally.slowest, time.process_time() - start)
        grown = peak_bytes() - base
        if grown > tally.peak:
            tally.peak = grown
            if grown > allowed_bytes(trial.path):
                keep(number, f"took {grown:,} bytes, and the file has {trial.path.stat().st_size:,}")
    tally.number = numbers.stop
    tally.note()


def limit_addresses() -> None:
    """Limit the memory that this process may allocate from now on; let crashes write no core files."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MAX_BYTES_ALLOCATED
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
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
    """Try inputs of all kinds in turn, every batch in a child process."""

    def __init__(self, specimens: Sequence[Specimen], seed: int, runs: int, log: Path | None) -> None:
        self.specimens, self.seed, self.log = specimens, seed, log
        self.runs_per_kind = -(-runs // max(len(specimens), 1))
        self.counts = {specimen.name: Count() for specimen in specimens}
        self.similar: Counter[str] = Counter()
        self.tally = Tally()
        self.path = (
            Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / f"fuzz-models-{os.getpid()}.uk"
        )
        self.start_time = time.monotonic()

    def run(self) -> int:
        """Return 1 if an input failed."""
        FAILURES.mkdir(parents=True, exist_ok=True)
        # Shells start background jobs with SIGINT ignored; a campaign in the background must still end.
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, signal.default_int_handler)
        try:
            for begin in range(0, self.runs_per_kind, BATCH):
                for specimen in self.specimens:
                    self.run_kind(specimen, range(begin, min(begin + BATCH, self.runs_per_kind)))
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
        finally:
            self.path.unlink(missing_ok=True)
        print(self.table())
        return int(any(count.failures for count in self.counts.values()))

    def run_kind(self, specimen: Specimen, numbers: range) -> None:
        """Try inputs of one kind; if a child ends at an input, another child continues with the next one."""
        count = self.counts[specimen.name]
        trial = Trial(specimen, self.seed, self.path)
        while numbers and len(count.failures) < MAX_FAILURES:
            self.tally.start(numbers.start)
            n_failures = len(count.failures)
            status = self.run_child(trial, numbers)
            self.tally.fetch()
            if status == 0:
                remaining = range(0)
            else:  # the child ended during an input
                self.keep_crash(trial, self.tally.number, status)
                remaining = range(self.tally.number + 1, numbers.stop)
            n_tried = (remaining.start if status else numbers.stop) - numbers.start
            count.add(self.tally, n_tried)
            self.write_log(specimen.name, n_tried, count.failures[n_failures:])
            numbers = remaining
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
        """Try inputs and end this process; `writer` is the pipe that reports failures to the parent."""

        def keep(number: int, problem: str) -> None:
            os.write(writer, (json.dumps({"number": number, "problem": problem}) + "\n").encode())

        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, signal.SIG_DFL)
        try:
            run_batch(trial, numbers, self.tally, keep)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def keep_crash(self, trial: Trial, number: int, status: int) -> None:
        """Record the input at which a child ended; `status` is a signal, or minus an exit status."""
        if status == signal.SIGPROF:
            problem = f"took more than {MAX_SECONDS:g} s of the processor's time"
        else:
            problem = f"ended the process: {signal.Signals(status).name if status > 0 else -status}"
        self.keep(trial, number, problem)

    def keep(self, trial: Trial, number: int, problem: str) -> None:
        """Record a failure, and keep its file unless enough similar failures are stored."""
        name = trial.specimen.name
        last_line = problem.strip().splitlines()[-1][:200]
        self.similar[f"{name} {last_line[:80]}"] += 1
        if self.similar[f"{name} {last_line[:80]}"] > MAX_SIMILAR:
            return
        candidate = trial.input(trial.rng(number))
        place = FAILURES / f"{name.replace(' ', '-').replace(',', '')}-{self.seed}-{number}.uk"
        place.write_bytes(candidate.content)
        place.with_suffix(".txt").write_text(f"{candidate.description}\n{problem}", encoding="utf-8")
        self.counts[name].failures.append(f"{place.relative_to(ROOT)} ({candidate.description}): {last_line}")
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
        speed = runs / (time.monotonic() - self.start_time)
        total = self.runs_per_kind * len(self.specimens)
        line = f"{runs:,} of {total:,} inputs, {speed:,.0f} per second, {failures} failures: {name}"
        begin, end = ("\r\033[K", "") if sys.stderr.isatty() else ("", "\n")
        print(begin + line, end=end, file=sys.stderr, flush=True)

    def table(self) -> str:
        rows = [
            "| kind | files | refused | the same model | slowest, s | memory, MB | failures |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        for name, count in self.counts.items():
            cells = f"{count.runs:,} | {count.refused:,} | {count.same:,} | {count.slowest:.2f}"
            rows.append(f"| {name} | {cells} | {count.peak / 1e6:.0f} | {len(count.failures)} |")
        counts = self.counts.values()
        sums = [sum(count.runs for count in counts), sum(count.refused for count in counts)]
        sums.append(sum(count.same for count in counts))
        slowest, peak = max(count.slowest for count in counts), max(count.peak for count in counts)
        failures = [failure for count in counts for failure in count.failures]
        sum_cells = " | ".join(f"{total:,}" for total in sums)
        rows.append(f"| sum | {sum_cells} | {slowest:.2f} | {peak / 1e6:.0f} | {len(failures)} |")
        return "\n".join([*rows, f"\nseed {self.seed}", *failures[:50]])


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20_000, help="in sum over the kinds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=[""], help="name prefixes; all by default")
    parser.add_argument("--log", type=Path, help="append one JSON line per batch")
    parser.add_argument("--only", type=int, help="the number of one input, to look at it")
    arguments = parser.parse_args(words)
    specimens = [
        specimen for specimen in make_all_specimens() if specimen.name.startswith(tuple(arguments.kinds))
    ]
    if arguments.only is not None:
        trial = Trial(specimens[0], arguments.seed, Path("/tmp") / f"fuzz-models-{os.getpid()}.uk")
        print(trial.input(trial.rng(arguments.only)).description, "in", trial.path)
        trial.run(arguments.only, Tally())
        return 0
    return Campaign(specimens, arguments.seed, arguments.runs, arguments.log).run()


if __name__ == "__main__":
    sys.exit(main())
