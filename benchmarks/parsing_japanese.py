"""Japanese dependencies: accuracy, training and speed of the default parser, of degrees 1 to 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness import Report, timed
from parsing_tools import add_speed, corpus, evaluate_in_turns
from unkernel.models import KernelModel
from unkernel.parsing import BunsetsuParser


def japanese(
    report: Report,
    task: str,
    dataset: str,
    degrees: Sequence[int],
    *,
    part: str = "dev",
    sentences: int | None = None,
    learner: str = "svm",
) -> None:
    """Measure SVMs or, with ``learner="logistic"``, the l1-LLM of Yoshinaga & Kitsuregawa (2009)."""
    train, answered = corpus(dataset, "train", sentences), corpus(dataset, part)
    parsers: dict[str, Any] = {}
    for degree in degrees:
        parser = BunsetsuParser(degree, learner=learner, n_jobs=1)
        _, cpu, _ = timed(lambda parser=parser: parser.fit(train))
        name = f"unkernel, {'SVM' if learner == 'svm' else 'l1-LLM'}, degree {degree}"
        note = f"C {parser._estimator().C:g}, {parser.n_decisions_:,} decisions"
        report.add(task, name, "training", "CPU s", cpu, note=note)
        parsers[name] = parser
    for name, results in evaluate_in_turns(parsers, answered, 3 if report.quick else 5).items():
        report.add(task, name, "dependencies", "%", results[0].dependency_accuracy)
        report.add(task, name, "sentences", "%", results[0].sentence_accuracy)
        add_speed(report, task, name, results)
        add_size(report, task, name, parsers[name].classifier_)


def add_size(report: Report, task: str, name: str, classifier: Any) -> None:
    report.add(task, name, "tables", "MB", classifier.nbytes / 1e6, note=classifier.engine)
    if isinstance(classifier.model, KernelModel):
        report.add(task, name, "support vectors", "number", classifier.model.n_support)
    else:
        report.add(task, name, "conjunctions", "number", classifier.model.n_conjunctions)
