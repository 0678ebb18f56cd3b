"""Tables 2 to 4 of Yoshinaga & Kitsuregawa (2009), redone: Japanese dependencies with degrees 1 to 3.

Their SVM-KE is ``engine="expanded"``, SVM-HKE ``"pruned"``, PKI ``"inverted"``, and fstrie a prefix trie;
ours besides is ``"split"``, and what ``"auto"`` chooses. Engines of one degree answer for one and the same
model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import unkernel
from harness import Report, timed
from parsing_tools import add_speed, corpus, evaluated
from unkernel import PolySVC
from unkernel.models import KernelModel
from unkernel.parsing import BunsetsuParser

PRUNED = (0.001, 0.003)  # what is dropped in the paper
SLOW_SENTENCES = 200  # answered by engines that sum over support vectors
TRIE_NODES = 100_000
SAMPLE_ROWS = 20_000


def japanese(
    report: Report,
    task: str,
    dataset: str,
    degrees: Sequence[int],
    *,
    part: str = "dev",
    sentences: int | None = None,
) -> None:
    train, answered = corpus(dataset, "train", sentences), corpus(dataset, part)
    fitted = [fit(report, task, train, answered, degree) for degree in degrees]
    for parser in fitted:
        if parser.degree > 1:  # a linear model is one table, whatever it is asked for
            compare_engines(report, f"{task}, engines of degree {parser.degree}", parser, train, answered)


def log_linear(report: Report, task: str, dataset: str, *, sentences: int | None = None) -> None:
    """The l1-LLM, which takes long."""
    fit(report, task, corpus(dataset, "train", sentences), corpus(dataset, "dev"), 2, learner="logistic")


def fit(
    report: Report, task: str, train: Any, answered: Any, degree: int, learner: str = "svm"
) -> BunsetsuParser:
    """The parser as it comes."""
    parser = BunsetsuParser(degree, learner=learner, n_jobs=1)
    _, cpu, _ = timed(lambda: parser.fit(train))
    name = f"unkernel, {'SVM' if learner == 'svm' else 'l1-LLM'}, degree {degree}"
    results = evaluated({"": parser}, answered, 3 if report.quick else 5)[""]
    add_accuracy(report, task, name, results[0])
    add_speed(report, task, name, results)
    note = f"C {parser._estimator().C:g}, {parser.n_decisions_:,} decisions"
    report.add(task, name, "training", "CPU s", cpu, note=note)
    report.add(task, name, "tables", "MB", parser.classifier_.nbytes / 1e6, note=parser.classifier_.engine)
    model = parser.classifier_.model
    if isinstance(model, KernelModel):
        report.add(task, name, "support vectors", "number", model.n_support)
    else:
        report.add(task, name, "conjunctions", "number", model.n_conjunctions)
    return parser


def add_accuracy(report: Report, task: str, name: str, result: Any) -> None:
    report.add(task, name, "dependencies", "%", result.dependency_accuracy)
    report.add(task, name, "sentences", "%", result.sentence_accuracy)


def compare_engines(report: Report, task: str, parser: BunsetsuParser, train: Any, answered: Any) -> None:
    rows, y = parser.decisions(train)
    met = parser.decisions(parser.parse(train))[0]
    model = support_vectors(parser, rows, y)
    shared = {
        "sample": rows[:: max(1, rows.shape[0] // SAMPLE_ROWS)],
        "rare": parser.rare,
        "memory": "4G",
        "n_jobs": 1,
    }
    trie = {"trie": met, "trie_nodes": TRIE_NODES}
    contenders: dict[str, dict[str, Any]] = {
        "split": {"engine": "split"},
        f"split, trie of {TRIE_NODES:,} nodes": {"engine": "split"} | trie,
        "expanded (KE)": {"engine": "expanded"},
        f"expanded, trie of {TRIE_NODES:,} nodes": {"engine": "expanded"} | trie,
        **{f"pruned at {value} (HKE)": {"engine": "pruned", "threshold": value} for value in PRUNED},
        f"inverted (PKI), {SLOW_SENTENCES} sentences": {"engine": "inverted"},
    }
    exact = None
    for kind, options in contenders.items():
        name = f"unkernel, {kind}"
        try:
            fast, cpu, _ = timed(lambda options=options: unkernel.compile(model, **shared, **options))
        except (MemoryError, ValueError) as error:
            report.leave_out(f"{task}, {name}", error)
            continue
        answering = replace(parser.model_, classifier_=fast)
        slow = options["engine"] == "inverted"
        asked = answered[:SLOW_SENTENCES] if slow else answered
        results = evaluated({"": answering}, asked, 1 if slow else 3 if report.quick else 5)[""]
        heads = answering.parse(asked).heads
        exact = heads if exact is None else exact
        add_speed(report, task, name, results)
        report.add(task, name, "same heads", "%", 100 * float((heads == exact[: len(heads)]).mean()))
        add_accuracy(report, task, name, results[0])
        report.add(task, name, "compiling", "CPU s", cpu)
        report.add(task, name, "tables", "MB", fast.nbytes / 1e6)
        if not slow:
            report.add(
                task, name, "conjunctions", "number", sum(fast.tables.heaviest_conjunctions(1)["counts"])
            )


def support_vectors(parser: BunsetsuParser, rows: Any, y: Any) -> KernelModel:
    """The parser's model, or one of the same problem, where it is one of weights already."""
    model = parser.classifier_.model
    if isinstance(model, KernelModel):
        return model
    C = parser._estimator().C
    clf = PolySVC(parser.degree, C=C, gamma=1.0, tol=parser.tol, storage="split", n_jobs=1, random_state=0)
    return clf.fit(rows, y).to_model()
