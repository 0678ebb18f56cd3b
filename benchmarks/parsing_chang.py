"""The parsers of Table 10 of Chang et al. (2010), for paper_chang2010.py: linear, of degree 2, and LIBSVM's.

As in the paper, the templates are the paper's Table 8, labels are predicted separately from moves, and each
tag of the next word has its own classifier. LIBSVM (scikit-learn's copy of it) learns from the same rows as
ours, with the same kernel (x'z + 1)^2. Its times are for its usual scheme, one class against another. Its
accuracy is for one class against the rest, compiled by unkernel, because a parser needs one score per class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import SVC

import unkernel
from harness import Report, timed
from parsing_tools import add_speed, evaluate_in_turns
from unkernel.models import KernelModel
from unkernel.models.decision import Decision
from unkernel.models.kernel import Kernel
from unkernel.parsing import ArcEagerParser

COSTS = {1: 0.5, 2: 0.05}  # parameters of the paper
PREDICTED_ROWS = 100  # limit of rows per part, because LIBSVM is slow
ROUNDS, TURNS = 5, 15  # of engines, and of parsers whose times are compared
SCORES = {"UAS": "uas_no_punct", "LAS": "las_no_punct"}  # the paper does not count punctuation


class ClockedParser(ArcEagerParser):  # type: ignore[misc]
    """A parser that measures the time of its learners; most of the remaining time of ``fit`` is compiling."""

    def _new_row_learner(self, **options: Any) -> Any:
        learner = super()._new_row_learner(**options)
        train = learner.fit_reporting

        def fit_reporting(*arguments: Any) -> Any:
            fitted, spent, _ = timed(lambda: train(*arguments))
            self.learning_ = getattr(self, "learning_", 0.0) + spent
            return fitted

        learner.fit_reporting = fit_reporting
        return learner


def fit_as_in_the_paper(report: Report, task: str, bank: Any, answered: Any) -> ClockedParser:
    """Measure the linear parser and the parser of degree 2, and return the parser of degree 2."""
    parsers: dict[str, ClockedParser] = {}
    for degree, C in COSTS.items():
        parser = ClockedParser(degree, learner="svm", templates="chang", split="both", C=C, n_jobs=1)
        _, cpu, _ = timed(lambda parser=parser: parser.fit(bank))
        name = f"unkernel, degree {degree}"
        report.add(task, name, "training", "CPU s", cpu)
        report.add(task, name, "of it learners", "CPU s", parser.learning_)
        parsers[name] = parser
    for name, results in evaluate_in_turns(parsers, answered, 3 if report.quick else TURNS).items():
        for figure, key in SCORES.items():
            report.add(task, name, figure, "%", getattr(results[0], key))
        report.add(task, name, "tables", "MB", parsers[name].nbytes / 1e6)
        add_speed(report, task, name, results)
    return parsers["unkernel, degree 2"]


# --- LIBSVM --------------------------------------------------------------------------------------------

Part = tuple[Any, np.ndarray, list[int]]


def parts(rows: Any, classes: list[list[int]], columns: int) -> Iterator[Part | None]:
    """Yield the rows, class codes and classes of each part, or None for a part of a single class."""
    offsets, columns_of_rows = np.asarray(rows["offsets"]), np.asarray(rows["columns"])
    X = sparse.csr_matrix(
        (np.ones(len(columns_of_rows)), columns_of_rows, offsets), shape=(len(offsets) - 1, columns)
    )
    for part, part_classes in enumerate(classes):
        selection = np.flatnonzero(np.asarray(rows["parts"]) == part)
        y = np.asarray(rows["classes"])[selection]
        yield (X[selection], y, part_classes) if len(np.unique(y)) > 1 else None


def compare_with_libsvm(report: Report, task: str, bank: Any, answered: Any) -> None:
    """Measure machines of degree 2 on the decisions of a few sentences, trained by LIBSVM and by unkernel."""
    ours = fit_as_in_the_paper(report, f"{task}, parsers", bank, answered)
    spec = ours.model_.spec
    moves, arcs = spec.rows(bank._text)
    actual = [
        *parts(moves, spec.move_classes, spec.move_columns),
        *parts(arcs, spec.arc_classes, spec.arc_columns),
    ]
    classifiers = [*ours.move_classifiers_, *ours.label_classifiers_]
    rivals, cpu, _ = timed(lambda: [None if part is None else svc().fit(*part[:2]) for part in actual])
    compiled, rest_cpu, _ = timed(lambda: [part and combine_machines(part) for part in actual])
    compiled = [
        theirs or our_classifier for theirs, our_classifier in zip(compiled, classifiers, strict=True)
    ]
    moves_end = len(spec.move_classes)
    parser = replace(
        ours.model_, move_classifiers_=compiled[:moves_end], label_classifiers_=compiled[moves_end:]
    )
    theirs, mine = decision_times(actual, rivals, classifiers)
    decisions = f"{sum(part[0].shape[0] for part in actual if part):,} decisions in {len(actual)} parts"
    rest = "SVC, one against the rest, compiled by us"
    report.add(task, "unkernel", "training", "CPU s", ours.learning_, note=decisions)
    report.add(task, "unkernel", "decision", "CPU µs", mine)
    report.add(task, "SVC, one against one", "training", "CPU s", cpu)
    report.add(task, "SVC, one against one", "decision", "CPU µs", theirs)
    report.add(task, rest, "training", "CPU s", rest_cpu, note="compiling included")
    for contender, judged in (("unkernel", ours), (rest, parser)):
        result = judged.evaluate(answered, n_jobs=1)
        for figure, key in SCORES.items():
            report.add(task, contender, figure, "%", getattr(result, key))


def svc() -> SVC:
    return SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=COSTS[2], cache_size=500)


def combine_machines(part: Part) -> Any:
    """Return LIBSVM's machines, one per class, as one model whose support vectors are all training rows."""
    X, y, part_classes = part
    scored_classes = (
        [1] if len(part_classes) == 2 else range(len(part_classes))
    )  # of two classes, only the second has a score
    coefficients, intercepts = np.zeros((X.shape[0], len(scored_classes))), np.zeros(len(scored_classes))
    for score, place in enumerate(scored_classes):
        if not (y == place).any():  # a label that is in the trees and yet on no row
            intercepts[score] = -1.0
            continue
        machine = svc().fit(X, np.where(y == place, 1, -1))
        coefficients[machine.support_, score] = machine.dual_coef_.toarray().ravel()
        intercepts[score] = machine.intercept_[0]
    is_support = coefficients.any(axis=1)
    model = KernelModel(
        kernel=Kernel("polynomial", degree=2, gamma=1.0, coef0=1.0),
        vectors=X[is_support],
        coefficients=coefficients[is_support],
        intercept=intercepts,
        decision=Decision("binary" if len(part_classes) == 2 else "one_vs_rest", np.array(part_classes)),
        n_features=X.shape[1],
        fixed_width=True,
        origin={"learner": "LIBSVM"},
    )
    return unkernel.compile(model, engine="split", n_jobs=1)


def decision_times(
    parts_of_rows: list[Part | None], rivals: list[Any], classifiers: list[Any]
) -> tuple[float, float]:
    """Return microseconds per decision of both models; parts are weighted by their numbers of decisions."""
    theirs = mine = rows = 0.0
    for part, rival, classifier in zip(parts_of_rows, rivals, classifiers, strict=True):
        if part is None:
            continue
        X = part[0]
        sample = X[:: max(1, X.shape[0] // PREDICTED_ROWS)]
        spent = timed(lambda rival=rival, sample=sample: rival.predict(sample)).cpu
        theirs += spent * X.shape[0] / sample.shape[0]
        mine += min(
            timed(lambda classifier=classifier, X=X: classifier.score_csr(X, 1)).cpu for _ in range(ROUNDS)
        )
        rows += X.shape[0]
    return 1e6 * theirs / rows, 1e6 * mine / rows
