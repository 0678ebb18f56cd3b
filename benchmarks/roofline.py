"""Inner loops against the limits of the machine.

A small program (roofline.cpp) measures the limits of one core: the speed of reading bytes in sequence, the
time of random reads and updates of numbers by the size of the memory that contains them, the speed of fused
multiplications and additions in vectors, and the speed of reading text byte by byte. For each loop, the
necessary operations of one step are counted: bytes read in sequence, numbers read or changed at random places
of a table, and arithmetic operations. Each kind of operation takes a minimum time. The longest of these times
is the limit, because a processor can do all kinds at once. Random reads are not estimated: the program reads
the same places in the same order, in the plainest possible loop (`sum += table[place]`). "share of the limit"
is 1 for a loop that cannot be improved; it can be above 1 if an engine reads less than is counted. Where the
share is below one half, the list names the work that is not counted, and the reason that we suppose; no
processor events were recorded.

- "DCD visit": one row of dual coordinate descent, its score and its step, on condensed rows of pairs of
  features (`arc_eager_ewt`): random reads and updates of one table. About one half: the step of a row depends
  on its score, and the score of the next row has to wait for this step.
- "condensed pass": scores of the same rows in the order in which they are stored.
- "expanded score": a row of `a9a` by the expanded engine. All single features, pairs (and triples) are
  counted, although fused features turn several reads into one. Below half at degree 2: its hundred reads are
  all from the nearest caches, and renumbering and sorting the features of a row is not counted.
- "dense RBF": one kernel value. Below half: the limit is the speed of fused multiplications and additions.
  Ours are not fused, so that all instruction sets give the same bits, and can reach at most one half.
- "trees' delta": one production that two trees share, in the computation of a kernel matrix: one update of a
  row of the matrix. Far below half: equal children also have to be found, multiplied and added; this work
  depends on the trees, and is not counted.
- "one-slack pass": one entry of a row: scores of all rows, and the sum of rows, as each cut needs.
- "svmlight read": one byte of text. Far below half: the limit is the speed of looking at each byte once. The
  reader also finds the ends of numbers, which are hard to predict, checks, converts and stores the numbers,
  and hands the matrix to Python.
- "parser step": one decision of the arc-eager parser and its label, including features. Far below half:
  making features from words and tags, and looking them up, is not counted. A decision also has to wait for
  the previous one, whereas the reads of the limit wait for nothing.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/roofline.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import bisect
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy import sparse

import unkernel
from dense import rbf_machine
from harness import Report, Times, main, take_turns
from harness.processes import LeftOutError, run_program
from harness.state import ROOT
from parsing_tools import corpus, evaluate_in_turns
from tree_tasks import load_examples, productions
from unkernel import Forest, PolySVC, TreeKernel, datasets, read_svmlight, write_svmlight
from unkernel._core import pack_rows_by_frequency
from unkernel.parsing import ArcEagerParser
from zipf_rows import zipf_rows

TREES = ("build/package", "build/dev")  # where CMake has been
MOST_PLACES = 8_000_000
EXPONENTIAL = 32  # operations of base/exponential.cpp
LIMIT = "limit of the machine"


# --- The program ----------------------------------------------------------------------------------------


@cache
def roofline() -> str:
    """Return the path of the program, built if outdated; a `LeftOutError` if there is no build tree."""
    tree = next((ROOT / name for name in TREES if (ROOT / name / "CMakeCache.txt").exists()), None)
    if tree is None:
        raise LeftOutError("there is no build to take the core from; make bench has one")
    cmake = shutil.which("cmake") or str(Path(sys.executable).parent / "cmake")
    command = [cmake, "--build", str(tree), "--target", "roofline"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode:
        raise LeftOutError(f"cannot be built: {completed.stdout.strip()[-300:]}")
    return str(tree / "roofline")


def run_and_read_numbers(*words: str | Path) -> dict[str, float]:
    lines = run_program([roofline(), *words]).printed.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@dataclass(frozen=True)
class Machine:
    """The upper limits of one core."""

    found: dict[str, float]

    @staticmethod
    @cache
    def measured() -> Machine:
        return Machine(run_and_read_numbers("machine"))

    def stream(self, bytes_read: float, size: float) -> float:
        """Return the nanoseconds to read some bytes in sequence, from a block of memory of `size` bytes."""
        sizes = sorted(int(name.split()[1]) for name in self.found if name.startswith("stream "))
        level = sizes[min(bisect.bisect_left(sizes, size), len(sizes) - 1)]
        return bytes_read / self.found[f"stream {level}"]

    def arithmetic(self, operations: float) -> float:
        return operations / self.found["double"]


def replay_positions(places: np.ndarray, entry_bytes: int = 8) -> dict[str, float]:
    """Return the nanoseconds of a read and of an update at these positions, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "places")
        np.ascontiguousarray(places[:MOST_PLACES], np.uint32).tofile(path)
        return run_and_read_numbers("replay", path, str(entry_bytes))


