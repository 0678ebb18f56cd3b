"""Tree kernels: training, answering, sampling, threads, class imbalance, reading and kernel matrices.

Trees are TREC's questions and predicates with their arguments from PropBank (tree_tasks.py), the kernel is
subset trees with decay 0.4, normalised, and C is 1, unless a table says otherwise. Every training runs in a
process of its own, from a file of examples; reading is given apart, and memory is that of the whole process.
CPU seconds are the best of --repeat.

SVM-light-TK 1.5 is measured in turn with ours if ``--rival FOLDER`` names a folder that has its two programs,
``svm_learn`` and ``svm_classify``, built beside this tree. Its time of training is that of the whole process,
reading included, so the ratio is to ours with reading; its time of answering is without loading the model.

    python benchmarks/tree.py                     # what ends within three minutes
    UNKERNEL_DATA=/where/the/data/is python benchmarks/tree.py [--rival FOLDER] [--repeat 3] [--large]
        [train|classify|sampled|threads|imbalance|read|kernels|words|million ...]

``--large`` has the sizes of the paper (Severyn & Moschitti 2011): 100,000 examples, samples of up to 5,000.
``million`` takes all 1,463,591 candidates. Files of examples are kept in build/benchmarks.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from tree_contenders import KERNELS, SvmLightTk, clocked, in_child, quality
from tree_tasks import CACHE, example_lines, examples_of, file_of, leaf_pairs, leaves, productions
from unkernel import Forest, TreeKernel, TreeSVC, datasets, load, read_trees
from unkernel._core import train_sampled_trees
from unkernel.models import ExampleKernel
from unkernel.tree.options import SampledOptions

DECAY, C = 0.4, 1.0
QUESTIONS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


@dataclass(frozen=True)
class Setting:
    rival: SvmLightTk | None
    repeat: int
    large: bool
    usvm_seconds: float  # who compares pair by pair gets as many rounds as end within this


def show(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    headings = list(headings)
    print("| " + " | ".join(headings) + " |")
    print("|" + "---|" * len(headings), flush=True)
    for cells in rows:
        print("| " + " | ".join(cells) + " |", flush=True)


# --- Training -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """A task to train; the rival takes classes one after another, so not where there are many."""

    name: str
    task: str
    positive: str | None = None
    rival_classes: tuple[str | None, ...] = ()


TRAININGS = (
    Training("TREC, DESC against the rest", "trec", "DESC", ("DESC",)),
    Training("TREC, six classes", "trec", None, QUESTIONS),
    Training("PropBank boundaries, 10k", "boundaries-10k", None, (None,)),
    Training("PropBank, ARG1 against other roles, 10k", "roles-10k", "ARG1", ("ARG1",)),
    Training("PropBank roles, 10k", "roles-10k"),
)
LARGE_TRAININGS = (
    Training("PropBank boundaries, 100k", "boundaries-100k"),
    Training("PropBank roles, all 81k", "roles-100k"),
)


def train(setting: Setting) -> None:
    print(f"\n## Training: SST, decay {DECAY}, normalised, C {C:g}, gap 1e-3, one thread")
    headings = ["task", "examples", "reading", "CPU s", "wall s", "objective", "gap", "support trees"]
    headings += ["peak MB", "test"]
    if setting.rival:
        headings += ["SVM-light-TK: CPU s", "objective", "support trees", "peak MB", "test", "ratio"]
    trainings = TRAININGS + (LARGE_TRAININGS if setting.large else ())
    show(headings, (training_row(training, setting) for training in trainings))


def training_row(training: Training, setting: Setting) -> list[str]:
    files = [str(file_of(training.task, split)) for split in ("train", "test")]
    options = {"decay": DECAY, "C": C, "n_jobs": 1}
    ours, theirs = [], []
    for _ in range(setting.repeat):
        ours.append(
            in_child(
                "train", train_file=files[0], test_file=files[1], positive=training.positive, options=options
            )
        )
        if setting.rival and training.rival_classes:
            theirs.append(rival_training(training, setting.rival))
    best = min(ours, key=lambda report: report["cpu"])
    cells = [
        training.name, f"{best['examples']:,}", f"{best['reading']:.2f}", f"{best['cpu']:.2f}",
        f"{best['wall']:.2f}", f"{best['objective']:,.2f}", f"{best['gap']:.1e}", f"{best['support']:,}",
        f"{best['peak_mb']:.0f} (trees {best['trees_mb'] - best['before_mb']:.0f})", judged(best),
    ]  # fmt: skip
    if theirs:
        least = min(theirs, key=lambda report: report["cpu"])
        spent = best["reading"] + best["cpu"]
        cells += [
            f"{least['cpu']:.1f}", f"{least['objective']:,.2f}", f"{least['support']:,}",
            f"{least['peak_mb']:.0f}", judged(least), f"{least['cpu'] / spent:.0f}",
        ]  # fmt: skip
    return cells


def judged(report: dict[str, Any]) -> str:
    accuracy = f"{100 * report['accuracy']:.1f} %"
    return f"{accuracy}, F1 {report['f1']:.3f}" if "f1" in report else accuracy


def rival_training(training: Training, rival: SvmLightTk) -> dict[str, Any]:
    """The sum over the classes, and what the largest margin says of the test examples."""
    learned, margins = [], []
    for positive in training.rival_classes:
        model = CACHE / f"{training.task}.{positive}.model"
        learned.append(rival.learn(file_of(training.task, "train", positive), "sst", DECAY, C, model))
        margins.append(rival.margins(model, file_of(training.task, "test", positive))[1])
    truth = read_trees(file_of(training.task, "test"), format="lines").y
    if len(margins) == 1:
        positive = training.positive or "1"
        answer = quality(truth.astype(str) == positive, margins[0] > 0, np.array([False, True]))
    else:
        choices = np.array(training.rival_classes)
        answer = quality(truth, choices[np.argmax(margins, axis=0)], choices)
    return answer | {
        "cpu": sum(one.cpu for one in learned),
        "objective": sum(one.objective for one in learned),
        "support": sum(one.support for one in learned),
        "peak_mb": max(one.peak_mb for one in learned),
    }


# --- Answering ----------------------------------------------------------------------------------------


def classify(setting: Setting) -> None:
    print("\n## Answering 500 questions of TREC: µs of CPU time a tree, one thread; two threads: wall")
    headings = ["model", "support trees", "a Forest", "text", "score_one", "two threads, a Forest"]
    headings += ["load, ms"] + (["SVM-light-TK", "ratio to text"] if setting.rival else [])
    show(headings, (answering_row(training, setting) for training in TRAININGS[:2]))


def answering_row(training: Training, setting: Setting) -> list[str]:
    path = CACHE / f"{training.positive or 'six'}.uk"
    files = [str(file_of(training.task, split)) for split in ("train", "test")]
    in_child(
        "train", train_file=files[0], test_file=files[1], positive=training.positive,
        options={"decay": DECAY, "C": C, "n_jobs": 1}, model=str(path),
    )  # fmt: skip
    fast = load(path)
    _, texts = examples_of(training.task, "test")
    texts = list(texts)
    forest = Forest(texts)
    worker = fast.worker()
    ways: dict[str, Callable[[], Any]] = {
        "forest": lambda: fast.decision_function(forest, n_jobs=1),
        "text": lambda: fast.decision_function(texts, n_jobs=1),
        "one": lambda: [worker.score_one(text) for text in texts],
        "two": lambda: fast.decision_function(forest, n_jobs=2),
        "load": lambda: load(path).decision_function(forest[:1], n_jobs=1),
    }
    best = dict.fromkeys(ways, np.inf)
    theirs = np.inf
    models = rival_models(training, setting.rival) if setting.rival else []
    for turn in range(max(setting.repeat, 5)):
        for name, work in ways.items():
            _, cpu, wall = clocked(work)
            best[name] = min(best[name], wall if name in ("two", "load") else cpu)
        if setting.rival and turn < setting.repeat:
            test = file_of(training.task, "test", training.rival_classes[0])
            theirs = min(theirs, sum(setting.rival.margins(model, test)[0] for model in models))
    each = {name: f"{1e6 * seconds / len(texts):.1f}" for name, seconds in best.items()}
    cells = [training.name, f"{fast.model.n_support:,}", each["forest"], each["text"], each["one"]]
    cells += [each["two"], f"{1e3 * best['load']:.1f}"]
    if setting.rival:
        cells += [f"{1e6 * theirs / len(texts):,.0f}", f"{theirs / best['text']:.0f}"]
    return cells


def rival_models(training: Training, rival: SvmLightTk) -> list[Path]:
    models = [CACHE / f"{training.task}.{positive}.model" for positive in training.rival_classes]
    for positive, model in zip(training.rival_classes, models, strict=True):
        if not model.exists():
            rival.learn(file_of(training.task, "train", positive), "sst", DECAY, C, model)
    return models


# --- Sampled cutting planes ---------------------------------------------------------------------------

METHODS = {"uSVM": "usvm", "SDAG": "sdag", "SDAG+": "sdag+", "ours": "forest"}


def sampled(setting: Setting) -> None:
    """Table 1 of the paper: the same cuts, computed in four ways."""
    count, rounds = (100, 300) if setting.large else (10, 50)
    sizes = (1000, 2000, 3000, 4000, 5000) if setting.large else (250, 1000)
    print(
        f"\n## Sampled cutting planes: PropBank boundaries, {count}k examples; CPU s, one thread\n\n"
        f"Times of {rounds} rounds; those of all methods for as many rounds as uSVM does within about "
        f"{setting.usvm_seconds:g} s are in brackets, and what uSVM took for these, divided by them."
    )
    data = read_trees(file_of(f"boundaries-{count}k"), format="lines")
    problem = SampledProblem.of(data.X, data.y)
    headings = ["sample", "rounds of uSVM", *METHODS, "largest difference of coefficients"]
    show(headings, (sampled_row(problem, size, rounds, setting.usvm_seconds) for size in sizes))


@dataclass(frozen=True)
class SampledProblem:
    kernel: Any
    examples: Any
    codes: np.ndarray

    @staticmethod
    def of(forest: Forest, labels: np.ndarray) -> SampledProblem:
        kernel = ExampleKernel("sst", DECAY)
        codes = (labels == labels.max()).astype(np.int32)
        return SampledProblem(kernel.core(), kernel.examples(forest, indexed=True), codes)

    def train(self, method: str, sample_size: int, rounds: int, threads: int = 1) -> tuple[Any, float, float]:
        """Stops after so many rounds and not before, so that all methods do the same."""
        return clocked(
            lambda: train_sampled_trees(
                SampledOptions(
                    imbalance=1.0, C=C, epsilon=1e-12, max_rounds=rounds, sample_size=sample_size,
                    fit_intercept=True, seed=1, method=method, threads=threads,
                ),
                kernel=self.kernel, set=self.examples, codes=self.codes, costs=np.ones(len(self.codes)),
                positive=1, on_progress=None,
            )
        )  # fmt: skip


def sampled_row(problem: SampledProblem, size: int, rounds: int, seconds: float) -> list[str]:
    few, slowest = usvm_within(problem, size, rounds, seconds)
    cells = [f"{size:,}", str(few), f"{f'{slowest[1]:.2f}' if few == rounds else '–'} ({slowest[1]:.2f})"]
    first, differences = np.asarray(slowest[0]["coefficients"]), []
    for method in list(METHODS.values())[1:]:
        short = problem.train(method, size, few)
        whole = short if few == rounds else problem.train(method, size, rounds)
        cells.append(f"{whole[1]:.2f} ({short[1]:.2f}, {slowest[1] / short[1]:.1f}x)")
        differences.append(np.abs(np.asarray(short[0]["coefficients"]) - first).max())
    return [*cells, f"{max(differences):.0e}"]


def usvm_within(
    problem: SampledProblem, size: int, most: int, seconds: float
) -> tuple[int, tuple[Any, float, float]]:
    """Rounds that end within so many seconds, tried in doublings, as time is about quadratic in them."""
    rounds = min(4, most)
    outcome = problem.train("usvm", size, rounds)
    while rounds < most and 4 * outcome[1] <= seconds:
        rounds = min(2 * rounds, most)
        outcome = problem.train("usvm", size, rounds)
    return rounds, outcome


# --- Threads ------------------------------------------------------------------------------------------


def threads(setting: Setting) -> None:
    print("\n## Threads: wall s with one and with two, best of all rounds")
    size = 100 if setting.large else 10
    boundaries = read_trees(file_of(f"boundaries-{size}k"), format="lines")
    questions = read_trees(file_of("trec"), format="lines")
    problem = SampledProblem.of(boundaries.X, boundaries.y)
    compiled = TreeSVC(decay=DECAY, C=C).fit(questions.X, questions.y)
    fast = load_of(compiled)
    work: dict[str, Callable[[int], Any]] = {
        "train TREC, six classes": lambda jobs: TreeSVC(n_jobs=jobs).fit(questions.X, questions.y),
        f"train boundaries, {size}k": lambda jobs: TreeSVC(n_jobs=jobs).fit(boundaries.X, boundaries.y),
        f"50 sampled cuts of 1,000, {size}k": lambda jobs: problem.train("forest", 1000, 50, jobs),
        "answer all questions of TREC": lambda jobs: fast.decision_function(questions.X, n_jobs=jobs),
        "kernel matrix of TREC": lambda jobs: TreeKernel(n_jobs=jobs)(questions.X),
    }
    show(["work", "1", "2", "ratio"], (threads_row(*item, setting.repeat) for item in work.items()))


def load_of(svc: TreeSVC) -> Any:
    path = CACHE / "threads.uk"
    svc.save(path)
    return load(path)


def threads_row(name: str, work: Callable[[int], Any], repeat: int) -> list[str]:
    best = {1: np.inf, 2: np.inf}
    for _ in range(max(repeat, 2)):
        for jobs, before in best.items():
            best[jobs] = min(before, clocked(partial(work, jobs))[2])
    return [name, f"{best[1]:.3f}", f"{best[2]:.3f}", f"{best[1] / best[2]:.2f}"]


# --- Class imbalance ----------------------------------------------------------------------------------

IMBALANCES = (1, 2, 3, 4, 5, 10)
FEW_IMBALANCES = (1, 4)


def imbalance(setting: Setting) -> None:
    """Table 2 of the paper, or a corner of it."""
    size, factors = ("100k", IMBALANCES) if setting.large else ("10k", FEW_IMBALANCES)
    classes = QUESTIONS if setting.large else ("ABBR", "ENTY")
    solvers = {
        "sampled": {"solver": "sampled", "sample_size": 100, "random_state": 0},
        "exact": {"solver": "exact"},
    }
    for name, options in solvers.items():
        words = "samples of 100" if name == "sampled" else "the whole problem"
        print(f"\n## Class imbalance, {name} ({words}): F1, precision / recall, in %")
        headings = ["task", "negatives to a positive", *(f"j = {j}" for j in factors)]
        tasks = [("trec", positive) for positive in classes] + [(f"boundaries-{size}", None)]
        show(headings, (imbalance_row(task, positive, options, factors) for task, positive in tasks))


def imbalance_row(
    task: str, positive: str | None, options: dict[str, Any], factors: Iterable[int]
) -> list[str]:
    train_data, test_data = (read_trees(file_of(task, split), format="lines") for split in ("train", "test"))
    is_positive = train_data.y == (1 if positive is None else positive)
    truth = test_data.y == (1 if positive is None else positive)
    cells = [positive or task, f"{(~is_positive).sum() / is_positive.sum():.0f}"]
    for j in factors:
        svc = TreeSVC(decay=DECAY, C=C, imbalance=float(j), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svc.fit(train_data.X, is_positive)
        found = quality(truth, svc.predict(test_data.X), svc.classes_)
        f1, precision, recall = (100 * found[key] for key in ("f1", "precision", "recall"))
        cells.append(f"{f1:.1f}, {precision:.0f} / {recall:.0f}")
    return cells


def million(setting: Setting) -> None:
    train_file, test_file = (file_of("boundaries-all", split) for split in ("train", "test"))
    print(f"\n## All PropBank candidates, sampled; file of {train_file.stat().st_size / 1e6:.0f} MB")
    headings = ["sample", "j", "C", "reading", "CPU s", "wall s", "cuts", "support trees", "peak MB", "test"]
    settings = [(1000, 1.0), (1000, 4.0), (5000, 1.0), (5000, 4.0)] if setting.large else [(1000, 1.0)]
    show(headings, (million_row(str(train_file), str(test_file), *chosen) for chosen in settings))


def million_row(train_file: str, test_file: str, sample_size: int, j: float) -> list[str]:
    options = {
        "decay": DECAY, "C": C, "solver": "sampled", "sample_size": sample_size, "imbalance": j,
        "random_state": 0, "n_jobs": -1, "max_iter": 300,
    }  # fmt: skip
    found = in_child("train", train_file=train_file, test_file=test_file, positive=None, options=options)
    ended = str(found["rounds"]) if found["converged"] else f"{found['rounds']} (not converged)"
    return [
        f"{sample_size:,}", f"{j:g}", f"{C:g}", f"{found['reading']:.1f}", f"{found['cpu']:.1f}",
        f"{found['wall']:.1f}", ended, f"{found['support']:,}", f"{found['peak_mb']:,.0f}",
        f"precision {found['precision']:.3f}, recall {found['recall']:.3f}, F1 {found['f1']:.3f}",
    ]  # fmt: skip


# --- Words instead of trees ---------------------------------------------------------------------------


def words(setting: Setting) -> None:
    """What plain bags do on the same tasks; all parameters by cross-validation on the training part."""
    print("\n## Bags of words, and trees: C (and decay) by five-fold cross-validation")
    print("\nTREC, six classes: accuracy; PropBank boundaries, 10k: F1")
    show(["task", "features", "parameters", "cross-validated", "test"], bag_rows(setting))


def bag_rows(setting: Setting) -> Iterator[list[str]]:
    for task, scoring in (("trec", "accuracy"), ("boundaries-10k", "f1")):
        labels, trees = (list(items) for items in examples_of(task, "train"))
        truth, tests = (list(items) for items in examples_of(task, "test"))
        for name, bag in BAGS.items():
            chain = make_pipeline(bag, LinearSVC(max_iter=5000, random_state=0))
            grid: dict[str, list[float]] = {"linearsvc__C": [0.03, 0.1, 0.3, 1, 3]}
            search = GridSearchCV(chain, grid, scoring=scoring, cv=5)
            yield searched(task, name, search.fit(trees, labels), tests, truth)
        forest, test_forest = Forest(trees), Forest(tests)
        for kernel in ("sst", "sst_bow"):
            grid = {"decay": [0.2, 0.4], "C": [1, 3, 10]}
            search = GridSearchCV(TreeSVC(kernel), grid, scoring=scoring, cv=5)
            yield searched(task, f"trees, {kernel}", search.fit(forest, labels), test_forest, truth)
        if task == "trec":
            grams = BAGS["words and pairs of words"]
            both = Forest(trees, vectors=grams.fit_transform(trees).astype(float))
            test_both = Forest(tests, vectors=grams.transform(tests).astype(float))
            search = GridSearchCV(TreeSVC("sst_bow", decay=0.2), {"C": [1, 3, 10]}, scoring=scoring, cv=5)
            name = "trees, sst_bow, and words and pairs of words"
            yield searched(task, name, search.fit(both, labels), test_both, truth)


def searched(task: str, name: str, search: GridSearchCV, tests: Any, truth: Any) -> list[str]:
    best = ", ".join(f"{key.rpartition('__')[2]} {value:g}" for key, value in search.best_params_.items())
    return [task, name, best, f"{100 * search.best_score_:.1f}", f"{100 * search.score(tests, truth):.1f}"]


BAGS = {
    "words": CountVectorizer(analyzer=leaves, binary=True),
    "words and pairs of words": CountVectorizer(analyzer=leaf_pairs, binary=True),
    "productions": CountVectorizer(analyzer=productions, binary=True),
}


# --- Reading and kernels ------------------------------------------------------------------------------


def read(setting: Setting) -> None:
    print("\n## Reading, one thread: MB of text per second of CPU time")
    rows = []
    for task in ("trec", "boundaries-100k" if setting.large else "boundaries-10k"):
        lines = file_of(task)
        brackets = lines.with_suffix(".txt")
        if not brackets.exists():
            brackets.write_text("\n".join(examples_of(task, "train")[1]) + "\n", encoding="utf-8")
        rows += [reading_row(brackets, setting.repeat), reading_row(lines, setting.repeat)]
    try:
        kelp = CACHE / "kelp.klp"
        if not kelp.exists():
            import lzma

            kelp.write_bytes(lzma.decompress(datasets.path("kelp-trec").read_bytes()))
        rows.append(reading_row(kelp, setting.repeat))
    except FileNotFoundError as error:
        print(f"KeLP's file: left out ({error})")
    show(["file", "MB", "trees", "unique subtrees", "MB/s", "nltk's MB/s"], rows)


def reading_row(file: Path, repeat: int) -> list[str]:
    size = file.stat().st_size / 1e6
    rounds = [clocked(lambda: read_trees(file)) for _ in range(max(repeat, 3))]
    forest = rounds[0][0].X
    trees = sum(int((roots >= 0).sum()) for roots in forest.trees.values())
    best = min(cpu for _, cpu, _ in rounds)
    return [file.name, f"{size:.2f}", f"{trees:,}", f"{forest.nodes:,}", f"{size / best:.0f}", by_nltk(file)]


def by_nltk(file: Path) -> str:
    """Of files of brackets, what nltk.Tree.fromstring does, where there is one."""
    try:
        from nltk import Tree
    except ImportError:
        return ""
    if file.suffix != ".txt":
        return ""
    lines = file.read_text(encoding="utf-8").splitlines()[:2000]
    _, cpu, _ = clocked(lambda: [Tree.fromstring(line) for line in lines])
    return f"{sum(map(len, lines)) / 1e6 / cpu:.1f}"


def kernels(setting: Setting) -> None:
    count = None if setting.large else 2000
    forest = Forest(list(examples_of("trec", "train")[1])[:count])
    n = len(forest)
    print(f"\n## Kernel matrix of {n:,} questions ({n * n / 1e6:.1f} M values), one thread: ns per value")
    rows = []
    for kernel in KERNELS:
        gram = TreeKernel(kernel, decay=DECAY, n_jobs=1)
        best = min(clocked(lambda gram=gram: gram(forest))[1] for _ in range(max(setting.repeat, 2)))
        cells = [kernel, f"{best:.2f}", f"{1e9 * best / n**2:.1f}", f"{2e9 * best / (n * (n + 1)):.1f}"]
        rows.append(cells + ([f"{rival_value(kernel, setting.rival):.0f}"] if setting.rival else []))
    headings = ["kernel", "CPU s", "a value", "a value of the lower half"]
    show(headings + (["SVM-light-TK, answering"] if setting.rival else []), rows)


def rival_value(kernel: str, rival: SvmLightTk) -> float:
    """What a kernel value takes, in ns, while it answers questions."""
    model = CACHE / f"small.{kernel}.model"
    file = CACHE / "small.dat"
    if not file.exists():
        file.write_text("".join(example_lines("trec", "test", "DESC")), encoding="utf-8")
    learned = rival.learn(file, kernel, DECAY, C, model)
    test = CACHE / "questions.dat"
    if not test.exists():
        lines = list(example_lines("trec", "train", "DESC"))[:2000]
        test.write_text("".join(lines), encoding="utf-8")
    seconds, margins = rival.margins(model, test)
    return 1e9 * seconds / (len(margins) * learned.support)


SECTIONS: dict[str, Callable[[Setting], None]] = {
    "train": train, "classify": classify, "sampled": sampled, "threads": threads, "imbalance": imbalance,
    "read": read, "kernels": kernels, "words": words, "million": million,
}  # fmt: skip
DEFAULT = ("train", "classify", "sampled", "threads", "imbalance", "read", "kernels")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--rival", type=Path, metavar="FOLDER", help="with svm_learn and svm_classify")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--usvm-seconds", type=float, default=40.0, help="for each row of `sampled`")
    parser.add_argument("--large", action="store_true", help="the sizes of the paper: hours with a rival")
    given = parser.parse_args()
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    rival = SvmLightTk(given.rival) if given.rival else None
    setting = Setting(rival, given.repeat, given.large, given.usvm_seconds)
    for name in given.sections or DEFAULT:
        began = time.perf_counter()
        try:
            SECTIONS[name](setting)
            print(f"({time.perf_counter() - began:.0f} s)", flush=True)
        except FileNotFoundError as error:
            print(f"{name}: left out ({error})")


if __name__ == "__main__":
    main()
