"""Tree kernels: training, answering, sampled cutting planes, threads, reading and kernel matrices.

Trees are TREC's questions, and predicates with their arguments from PropBank (tree_tasks.py). The kernel is
subset trees with decay 0.4, normalised, and C is 1, unless a task says otherwise. Training uses one thread,
and stops at a gap of 1e-3. Every training runs in a process of its own, which reads a file of examples:
"training" is the time without reading, "from the file" the time with reading, and memory belongs to the whole
process.

SVM-light-TK takes turns with ours if it has been built (see peers.py). Its time of training is that of the
whole process, including reading. Its time of answering excludes loading the model. It trains and scores
classes one after another.

"sampled" is table 1 of Severyn & Moschitti (2011): the same cuts, computed in four ways. uSVM compares trees
pair by pair, and runs only as many rounds as it finishes in some seconds; the times of the others are for the
same number of rounds. "threads" compares wall times of one thread and of two. Files of examples are kept in
build/benchmarks.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/tree.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness import Report, Times, cpu_seconds, main, take_turns, timed, wall_seconds
from harness.processes import LeftOutError
from tree_contenders import KERNELS, SvmLightTk, quality, trained
from tree_tasks import CACHE, example_lines, find_file, load_examples
from unkernel import Forest, TreeKernel, TreeSVC, datasets, load, read_trees
from unkernel._core import train_sampled_trees
from unkernel.models import ExampleKernel
from unkernel.tree.options import SampledOptions

DECAY, C = 0.4, 1.0
OPTIONS = {"decay": DECAY, "C": C, "n_jobs": 1}
QUESTIONS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
RIVAL = "SVM-light-TK"
USVM_SECONDS = 40.0


def rival(report: Report, task: str) -> SvmLightTk | None:
    try:
        return SvmLightTk()
    except LeftOutError as reason:
        report.leave_out(f"{task}, {RIVAL}", reason)
        return None


# --- Training -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """A training task. SVM-light-TK trains classes one by one, and is left out if there are many."""

    task: str
    positive: str | None = None
    rival_classes: tuple[str | None, ...] = ()


TRAININGS = {
    "train, TREC, DESC against the rest": Training("trec", "DESC", ("DESC",)),
    "train, TREC, six classes": Training("trec", None, QUESTIONS),
    "train, PropBank boundaries, 10k": Training("boundaries-10k", None, (None,)),
    "train, PropBank, ARG1 against other roles, 10k": Training("roles-10k", "ARG1", ("ARG1",)),
    "train, PropBank roles, 10k": Training("roles-10k"),
    "train, PropBank boundaries, 100k": Training("boundaries-100k"),
    "train, PropBank roles, all 81k": Training("roles-100k"),
}


def measure_training(report: Report, name: str) -> None:
    training = TRAININGS[name]
    files = find_file(training.task, "train"), find_file(training.task, "test")
    programs = rival(report, name) if training.rival_classes else None
    ours, theirs = [], []
    for _ in range(1 if report.quick else 3):
        ours.append(trained(*files, training.positive, OPTIONS))
        if programs:
            theirs.append(rival_training(training, programs))
    report.add(name, "unkernel", "training", "CPU s", Times([run["cpu"] for run in ours]))
    from_file = Times([run["reading"] + run["cpu"] for run in ours])
    report.add(name, "unkernel", "from the file", "CPU s", from_file)
    add_outcome(report, name, "unkernel", ours[0])
    report.add(name, "unkernel", "gap", "", ours[0]["gap"])
    if theirs:
        report.add(name, RIVAL, "from the file", "CPU s", Times([run["cpu"] for run in theirs]))
        add_outcome(report, name, RIVAL, theirs[0])


def add_outcome(report: Report, name: str, contender: str, actual: dict[str, Any]) -> None:
    report.add(name, contender, "peak memory", "MB", actual["peak_mb"])
    report.add(name, contender, "objective", "", actual["objective"])
    report.add(name, contender, "support trees", "number", actual["support"])
    report.add(name, contender, "accuracy", "%", 100 * actual["accuracy"])
    if "f1" in actual:
        report.add(name, contender, "F1", "%", 100 * actual["f1"])


def rival_training(training: Training, programs: SvmLightTk) -> dict[str, Any]:
    """Return figures summed over the classes, and the quality of predictions by the largest margin."""
    learned, margins = [], []
    for positive in training.rival_classes:
        model = CACHE / f"{training.task}.{positive}.model"
        learned.append(programs.learn(find_file(training.task, "train", positive), "sst", DECAY, C, model))
        margins.append(programs.margins(model, find_file(training.task, "test", positive))[1])
    truth = read_trees(find_file(training.task, "test"), format="lines").y
    if len(margins) == 1:
        positive = training.positive or "1"
        answer = quality(truth.astype(str) == positive, margins[0] > 0, np.array([False, True]))
    else:
        choices = np.array(training.rival_classes)
        answer = quality(truth, choices[np.argmax(margins, axis=0)], choices)
    return answer | {
        "cpu": sum(learned_class.cpu for learned_class in learned),
        "objective": sum(learned_class.objective for learned_class in learned),
        "support": sum(learned_class.support for learned_class in learned),
        "peak_mb": max(learned_class.peak_mb for learned_class in learned),
    }


# --- Answering ----------------------------------------------------------------------------------------

ANSWERS = {
    "answer, TREC, DESC against the rest": TRAININGS["train, TREC, DESC against the rest"],
    "answer, TREC, six classes": TRAININGS["train, TREC, six classes"],
}


def measure_answers(report: Report, name: str) -> None:
    training = ANSWERS[name]
    path = CACHE / f"{training.positive or 'six'}.uk"
    trained(find_file("trec", "train"), find_file("trec", "test"), training.positive, OPTIONS, path)
    fast = load(path)
    texts = list(load_examples("trec", "test")[1])
    forest = Forest(texts)
    worker = fast.worker()
    works: dict[str, Callable[[], Any]] = {
        "unkernel, text": lambda: fast.decision_function(texts, n_jobs=1),
        "unkernel, a Forest": lambda: fast.decision_function(forest, n_jobs=1),
        "unkernel, score_one(text)": lambda: [worker.score_one(text) for text in texts],
    }
    for contender, times in take_turns(works, 3 if report.quick else 9).items():
        report.add(name, contender, "time", "CPU µs per tree", times.scaled(1e6 / len(texts)))
    loading = Times([cpu_seconds(lambda: load(path).decision_function(forest[:1], n_jobs=1)) for _ in "123"])
    report.add(name, "unkernel, text", "load and answer one", "CPU ms", loading.scaled(1e3))
    if programs := rival(report, name):
        models = rival_models(training, programs)
        test = find_file(training.task, "test", training.rival_classes[0])
        seconds = [sum(programs.margins(model, test)[0] for model in models) for _ in range(3)]
        report.add(name, RIVAL, "time", "CPU µs per tree", Times(seconds).scaled(1e6 / len(texts)))


def rival_models(training: Training, programs: SvmLightTk) -> list[Path]:
    models = [CACHE / f"{training.task}.{positive}.model" for positive in training.rival_classes]
    for positive, model in zip(training.rival_classes, models, strict=True):
        if not model.exists():
            programs.learn(find_file(training.task, "train", positive), "sst", DECAY, C, model)
    return models


# --- Sampled cutting planes ---------------------------------------------------------------------------

METHODS = {"unkernel": "forest", "uSVM": "usvm", "SDAG": "sdag", "SDAG+": "sdag+"}
# Thousands of examples, rounds at most, and the size of a sample.
SAMPLED = {
    f"sampled, {count}k examples, samples of {size:,}": (count, rounds, size)
    for count, rounds, sizes in ((10, 50, (250, 1000)), (100, 300, (1000, 2000, 3000, 4000, 5000)))
    for size in sizes
}


@dataclass(frozen=True)
class SampledProblem:
    kernel: Any
    examples: Any
    codes: np.ndarray

    @staticmethod
    def from_forest(forest: Forest, labels: np.ndarray) -> SampledProblem:
        kernel = ExampleKernel("sst", DECAY)
        codes = (labels == labels.max()).astype(np.int32)
        return SampledProblem(kernel.core(), kernel.examples(forest, indexed=True), codes)

    def train(self, method: str, sample_size: int, rounds: int, threads: int = 1) -> tuple[Any, float, float]:
        """Train for a fixed number of rounds, so that all methods do the same work."""
        return timed(
            lambda: train_sampled_trees(
                SampledOptions(
                    imbalance=1.0, C=C, epsilon=1e-12, max_rounds=rounds, sample_size=sample_size,
                    fit_intercept=True, seed=1, method=method, threads=threads,
                ),
                kernel=self.kernel, set=self.examples, codes=self.codes, costs=np.ones(len(self.codes)),
                positive=1, on_progress=None,
            )
        )  # fmt: skip


def measure_sampled(report: Report, name: str) -> None:
    count, max_rounds, size = SAMPLED[name]
    data = read_trees(find_file(f"boundaries-{count}k"), format="lines")
    problem = SampledProblem.from_forest(data.X, data.y)
    rounds, slowest = usvm_within(problem, size, max_rounds, 5.0 if report.quick else USVM_SECONDS)
    coefficients = np.asarray(slowest[0]["coefficients"])
    for contender, method in METHODS.items():
        outcome = slowest if method == "usvm" else problem.train(method, size, rounds)
        difference = float(np.abs(np.asarray(outcome[0]["coefficients"]) - coefficients).max())
        report.add(name, contender, "time", "CPU s", outcome[1], note=f"{rounds} rounds" * (method == "usvm"))
        report.add(name, contender, "largest difference of coefficients", "", difference)
    if rounds < max_rounds:
        report.add(
            name,
            f"unkernel, {max_rounds} rounds",
            "time",
            "CPU s",
            problem.train("forest", size, max_rounds)[1],
        )


def usvm_within(
    problem: SampledProblem, size: int, max_rounds: int, seconds: float
) -> tuple[int, tuple[Any, float, float]]:
    """Double the rounds while they end within `seconds`, in about quadratic time; return the last outcome."""
    rounds = min(4, max_rounds)
    outcome = problem.train("usvm", size, rounds)
    while rounds < max_rounds and 4 * outcome[1] <= seconds:
        rounds = min(2 * rounds, max_rounds)
        outcome = problem.train("usvm", size, rounds)
    return rounds, outcome


# --- Threads ------------------------------------------------------------------------------------------

THREADS = {"threads, 10k examples": 10, "threads, 100k examples": 100}


def measure_threads(report: Report, name: str) -> None:
    size = THREADS[name]
    boundaries = read_trees(find_file(f"boundaries-{size}k"), format="lines")
    questions = read_trees(find_file("trec"), format="lines")
    problem = SampledProblem.from_forest(boundaries.X, boundaries.y)
    path = CACHE / "threads.uk"
    TreeSVC(decay=DECAY, C=C).fit(questions.X, questions.y).save(path)
    fast = load(path)
    work: dict[str, Callable[[int], Any]] = {
        "train TREC, six classes": lambda jobs: TreeSVC(n_jobs=jobs).fit(questions.X, questions.y),
        "train boundaries": lambda jobs: TreeSVC(n_jobs=jobs).fit(boundaries.X, boundaries.y),
        "50 sampled cuts of 1,000": lambda jobs: problem.train("forest", 1000, 50, jobs),
        "answer all questions of TREC": lambda jobs: fast.decision_function(questions.X, n_jobs=jobs),
        "kernel matrix of TREC": lambda jobs: TreeKernel(n_jobs=jobs)(questions.X),
    }
    for what, run in work.items():
        jobs = {str(count): partial(run, count) for count in (1, 2)}
        times = take_turns(jobs, 2 if report.quick else 4, wall_seconds)
        for count, seconds in times.items():
            report.add(f"{name}, {what}", "unkernel", f"threads: {count}", "wall s", seconds)


# --- Reading and kernels ------------------------------------------------------------------------------

READING = ("trec", "boundaries-10k", "boundaries-100k", "kelp-trec")


def measure_reading(report: Report, name: str) -> None:
    task = name.removeprefix("read, ")
    for file in tree_files(task):
        size = file.stat().st_size / 1e6
        works: dict[str, Callable[[], Any]] = {"unkernel": lambda file=file: read_trees(file)}
        sizes = {"unkernel": size}
        if file.suffix == ".txt":
            try:
                from nltk import Tree

                lines = file.read_text(encoding="utf-8").splitlines()[:2000]
                works["nltk"] = lambda lines=lines: [Tree.fromstring(line) for line in lines]
                sizes["nltk"] = sum(map(len, lines)) / 1e6
            except ImportError as error:
                report.leave_out("nltk", error)
        forest = read_trees(file).X
        row = f"read, {file.name}, {size:.2f} MB"
        for contender, times in take_turns(works, 3 if report.quick else 5).items():
            report.add(row, contender, "speed", "MB/s", sizes[contender] / times.best)
        trees = sum(int((roots >= 0).sum()) for roots in forest.trees.values())
        report.add(row, "unkernel", "trees", "number", trees)
        report.add(row, "unkernel", "unique subtrees", "number", forest.nodes)


def tree_files(task: str) -> list[Path]:
    """Return files of the same trees in several formats."""
    if task == "kelp-trec":
        kelp = CACHE / "kelp.klp"
        if not kelp.exists():
            kelp.parent.mkdir(parents=True, exist_ok=True)
            kelp.write_bytes(lzma.decompress(datasets.path("kelp-trec").read_bytes()))
        return [kelp]
    lines = find_file(task)
    brackets = lines.with_suffix(".txt")
    if not brackets.exists():
        brackets.write_text("\n".join(load_examples(task, "train")[1]) + "\n", encoding="utf-8")
    return [brackets, lines]


MATRICES = {"kernel matrix, 2,000 questions": 2000, "kernel matrix, all questions": None}


def measure_kernels(report: Report, name: str) -> None:
    forest = Forest(list(load_examples("trec", "train")[1])[: MATRICES[name]])
    n = len(forest)
    programs = rival(report, name)
    works = {kernel: partial(TreeKernel(kernel, decay=DECAY, n_jobs=1), forest) for kernel in KERNELS}
    for kernel, times in take_turns(works, 2 if report.quick else 3).items():
        task = f"{name}, {kernel}"
        report.add(task, "unkernel", "a value", "CPU ns", times.scaled(1e9 / n**2))
        if programs:
            report.add(task, f"{RIVAL}, answering", "a value", "CPU ns", rival_value(kernel, programs))


def rival_value(kernel: str, programs: SvmLightTk) -> float:
    """Return the nanoseconds per kernel value of SVM-light-TK when it classifies questions."""
    model = CACHE / f"small.{kernel}.model"
    file = CACHE / "small.dat"
    if not file.exists():
        file.write_text("".join(example_lines("trec", "test", "DESC")), encoding="utf-8")
    learned = programs.learn(file, kernel, DECAY, C, model)
    test = CACHE / "questions.dat"
    if not test.exists():
        lines = list(example_lines("trec", "train", "DESC"))[:2000]
        test.write_text("".join(lines), encoding="utf-8")
    seconds, margins = programs.margins(model, test)
    return 1e9 * seconds / (len(margins) * learned.support)


SECTIONS: tuple[tuple[Sequence[str], Callable[[Report, str], None]], ...] = (
    (tuple(TRAININGS), measure_training),
    (tuple(ANSWERS), measure_answers),
    (tuple(SAMPLED), measure_sampled),
    (tuple(THREADS), measure_threads),
    (tuple(f"read, {task}" for task in READING), measure_reading),
    (tuple(MATRICES), measure_kernels),
)
TASKS = [name for names, _ in SECTIONS for name in names]
QUICK = [
    "train, TREC, DESC against the rest",
    *ANSWERS,
    "sampled, 10k examples, samples of 250",
    "read, trec",
    "kernel matrix, 2,000 questions",
]


def measure(report: Report, tasks: Sequence[str]) -> None:
    for name in tasks:
        section = next(work for names, work in SECTIONS if name in names)
        try:
            section(report, name)
        except (FileNotFoundError, LeftOutError) as reason:
            report.leave_out(name, reason)


if __name__ == "__main__":
    main(measure, TASKS, quick=QUICK)