# --- Operations of loops ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """The times of a step of a loop in all runs, and the operations that a step needs."""

    times: Times  # nanoseconds
    limits: dict[str, float]  # minimum nanoseconds of each kind of operation
    counts: dict[str, float]


def add(report: Report, task: str, step: Step) -> None:
    what, limit_ns = max(step.limits.items(), key=lambda limit: limit[1])
    report.add(task, "unkernel", "time", "CPU ns", step.times)
    report.add(task, "unkernel", "share of the limit", "", limit_ns / step.times.best)
    for name in ("bytes", "random reads", "random updates", "operations"):
        report.add(task, "unkernel", name, "", step.counts.get(name, 0.0))
    report.add(task, LIMIT, "time", "CPU ns", limit_ns, note=what)


def renumber_by_frequency(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return rows with features renumbered by descending frequency, in ascending order."""
    order = np.argsort(-np.bincount(X.indices, minlength=X.shape[1]), kind="stable")
    rank = np.empty(X.shape[1], np.int32)
    rank[order] = np.arange(X.shape[1], dtype=np.int32)
    result = sparse.csr_matrix((X.data, rank[X.indices], X.indptr), shape=X.shape)
    result.sort_indices()
    return result


def combinations(X: sparse.csr_matrix, degree: int) -> list[np.ndarray]:
    """Return for each row the keys of all sets of its features up to a size, the rarest feature first."""
    result = []
    width = np.int64(X.shape[1] + 1)
    for i in range(X.shape[0]):
        ids = X.indices[X.indptr[i] : X.indptr[i + 1]].astype(np.int64) + 1
        a, b = np.tril_indices(len(ids))  # b = a: the feature alone
        keys = ids[a] * width + np.where(a == b, 0, ids[b])
        if degree == 3:
            first, second = np.tril_indices(len(ids), -1)
            triples = [
                (ids[x] * width + ids[y]) * width + ids[:y] for x, y in zip(first, second, strict=True) if y
            ]
            keys = np.concatenate([keys * width, *triples])
        result.append(keys)
    return result


def rank_keys(keys: Sequence[np.ndarray]) -> np.ndarray:
    """Return for each key its rank among all distinct keys: its place in a table without gaps."""
    return np.unique(np.concatenate(keys), return_inverse=True)[1]


def shuffled_nearby(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate(
        [begin + rng.permutation(min(1024, count - begin)) for begin in range(0, count, 1024)]
    )


# --- The loops --------------------------------------------------------------------------------------------


def decisions(count: int) -> sparse.csr_matrix:
    """Return distinct rows of arc_eager_ewt, with only the features that occur at least twenty times."""
    X = datasets.load("arc_eager_ewt").X
    keep = np.asarray((X != 0).sum(axis=0)).ravel() >= 20
    rows = X[:, keep].tocsr()
    rows.sort_indices()
    row_of_content = {
        rows.indices[rows.indptr[i] : rows.indptr[i + 1]].tobytes(): i for i in range(2 * count)
    }
    return renumber_by_frequency(rows[list(row_of_content.values())[:count]])


def measure_condensed(report: Report, task: str) -> None:
    """Measure both loops over condensed rows, which a native program times separately."""
    X = decisions(10_000 if report.quick else 30_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows")
        with path.open("wb") as file:
            np.array([X.shape[0], X.shape[1]], np.int64).tofile(file)
            X.indptr.astype(np.int64).tofile(file)
            X.indices.astype(np.int32).tofile(file)
        result = run_and_read_numbers("rows", path, "2")
    keys = combinations(X, 2)
    places_per_row = sum(map(len, keys)) / result["rows"]  # places of a row
    numbers = 2 * places_per_row + 4 * X.nnz / X.shape[0]  # bytes of a condensed row
    in_order = replay_positions(rank_keys(keys))
    bytes_of_all = numbers * result["rows"]
    machine = Machine.measured()
    add(
        report,
        "condensed pass, a row",
        Step(
            Times([result["pass"]]),
            {
                "random reads": places_per_row * in_order["read"],
                "bytes": machine.stream(numbers, bytes_of_all),
            },
            {"bytes": numbers, "random reads": places_per_row, "operations": places_per_row},
        ),
    )
    visited = replay_positions(rank_keys([keys[i] for i in shuffled_nearby(len(keys))]))
    nanoseconds = places_per_row * (visited["read"] + visited["update"])
    add(
        report,
        "DCD visit, a row",
        Step(
            Times([result["visit"]]),
            {"random reads and updates": nanoseconds, "bytes": machine.stream(numbers + 40, bytes_of_all)},
            {
                "bytes": numbers + 40,
                "random reads": places_per_row,
                "random updates": places_per_row,
                "operations": 2 * places_per_row,
            },
        ),
    )


def measure_expanded(report: Report, task: str, degree: int) -> None:
    train, test = datasets.load("a9a"), datasets.load("a9a", "test")
    fast = unkernel.compile(PolySVC(degree, C=0.01, gamma=1.0).fit(train.X, train.y), "expanded")
    rows = test.X
    scoring = take_turns({"": lambda: fast.score_csr(rows, 1)}, 3 if report.quick else 9)[""]
    sample = renumber_by_frequency(rows)[:4000]
    keys = combinations(sample, degree)
    places_per_row = sum(map(len, keys)) / sample.shape[0]
    ids = 4 * sample.nnz / sample.shape[0]
    limits = {
        "random reads": places_per_row * replay_positions(rank_keys(keys))["read"],
        "bytes": Machine.measured().stream(ids, 4 * rows.nnz),
    }
    times = scoring.scaled(1e9 / rows.shape[0])
    add(
        report,
        task,
        Step(times, limits, {"bytes": ids, "random reads": places_per_row, "operations": places_per_row}),
    )


def measure_dense(report: Report, task: str, columns: int) -> None:
    svc, rows = rbf_machine(2, vectors=1_500 if columns > 100 else 9_000, columns=columns)
    fast = unkernel.compile(svc, measure=False)
    vectors = len(svc.support_vectors_)
    scoring = take_turns({"": lambda: fast.decision_function(rows)}, 3 if report.quick else 9)[""]
    operations = 2 * columns + 4 + EXPONENTIAL + 2
    per_row = 8 * columns / len(rows)  # a vector is read once for a block of rows
    machine = Machine.measured()
    limits = {
        "operations": machine.arithmetic(operations),
        "bytes": machine.stream(per_row, 8 * columns * vectors),
    }
    times = scoring.scaled(1e9 / (vectors * len(rows)))
    add(report, task, Step(times, limits, {"bytes": per_row, "operations": operations}))


def measure_trees(report: Report, task: str) -> None:
    trees = list(load_examples("trec", "train")[1])[: 1000 if report.quick else 2000]
    forest, kernel = Forest(trees), TreeKernel("sst", n_jobs=1)
    making = take_turns({"": lambda: kernel(forest)}, 2 if report.quick else 5)[""]
    holders: dict[str, list[int]] = {}
    pairs, stream = 0, []
    for number, tree in enumerate(trees):  # with all trees up to itself: the matrix is symmetric
        for production in set(productions(tree)):
            trees_with_production = holders.setdefault(production, [])
            trees_with_production.append(number)
            pairs += len(trees_with_production)
            if len(stream) < 4000:
                stream.append(np.array(trees_with_production))
    updates = replay_positions(np.concatenate(stream))["update"]
    matrix = 8 * len(trees) ** 2
    limits = {
        "random updates": updates,
        "bytes": Machine.measured().stream(matrix, matrix) / pairs,
    }
    times = making.scaled(1e9 / pairs)
    add(report, task, Step(times, limits, {"bytes": 4, "random updates": 1, "operations": 2}))


def measure_passes(report: Report, task: str) -> None:
    X, _ = zipf_rows(30_000 if report.quick else 200_000)
    rows, columns = pack_rows_by_frequency(X, threads=1)
    weights, steps = np.ones(rows.features), np.ones(rows.rows)
    works = {
        "scores": lambda: rows.scores(weights, 0.0, 1),
        "sum of rows": lambda: rows.transposed(steps, 0.0, 1),
    }
    rank = np.empty(X.shape[1], np.int64)
    rank[columns] = np.arange(len(columns))
    replay = replay_positions(rank[X.indices])
    bytes_per_entry = rows.nbytes / X.nnz
    stream = Machine.measured().stream(bytes_per_entry, rows.nbytes)
    for name, times in take_turns(works, 3 if report.quick else 9).items():
        kind = "read" if name == "scores" else "update"
        limits = {f"random {kind}s": replay[kind], "bytes": stream}
        counts = {"bytes": bytes_per_entry, f"random {kind}s": 1, "operations": 2}
        add(report, f"{task}, {name}", Step(times.scaled(1e9 / X.nnz), limits, counts))


def measure_reading(report: Report, task: str) -> None:
    data = datasets.load("a9a")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a9a.svm")
        write_svmlight(path, data.X, data.y)
        size = path.stat().st_size
        reading = take_turns({"": lambda: read_svmlight(path, n_jobs=1)}, 3 if report.quick else 9)[""]
    bytes_written = 12 * data.X.nnz / size
    machine = Machine.measured()
    limits = {
        "bytes of text": 1 / machine.found["bytes"],
        "bytes": machine.stream(1 + bytes_written, size),
    }
    add(report, task, Step(reading.scaled(1e9 / size), limits, {"bytes": 1 + bytes_written, "operations": 2}))


def measure_parser(report: Report, task: str) -> None:
    """Measure the parser on its training sentences, because their decisions are known."""
    bank = corpus("en_ewt", "train", 300 if report.quick else 3000)
    parser = ArcEagerParser(random_state=0).fit(bank)
    results = evaluate_in_turns({"": parser}, bank, 3 if report.quick else 7)[""]
    spec = parser.model_.spec
    limits, counts, moves = 0.0, Counter[str](), 0
    for table, classes in zip(spec.rows(bank._text), (spec.move_classes, spec.arc_classes), strict=True):
        offsets, columns = np.asarray(table["offsets"]), np.asarray(table["columns"])
        shape = (len(offsets) - 1, int(columns.max()) + 1)
        X = renumber_by_frequency(sparse.csr_matrix((np.ones(len(columns)), columns, offsets), shape=shape))
        moves = moves or X.shape[0]
        share = X.shape[0] / moves  # decisions of this kind per move
        keys = combinations(X[:3000], 2)
        reads_per_move = share * sum(map(len, keys)) / len(keys)
        weights = 2 * max(map(len, classes))  # bytes of a pair
        limits += reads_per_move * replay_positions(rank_keys(keys), weights)["read"]
        counts += Counter({"random reads": reads_per_move, "operations": reads_per_move * weights / 2})
        counts["bytes"] += 4 * share * X.nnz / X.shape[0]
    times = Times([1e9 * result.seconds / moves for result in results])
    add(report, task, Step(times, {"random reads": limits}, dict(counts)))


WORK: dict[str, Callable[[Report, str], None]] = {
    "condensed rows": measure_condensed,
    "expanded score of degree 2, a row": partial(measure_expanded, degree=2),
    "expanded score of degree 3, a row": partial(measure_expanded, degree=3),
    "dense RBF of 16 columns, a value": partial(measure_dense, columns=16),
    "dense RBF of 784 columns, a value": partial(measure_dense, columns=784),
    "trees' delta, a pair of productions": measure_trees,
    "one-slack pass, an entry": measure_passes,
    "svmlight read, a byte": measure_reading,
    "parser step, a decision": measure_parser,
}


def add_machine(report: Report) -> None:
    result = Machine.measured().found
    for name, value in result.items():
        kind, _, size = name.partition(" ")
        if kind == "stream":
            report.add("memory in sequence", LIMIT, "speed", "GB/s", value, at=float(size))
        elif kind in ("read", "update"):
            report.add(f"random {kind}s", LIMIT, "time", "CPU ns", value, at=float(size))
    for kind, title in (("double", "float64"), ("single", "float32")):
        report.add(f"multiplications and additions, {title}", LIMIT, "speed", "1e9/s", result[kind])
    report.add("bytes of text", LIMIT, "speed", "1e9/s", result["bytes"])


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        try:
            WORK[task](report, task)
        except (FileNotFoundError, LeftOutError) as reason:
            report.leave_out(task, reason)
    try:
        add_machine(report)
    except LeftOutError as reason:
        report.leave_out(LIMIT, reason)


if __name__ == "__main__":
    main(measure, list(WORK))
