"""A look at what unkernel does, in half a minute: ``python examples/demo.py``.

Two tables with PolySVC beside scikit-learn's ways to the same kind of classifier: one on small dense
images of digits, one on sparse binary rows, which is what text and parsing have. Then sparse models of the
latter, a scikit-learn SVC before and after ``compile``, linear SVMs and a ranking, and tree kernels on the
functions of Python's own standard library. Everything in them is measured while you wait.
"""

from __future__ import annotations

import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from scipy import sparse
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC, LinearSVC

import classify_code
import few_weights
import parse_sentences
from unkernel.cutplane import CuttingPlaneSVC, RankSVM
from unkernel.engines import Candidate, CompiledClassifier, compile, load
from unkernel.poly import PolySVC

_LATENCY_CALLS = 200
_LONGEST_TRAINING = 15.0  # seconds; a contestant that would need more is left out, and said to be
_KERNEL: dict[str, Any] = {"C": 1.0, "gamma": 1.0, "coef0": 1.0}
_BINARY_GAMMA = 0.1
_LINEAR: dict[str, Any] = {
    "C": 0.1,
    "max_iter": 10_000,
}  # scikit-learn's 1,000 do not suffice it on the digits
_LINEAR_C = 0.1
_LINEAR_GAP = 1e-3
# Of LIBLINEAR, from loose to strict: the first that reaches our gap is the one that is shown.
_LIBLINEAR_TOLERANCES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)


@dataclass(frozen=True)
class Rows:
    """Rows to train on and rows to be tested on."""

    train: Any
    train_labels: NDArray[Any]
    test: Any
    test_labels: NDArray[Any]

    @property
    def n_features(self) -> int:
        return int(self.train.shape[1])


@dataclass(frozen=True)
class Contestant:
    """A classifier to be measured; `seconds_expected` guesses from results before it how long it takes."""

    name: str
    make: Callable[[], Any]
    seconds_expected: Callable[[dict[str, Measured]], float] = lambda before: 0.0


@dataclass(frozen=True)
class Measured:
    accuracy: float
    training_seconds: float
    latency_seconds: float
    rows_per_second: float
    pickle_bytes: int
    file_bytes: int | None


def main() -> None:
    console = Console()
    for title, rows, contestants, remarks in _tables():
        results = _measure_all(rows, contestants, console)
        console.print(_table(title, contestants, results))
        for remark in remarks:
            console.print(remark, style="dim", highlight=False)
        console.print()
    console.print(
        f"PolySVC uses one thread. 'one row' is the median of {_LATENCY_CALLS} calls of predict with a "
        "single row, 'rows/s' the best of three calls with all test rows. PolySVC answers as it would in "
        "production: saved to a .uk file and loaded from it.\n"
        "The numbers are of this machine and this run.\n",
        highlight=False,
    )
    few_weights.show(console, binary_rows(), _BINARY_GAMMA)
    console.print()
    _show_compiled(console)
    console.print()
    _show_linear(console)
    console.print()
    classify_code.show(console)
    console.print()
    parse_sentences.show(console)


def _tables() -> Iterator[tuple[str, Rows, list[Contestant], list[str]]]:
    yield _digits_table()
    yield _binary_table()


def _digits_table() -> tuple[str, Rows, list[Contestant], list[str]]:
    rows = digits()
    contestants = [
        Contestant("PolySVC, degree 2", lambda: _poly(2)),
        Contestant("SVC, degree 2", lambda: SVC(kernel="poly", degree=2, **_KERNEL)),
        Contestant(_expanded_name(2), lambda: _expanded(2)),
        Contestant("PolySVC, degree 3", lambda: _poly(3)),
        Contestant("SVC, degree 3", lambda: SVC(kernel="poly", degree=3, **_KERNEL)),
        Contestant(
            _expanded_name(3),
            lambda: _expanded(3),
            lambda before: before[_expanded_name(2)].training_seconds * rows.n_features / 3,
        ),
    ]
    title = f"digits: {_shape(rows)}, 10 classes, dense"
    remarks = [
        "PolySVC and SVC have the same kernel, (<x, z> + 1)^degree, and the same C; PolySVC trains one "
        "class against the rest, SVC each pair of classes. LinearSVC has the squared hinge loss and a C "
        "of its own, and max_iter raised to 10,000 so that it converges.",
        "So few rows are the home ground of kernels: there are few support vectors to compare with.",
    ]
    return title, rows, contestants, remarks


