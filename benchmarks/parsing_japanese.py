"""Tables 2 to 4 of Yoshinaga & Kitsuregawa (2009), redone: Japanese dependencies with degrees 1 to 3.

Their SVM-KE is ``engine="expanded"``, SVM-HKE ``"pruned"``, PKI ``"inverted"``, and fstrie a prefix trie;
ours besides is ``"split"``, and what ``"auto"`` chooses. Engines of one degree
answer for one and the same model.
"""

from __future__ import annotations

import argparse
from typing import Any

import unkernel
from parsing_tools import Table, answered_part, best_result, corpus, cpu_timed, megabytes
from unkernel import PolySVC
from unkernel.models import KernelModel
from unkernel.parsing import BunsetsuParser

PRUNED = (0.001, 0.003)  # what is dropped in the paper
SLOW_SENTENCES = 200  # answered by engines that sum over support vectors
TRIE_NODES = 100_000
SAMPLE_ROWS = 20_000
MODEL_HEADINGS = (
    *("model", "C", "decisions", "support vectors", "conjunctions", "dependencies", "sentences"),
    *("training CPU s", "engine", "MB", "ms/sentence", "sentences/s"),
)


def japanese(arguments: argparse.Namespace) -> None:
    train = corpus(arguments.corpus, "train", arguments.sentences)
    answered = corpus(arguments.corpus, answered_part(arguments))
    title = (
        f"{arguments.corpus}, {len(train):,} sentences to learn from, scored on {answered_part(arguments)}"
    )
    models = Table(f"Japanese, {title}", arguments, *MODEL_HEADINGS)
    fitted = [fit(models, train, answered, degree) for degree in arguments.degrees]
    engines = Table(
        f"Engines, {title}",
        arguments,
        *("degree", "engine", "conjunctions", "CPU s to compile", "MB", "ms/sentence"),
        *("same heads", "dependencies", "sentences"),
    )
    for parser in fitted:
        if parser.degree > 1:  # a linear model is one table, whatever it is asked for
            compare_engines(engines, parser, train, answered)
    if not arguments.no_logistic:  # the last, as it takes long
        fit(Table(f"l1-LLM, {title}", arguments, *MODEL_HEADINGS), train, answered, 2, learner="logistic")


def fit(table: Table, train: Any, answered: Any, degree: int, learner: str = "svm") -> BunsetsuParser:
    """The parser as it comes."""
    parser = BunsetsuParser(degree, learner=learner, n_jobs=1)
    _, cpu = cpu_timed(lambda: parser.fit(train))
    found, model = best_result(parser, answered), parser.classifier_.model
    is_kernel = isinstance(model, KernelModel)
    table.add(
        f"{'SVM' if learner == 'svm' else 'l1-LLM'}, degree {degree}",
        f"{parser._estimator().C:g}",
        f"{parser.n_decisions_:,}",
        f"{model.n_support:,}" if is_kernel else "",
        "" if is_kernel else f"{model.n_conjunctions:,}",
        f"{found.dependency_accuracy:.2f}",
        f"{found.sentence_accuracy:.2f}",
        f"{cpu:.1f}",
        parser.classifier_.engine,
        megabytes(parser.classifier_.nbytes),
        f"{1e3 / found.sentences_per_second:.4f}",
        f"{found.sentences_per_second:,.0f}",
    )
    return parser


def compare_engines(table: Table, parser: BunsetsuParser, train: Any, answered: Any) -> None:
    rows, y = parser.decisions(train)
    met = parser.decisions(parser.parse(train))[0]
    model = support_vectors(parser, rows, y)
    table.add(parser.degree, f"(the model: {model.n_support:,} support vectors)")
    shared = {
        "sample": rows[:: max(1, rows.shape[0] // SAMPLE_ROWS)],
        "rare": parser.rare,
        "memory": "4G",
        "n_jobs": 1,
    }
    exact = None
    contenders: dict[str, dict[str, Any]] = {
        "split (ours)": {"engine": "split"},
        f"split, trie of {TRIE_NODES:,} nodes": {"engine": "split", "trie": met, "trie_nodes": TRIE_NODES},
        "expanded (KE)": {"engine": "expanded"},
        f"expanded, trie of {TRIE_NODES:,} nodes": {
            "engine": "expanded",
            "trie": met,
            "trie_nodes": TRIE_NODES,
        },
        **{f"pruned at {value} (HKE)": {"engine": "pruned", "threshold": value} for value in PRUNED},
        f"inverted (PKI), {SLOW_SENTENCES} sentences": {"engine": "inverted"},
    }
    for name, options in contenders.items():
        try:
            fast, cpu = cpu_timed(lambda options=options: unkernel.compile(model, **shared, **options))
        except (MemoryError, ValueError) as error:
            table.add(parser.degree, name, f"left out: {error}")
            continue
        parser.classifier_ = fast
        asked = answered[:SLOW_SENTENCES] if options["engine"] == "inverted" else answered
        found = best_result(parser, asked, 1 if options["engine"] == "inverted" else 5)
        heads = parser.parse(asked).heads
        exact = heads if exact is None else exact
        table.add(
            parser.degree,
            name,
            conjunctions(fast),
            f"{cpu:.1f}",
            megabytes(fast.nbytes),
            f"{1e3 / found.sentences_per_second:.4f}",
            f"{100 * (heads == exact[: len(heads)]).mean():.3f} %",
            f"{found.dependency_accuracy:.2f}",
            f"{found.sentence_accuracy:.2f}",
        )


def conjunctions(fast: Any) -> str:
    """How many have a weight; engines of support vectors have none."""
    return "" if fast.engine == "inverted" else f"{sum(fast.tables.listing(1)['counts']):,}"


def support_vectors(parser: BunsetsuParser, rows: Any, y: Any) -> KernelModel:
    """The parser's model, or one of the same problem, where it is one of weights already."""
    model = parser.classifier_.model
    if isinstance(model, KernelModel):
        return model
    C = parser._estimator().C
    clf = PolySVC(parser.degree, C=C, gamma=1.0, tol=parser.tol, storage="split", n_jobs=1, random_state=0)
    return clf.fit(rows, y).to_model()
