"""Table 10 of Chang et al. (2010), redone: linear against conjunctions of two features, and LIBSVM.

As there: the templates of Table 8, labels predicted apart from moves, and a classifier for each tag of the
next word. LIBSVM (scikit-learn's copy of it) learns from the very rows that ours learns from, with the same
kernel (x'z + 1)^2: one class against another, as it does, for its own times; and one class against the rest,
compiled by us, for its accuracy, as a parser needs one score per class.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import SVC

import unkernel
from parsing_tools import (
    ROUNDS,
    Table,
    answered_part,
    best_result,
    best_results,
    corpus,
    cpu_timed,
    megabytes,
)
from unkernel.models import KernelModel
from unkernel.models.decision import Decision
from unkernel.models.kernel import Kernel
from unkernel.parsing import ArcEagerParser

TREEBANK = "en_ewt"
COSTS = {1: 0.5, 2: 0.05, 3: 0.005}  # those of the paper; it has no degree 3
PREDICTED_ROWS = 100  # of each part: LIBSVM takes long
TURNS = 15  # times are compared here
HEADINGS = (
    *("classifier", "UAS, no punctuation", "LAS, no punctuation", "UAS", "LAS"),
    *("CPU s: learners", "all of fit", "tables MB", "words/s", "parsing time, linear = 1"),
)


class ClockedParser(ArcEagerParser):  # type: ignore[misc]
    """Knows which part of the time of ``fit`` the learners took; most of the rest is compiling."""

    def _row_learner(self, **others: Any) -> Any:
        learner = super()._row_learner(**others)
        train = learner.fit_watched

        def fit_watched(*given: Any) -> Any:
            fitted, spent = cpu_timed(lambda: train(*given))
            self.learning_ = getattr(self, "learning_", 0.0) + spent
            return fitted

        learner.fit_watched = fit_watched
        return learner


def chang(arguments: argparse.Namespace) -> None:
    answered = corpus(TREEBANK, answered_part(arguments))
    bank = corpus(TREEBANK, "train", arguments.sentences)
    if "paper" in arguments.tables:
        as_in_the_paper(arguments, bank, answered, (1, 2), "Table 10 of Chang et al.")
    if "libsvm" in arguments.tables:
        few = bank[: arguments.libsvm]
        ours = as_in_the_paper(arguments, few, answered, (1, 3, 2), "The same")
        beside_libsvm(arguments, ours, few, answered)
    if "online" in arguments.tables:
        online(arguments, bank, answered)


def add_all(table: Table, fitted: list[tuple[str, Any, float]], answered: Any) -> None:
    """A row for each parser: its name, it, and the CPU seconds of its fit. The first is the linear one."""
    results = best_results([parser for _, parser, _ in fitted], answered, TURNS)
    for (name, parser, cpu), found in zip(fitted, results, strict=True):
        table.add(
            name,
            *(f"{score:.2f}" for score in (found.uas_no_punct, found.las_no_punct, found.uas, found.las)),
            f"{parser.learning_:.1f}" if isinstance(parser, ClockedParser) else "",
            f"{cpu:.1f}",
            megabytes(parser.nbytes),
            f"{found.words_per_second:,.0f}",
            f"{found.seconds / results[0].seconds:.2f}",
        )


def as_in_the_paper(
    arguments: argparse.Namespace, bank: Any, answered: Any, degrees: tuple[int, ...], title: str
) -> ClockedParser:
    """Gives the parser of the last degree."""
    table = Table(f"{title}: {len(bank):,} sentences of EWT to learn from", arguments, *HEADINGS)
    fitted = []
    for degree in degrees:
        parser = ClockedParser(degree, learner="svm", templates="chang", split="both", C=COSTS[degree])
        _, cpu = cpu_timed(lambda parser=parser: parser.fit(bank))
        fitted.append((f"degree {degree}, C {COSTS[degree]}", parser, cpu))
    add_all(table, fitted, answered)
    return parser


def online(arguments: argparse.Namespace, bank: Any, answered: Any) -> None:
    table = Table("The online learner with its own templates, last epoch", arguments, *HEADINGS)
    fitted = []
    for degree in arguments.degrees:
        parser, cpu = cpu_timed(lambda degree=degree: ArcEagerParser(degree).fit(bank))
        fitted.append((f"degree {degree}", parser, cpu))
    add_all(table, fitted, answered)


# --- LIBSVM --------------------------------------------------------------------------------------------

Part = tuple[Any, np.ndarray, list[int]]


def parts(rows: Any, classes: list[list[int]], columns: int) -> Iterator[Part | None]:
    """Rows, their places among the classes, and the classes; None where there is nothing to decide."""
    offsets, found = np.asarray(rows["offsets"]), np.asarray(rows["columns"])
    X = sparse.csr_matrix((np.ones(len(found)), found, offsets), shape=(len(offsets) - 1, columns))
    for part, own in enumerate(classes):
        chosen = np.flatnonzero(np.asarray(rows["parts"]) == part)
        y = np.asarray(rows["classes"])[chosen]
        yield (X[chosen], y, own) if len(np.unique(y)) > 1 else None


def beside_libsvm(arguments: argparse.Namespace, ours: ClockedParser, bank: Any, answered: Any) -> None:
    frame = ours._frame
    moves, arcs = frame.rows(bank._text)
    found = [
        *parts(moves, frame.move_classes, frame.move_columns),
        *parts(arcs, frame.arc_classes, frame.arc_columns),
    ]
    classifiers = [*ours.move_classifiers_, *ours.label_classifiers_]
    rivals, cpu = cpu_timed(lambda: [None if part is None else svc().fit(*part[:2]) for part in found])
    compiled, rest_cpu = cpu_timed(lambda: [part and against_rest(part) for part in found])
    compiled = [theirs or own for theirs, own in zip(compiled, classifiers, strict=True)]
    parser = copy.copy(ours)
    parser.move_classifiers_ = compiled[: len(frame.move_classes)]
    parser.label_classifiers_ = compiled[len(frame.move_classes) :]
    result = best_result(parser, answered)
    theirs, mine = decision_times(found, rivals, classifiers)
    table = Table(
        f"LIBSVM, kernel (x'z + 1)^2, C {COSTS[2]}: {len(bank):,} sentences to learn from, "
        f"{sum(part[0].shape[0] for part in found if part):,} decisions in {len(found)} parts",
        arguments,
        *(
            "classifier",
            "UAS, no punctuation",
            "LAS, no punctuation",
            "training CPU s",
            "µs a decision",
            "ratio",
        ),
    )
    table.add("LIBSVM, one against one, and its own prediction", "", "", f"{cpu:.1f}", f"{theirs:.1f}", 1)
    accuracy = f"{result.uas_no_punct:.2f}", f"{result.las_no_punct:.2f}"
    table.add("LIBSVM, one against the rest, compiled by us (CPU s of both)", *accuracy, f"{rest_cpu:.1f}")
    result = best_result(ours, answered, 1)
    accuracy = f"{result.uas_no_punct:.2f}", f"{result.las_no_punct:.2f}"
    table.add("ours", *accuracy, f"{ours.learning_:.1f}", f"{mine:.3f}", f"{theirs / mine:,.0f}")


def svc() -> SVC:
    return SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=COSTS[2], cache_size=500)


def against_rest(part: Part) -> Any:
    """LIBSVM's machines, one per class, as one model: all rows are candidates for its support vectors."""
    X, y, own = part
    wanted = [1] if len(own) == 2 else range(len(own))  # two classes have one score, the second's
    coefficients, intercepts = np.zeros((X.shape[0], len(wanted))), np.zeros(len(wanted))
    for score, place in enumerate(wanted):
        if not (y == place).any():  # a label that is in the trees and yet on no row
            intercepts[score] = -1.0
            continue
        machine = svc().fit(X, np.where(y == place, 1, -1))
        coefficients[machine.support_, score] = machine.dual_coef_.toarray().ravel()
        intercepts[score] = machine.intercept_[0]
    kept = coefficients.any(axis=1)
    model = KernelModel(
        kernel=Kernel("polynomial", degree=2, gamma=1.0, coef0=1.0),
        vectors=X[kept],
        coefficients=coefficients[kept],
        intercept=intercepts,
        decision=Decision("binary" if len(own) == 2 else "one_vs_rest", np.array(own)),
        n_features=X.shape[1],
        fixed_width=True,
        origin={"learner": "LIBSVM"},
    )
    return unkernel.compile(model, engine="split", n_jobs=1)


def decision_times(
    found: list[Part | None], rivals: list[Any], classifiers: list[Any]
) -> tuple[float, float]:
    """Microseconds per decision of both, each part weighted by how often it decides."""
    theirs = mine = rows = 0.0
    for part, rival, classifier in zip(found, rivals, classifiers, strict=True):
        if part is None:
            continue
        X = part[0]
        some = X[:: max(1, X.shape[0] // PREDICTED_ROWS)]
        _, spent = cpu_timed(lambda rival=rival, some=some: rival.predict(some))
        theirs += spent * X.shape[0] / some.shape[0]
        mine += min(
            cpu_timed(lambda classifier=classifier, X=X: classifier.score_csr(X, 1))[1] for _ in range(ROUNDS)
        )
        rows += X.shape[0]
    return 1e6 * theirs / rows, 1e6 * mine / rows
