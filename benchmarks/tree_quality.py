"""Quality of tree kernels: class imbalance, bags of words, all candidates of PropBank.

Subset trees with decay 0.4, normalised, C 1, as in tree.py.

- "imbalance" is table 2 of Severyn & Moschitti (2011): positive examples cost j times as much as negative
  ones. The tables show F1, precision and recall of the positive class, for training with samples of 100
  examples and for exact training.
- "words": bags of words on the same tasks, beside trees. All parameters are chosen by five-fold
  cross-validation on the training part. The score is the accuracy for TREC, and F1 for PropBank's boundaries.
- "million": all 1,463,591 candidates, by sampled cuts, on all processors.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/tree_quality.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from harness import Report, main
from harness.processes import LeftOutError
from tree import DECAY, QUESTIONS, C
from tree_contenders import quality, trained
from tree_tasks import find_file, leaf_pairs, leaves, load_examples, productions
from unkernel import Forest, TreeSVC, read_trees

IMBALANCES = (1, 2, 3, 4, 5, 10)
SOLVERS: dict[str, dict[str, Any]] = {
    "exact": {"solver": "exact"},
    "sampled": {"solver": "sampled", "sample_size": 100, "random_state": 0},
}
# The task, and the class that is positive.
IMBALANCED = {
    f"imbalance, {name}, {solver}": (task, positive, options)
    for solver, options in SOLVERS.items()
    for name, task, positive in (
        *((f"TREC, {question}", "trec", question) for question in QUESTIONS),
        ("boundaries, 10k", "boundaries-10k", 1),
        ("boundaries, 100k", "boundaries-100k", 1),
    )
}


def measure_imbalance(report: Report, name: str) -> None:
    task, positive, options = IMBALANCED[name]
    train, test = (read_trees(find_file(task, split), format="lines") for split in ("train", "test"))
    is_positive, truth = train.y == positive, test.y == positive
    for j in (1, 4) if report.quick else IMBALANCES:
        svc = TreeSVC(decay=DECAY, C=C, imbalance=float(j), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svc.fit(train.X, is_positive)
        result = quality(truth, svc.predict(test.X), svc.classes_)
        for figure, key in (("F1", "f1"), ("precision", "precision"), ("recall", "recall")):
            report.add(name, f"unkernel, j = {j}", figure, "%", 100 * result[key])


BAGS = {
    "words": CountVectorizer(analyzer=leaves, binary=True),
    "words and pairs of words": CountVectorizer(analyzer=leaf_pairs, binary=True),
    "productions": CountVectorizer(analyzer=productions, binary=True),
}


WORDS = {"words, TREC": ("trec", "accuracy"), "words, boundaries, 10k": ("boundaries-10k", "f1")}


def measure_words(report: Report, name: str) -> None:
    task, scoring = WORDS[name]
    labels, trees = (list(items) for items in load_examples(task, "train"))
    truth, tests = (list(items) for items in load_examples(task, "test"))

    def add(contender: str, search: GridSearchCV, train: Any, test: Any) -> None:
        search.fit(train, labels)
        best = ", ".join(f"{key.rpartition('__')[2]} {value:g}" for key, value in search.best_params_.items())
        report.add(name, contender, "cross-validated", "%", 100 * search.best_score_, note=best)
        report.add(name, contender, "test", "%", 100 * search.score(test, truth))

    forest, test_forest = Forest(trees), Forest(tests)
    for kernel in ("sst", "sst_bow"):
        grid: dict[str, list[float]] = {"decay": [0.2, 0.4], "C": [1, 3, 10]}
        add(
            f"unkernel, {kernel}",
            GridSearchCV(TreeSVC(kernel), grid, scoring=scoring, cv=5),
            forest,
            test_forest,
        )
    if task == "trec":
        grams = BAGS["words and pairs of words"]
        trees_and_bags = Forest(trees, vectors=grams.fit_transform(trees).astype(float))
        test_trees_and_bags = Forest(tests, vectors=grams.transform(tests).astype(float))
        search = GridSearchCV(TreeSVC("sst_bow", decay=0.2), {"C": [1, 3, 10]}, scoring=scoring, cv=5)
        add("unkernel, sst_bow, and words and pairs of words", search, trees_and_bags, test_trees_and_bags)
    for bag_name, bag in BAGS.items():
        chain = make_pipeline(bag, LinearSVC(max_iter=5000, random_state=0))
        grid = {"linearsvc__C": [0.03, 0.1, 0.3, 1, 3]}
        add(f"LinearSVC, {bag_name}", GridSearchCV(chain, grid, scoring=scoring, cv=5), trees, tests)


# The size of a sample, and j.
MILLION = {f"million, samples of {size:,}, j = {j:g}": (size, j) for size in (1000, 5000) for j in (1.0, 4.0)}


def measure_million(report: Report, name: str) -> None:
    size, j = MILLION[name]
    options = {
        "decay": DECAY, "C": C, "solver": "sampled", "sample_size": size, "imbalance": j,
        "random_state": 0, "n_jobs": -1, "max_iter": 300,
    }  # fmt: skip
    files = find_file("boundaries-all", "train"), find_file("boundaries-all", "test")
    result = trained(*files, None, options)
    report.add(name, "unkernel", "reading", "CPU s", result["reading"])
    ended = "" if result["converged"] else "not converged"
    report.add(name, "unkernel", "training", "CPU s", result["cpu"], note=ended)
    report.add(name, "unkernel", "training", "wall s", result["wall"])
    for figure, key in (("cuts", "rounds"), ("support trees", "support")):
        report.add(name, "unkernel", figure, "number", result[key])
    report.add(name, "unkernel", "peak memory", "MB", result["peak_mb"])
    for figure, key in (("F1", "f1"), ("precision", "precision"), ("recall", "recall")):
        report.add(name, "unkernel", figure, "%", 100 * result[key])


def measure(report: Report, tasks: Sequence[str]) -> None:
    for name in tasks:
        try:
            if name in IMBALANCED:
                measure_imbalance(report, name)
            elif name in WORDS:
                measure_words(report, name)
            else:
                measure_million(report, name)
        except (FileNotFoundError, LeftOutError) as reason:
            report.leave_out(name, reason)


if __name__ == "__main__":
    quick = ["imbalance, TREC, ABBR, exact", "imbalance, TREC, ENTY, exact"]
    main(measure, [*IMBALANCED, *WORDS, *MILLION], quick=quick)