def _binary_table() -> tuple[str, Rows, list[Contestant], list[str]]:
    rows = binary_rows()
    kernel = {**_KERNEL, "gamma": _BINARY_GAMMA}
    contestants = [
        Contestant("PolySVC, degree 2", lambda: PolySVC(degree=2, random_state=0, **kernel)),
        Contestant("SVC, degree 2", lambda: SVC(kernel="poly", degree=2, **kernel)),
        Contestant(_expanded_name(2), lambda: _expanded(2, interaction_only=True)),
    ]
    title = f"conjunctions: {_shape(rows)}, 2 classes, sparse and binary"
    remarks = [
        "Generated rows whose label depends on pairs of features. Kernel (0.1 <x, z> + 1)^2, C as above; "
        "the time of SVC grows with the square of the rows, and its answers with the support vectors."
    ]
    return title, rows, contestants, remarks


def _show_compiled(console: Console) -> None:
    """An SVC that scikit-learn trained, and what compile makes of it."""
    rows = binary_rows()
    svc = SVC(kernel="poly", degree=3, **{**_KERNEL, "gamma": 0.1}).fit(rows.train, rows.train_labels)
    began = time.perf_counter()
    fast = compile(svc, sample=rows.test)
    assert isinstance(fast, CompiledClassifier)
    spent = time.perf_counter() - began
    table = Table(
        title=f"compile: an SVC of degree 3 with {svc.n_support_.sum():,} support vectors",
        title_justify="left", title_style="bold", box=SIMPLE_HEAD, show_edge=False,
    )  # fmt: skip
    table.padding = (0, 1, 0, 0)
    for heading in ("", "one row", "rows/s, one core", "tables"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    table.add_row(
        "scikit-learn", f"{1e6 * _latency(svc, rows.test):,.2f} µs", f"{_throughput(svc, rows.test):,.0f}", ""
    )
    one_row = f"{1e6 * _one_row(fast, rows.test):,.2f} µs"
    for candidate in _fastest_of_each(fast):
        cells = (f"{1e6 / candidate.microseconds:,.0f}", decimal(candidate.nbytes))
        if candidate.chosen:
            table.add_row(f"{candidate.engine} (chosen)", one_row, *cells, style="bold cyan")
        else:
            table.add_row(candidate.engine, "", *cells)
    console.print(table)
    same = int((fast.predict(rows.test) == svc.predict(rows.test)).sum())
    console.print(
        f"Compiled in {spent:.2f} s, with {len(fast.candidates)} layouts of them built and measured; the "
        "fastest is kept. "
        f"{same:,} of {rows.test.shape[0]:,} test labels are the SVC's own. 'one row' is score_one for the "
        "compiled model.",
        style="dim",
        highlight=False,
    )


def _fastest_of_each(fast: CompiledClassifier) -> list[Candidate]:
    """Of the candidates of each engine, the one that was measured to be the fastest."""
    measured = sorted((c for c in fast.candidates if c.microseconds > 0), key=lambda c: c.microseconds)
    return sorted({c.engine: c for c in reversed(measured)}.values(), key=lambda c: -c.microseconds)


def _one_row(fast: CompiledClassifier, rows: Any) -> float:
    ids = [rows[i].indices.tolist() for i in range(min(_LATENCY_CALLS, rows.shape[0]))]
    return min(
        _seconds(lambda all_ids: [fast.score_one(row) for row in all_ids], ids) for _ in range(5)
    ) / len(ids)


@dataclass(frozen=True)
class LinearFit:
    """A linear SVM or an order that was trained; `objective` is None where the problem is another one."""

    name: str
    training_seconds: float
    objective: float | None
    gap: float
    accuracy: float | None
    roc_area: float


def _show_linear(console: Console) -> None:
    rows = binary_rows(count=30_000)
    table = Table(
        title=f"linear: {_shape(rows)}", title_justify="left", title_style="bold", box=SIMPLE_HEAD,
        show_edge=False,
    )  # fmt: skip
    table.padding = (0, 1, 0, 0)
    for heading in ("", "training", "objective", "gap", "correct", "ROC area"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for fit in linear_fits(rows):
        table.add_row(*_linear_cells(fit), style="" if fit.name == "LinearSVC" else "bold cyan")
    console.print(table)
    pairs, ours, theirs = diabetes_order()
    console.print(
        f"The first three solve the same problem, with the hinge loss and C = {_LINEAR_C:g}. LinearSVC has "
        f"the largest tol with which it comes within {_LINEAR_GAP:.1%} of our lower bound. RankSVM orders "
        "the rows of one class above those of the other.\n"
        f"Ranking the patients of scikit-learn's diabetes data, {pairs:,} training pairs: RankSVM has "
        f"{ours:.1%} of the test pairs in order, ridge regression {theirs:.1%}; C and alpha by "
        "cross-validation.",
        style="dim",
        highlight=False,
    )


def linear_fits(rows: Rows) -> list[LinearFit]:
    """Both solvers, LinearSVC to the same objective, and RankSVM."""
    fits = []
    bound = 0.0
    for solver in ("cutting_plane", "dual"):
        svc = CuttingPlaneSVC(C=_LINEAR_C, tol=_LINEAR_GAP, solver=solver, random_state=0)
        seconds = _training_seconds(svc, rows)
        bound = max(bound, svc.objective_ * (1 - svc.gap_))
        name = f"CuttingPlaneSVC,\nsolver={solver}"
        fits.append(LinearFit(name, seconds, svc.objective_, svc.gap_, *_quality(svc, rows)))
    fits.append(_liblinear_fit(rows, bound))
    ranker = RankSVM(C=_LINEAR_C, tol=_LINEAR_GAP)
    seconds = _training_seconds(ranker, rows)
    fits.append(LinearFit("RankSVM", seconds, None, ranker.gap_, None, _roc_area(ranker, rows)))
    return fits


def _liblinear_fit(rows: Rows, bound: float) -> LinearFit:
    for tol in _LIBLINEAR_TOLERANCES:
        svc = LinearSVC(C=_LINEAR_C, loss="hinge", tol=tol, max_iter=10_000, random_state=0)
        seconds = _training_seconds(svc, rows)
        objective = _hinge_objective(svc, rows)
        gap = (objective - bound) / objective
        if gap <= _LINEAR_GAP:
            break
    return LinearFit("LinearSVC", seconds, objective, gap, *_quality(svc, rows))


def _hinge_objective(svc: LinearSVC, rows: Rows) -> float:
    signs = np.where(rows.train_labels == svc.classes_[1], 1.0, -1.0)
    losses = np.maximum(1.0 - signs * svc.decision_function(rows.train), 0.0)
    return float((np.sum(svc.coef_**2) + np.sum(svc.intercept_**2)) / 2 + svc.C * losses.sum())


def _training_seconds(estimator: Any, rows: Rows) -> float:
    began = time.perf_counter()
    estimator.fit(rows.train, rows.train_labels)
    return time.perf_counter() - began


def _quality(classifier: Any, rows: Rows) -> tuple[float, float]:
    return float(classifier.score(rows.test, rows.test_labels)), _roc_area(classifier, rows)


def _roc_area(learner: Any, rows: Rows) -> float:
    return float(roc_auc_score(rows.test_labels, learner.decision_function(rows.test)))


def _linear_cells(fit: LinearFit) -> list[str]:
    return [
        fit.name,
        f"{fit.training_seconds:.2f} s",
        "" if fit.objective is None else f"{fit.objective:,.1f}",
        f"{fit.gap:.1e}",
        "" if fit.accuracy is None else f"{100 * fit.accuracy:.2f} %",
        f"{fit.roc_area:.4f}",
    ]


def diabetes_order() -> tuple[int, float, float]:
    """Pairs to train on; the share of test pairs in order by RankSVM, and by the scores of a regression."""
    X, y = load_diabetes(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(X, y, test_size=0.3, random_state=0)
    pairs = int((train_labels[:, None] > train_labels[None, :]).sum())
    ranker = GridSearchCV(RankSVM(), {"C": [0.1, 1.0, 10.0, 100.0]}, cv=5).fit(train, train_labels)
    regression = RidgeCV(alphas=[0.01, 0.1, 1.0, 10.0]).fit(train, train_labels)
    predicted = regression.predict(test)
    return pairs, float(ranker.score(test, test_labels)), _ordered_share(predicted, test_labels)


def _ordered_share(scores: NDArray[Any], labels: NDArray[Any]) -> float:
    higher, lower = np.nonzero(labels[:, None] > labels[None, :])
    return float(np.mean((np.sign(scores[higher] - scores[lower]) + 1) / 2))


def _shape(rows: Rows) -> str:
    return (
        f"{rows.train.shape[0]:,} training and {rows.test.shape[0]:,} test rows, {rows.n_features} features"
    )


def _poly(degree: int) -> PolySVC:
    return PolySVC(degree=degree, random_state=0, **_KERNEL)


def _expanded_name(degree: int) -> str:
    return f"PolynomialFeatures\n({degree}) + LinearSVC"


def _expanded(degree: int, *, interaction_only: bool = False) -> Any:
    return make_pipeline(
        PolynomialFeatures(degree, interaction_only=interaction_only), LinearSVC(random_state=0, **_LINEAR)
    )


def digits() -> Rows:
    """Images of 8 x 8 pixels, from scikit-learn."""
    X, y = load_digits(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(
        X / 16.0, y, test_size=0.3, random_state=0, stratify=y
    )
    return Rows(train, train_labels, test, test_labels)


def binary_rows(count: int = 6000, features: int = 300, pairs: int = 40) -> Rows:
    """About twenty features on in each row, few of them often; labels are a vote of pairs of features."""
    generator = np.random.default_rng(0)
    shares = np.arange(1, features + 1) ** -0.7
    X = generator.random((count, features)) < np.minimum(20 * shares / shares.sum(), 1.0)
    voters = generator.integers(0, 40, (pairs, 2))
    votes = (X[:, voters[:, 0]] & X[:, voters[:, 1]]) @ generator.normal(size=pairs)
    y = np.where(votes > np.median(votes), 1, -1)
    train, test, train_labels, test_labels = train_test_split(
        sparse.csr_matrix(X, dtype=np.float64), y, test_size=1 / 3, random_state=0
    )
    return Rows(train, train_labels, test, test_labels)


def _measure_all(rows: Rows, contestants: list[Contestant], console: Console) -> dict[str, Measured]:
    results: dict[str, Measured] = {}
    with _bar(console) as bar:
        task = bar.add_task("", total=len(contestants))
        for contestant in contestants:
            bar.update(task, description=contestant.name.replace("\n", ""))
            if contestant.seconds_expected(results) <= _LONGEST_TRAINING:
                results[contestant.name] = measure(contestant.make(), rows)
            bar.advance(task)
    return results


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def measure(estimator: Any, rows: Rows) -> Measured:
    began = time.perf_counter()
    estimator.fit(rows.train, rows.train_labels)
    training_seconds = time.perf_counter() - began
    deployed, file_bytes = _deployed(estimator)
    return Measured(
        accuracy=float(np.mean(deployed.predict(rows.test) == rows.test_labels)),
        training_seconds=training_seconds,
        latency_seconds=_latency(deployed, rows.test),
        rows_per_second=_throughput(deployed, rows.test),
        pickle_bytes=len(pickle.dumps(estimator)),
        file_bytes=file_bytes,
    )


def _deployed(estimator: Any) -> tuple[Any, int | None]:
    """What would answer in production, and the bytes of its .uk file; scikit-learn has but the estimator."""
    if not isinstance(estimator, PolySVC):
        return estimator, None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.uk"
        estimator.save(path)
        return load(path), path.stat().st_size


def _latency(classifier: Any, rows: Any) -> float:
    """The median over single rows, each of them a matrix already when the clock starts."""
    singles = [rows[i : i + 1] for i in range(min(_LATENCY_CALLS, rows.shape[0]))]
    classifier.predict(singles[0])
    return statistics.median(_seconds(classifier.predict, row) for row in singles)


def _throughput(classifier: Any, rows: Any) -> float:
    return float(rows.shape[0] / min(_seconds(classifier.predict, rows) for _ in range(3)))


def _seconds(predict: Callable[[Any], Any], rows: Any) -> float:
    began = time.perf_counter()
    predict(rows)
    return time.perf_counter() - began


def _table(title: str, contestants: list[Contestant], results: dict[str, Measured]) -> Table:
    # Narrow enough for eighty columns.
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, show_edge=False)
    table.padding = (0, 1, 0, 0)
    table.add_column("")
    for heading in ("correct", "training", "one row", "rows/s", "pickle", ".uk file"):
        table.add_column(heading, justify="right", no_wrap=True)
    for contestant in contestants:
        ours = "PolySVC" in contestant.name
        cells = _cells(results.get(contestant.name))
        table.add_row(contestant.name, *cells, style="bold cyan" if ours else "")
    return table


def _cells(measured: Measured | None) -> list[str]:
    if measured is None:
        return ["left out:", f"> {_LONGEST_TRAINING:g} s", "expected"]
    return [
        f"{100 * measured.accuracy:.2f} %",
        f"{measured.training_seconds:.2f} s",
        f"{1e6 * measured.latency_seconds:,.0f} µs",
        f"{measured.rows_per_second:,.0f}",
        decimal(measured.pickle_bytes),
        "" if measured.file_bytes is None else decimal(measured.file_bytes),
    ]


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
