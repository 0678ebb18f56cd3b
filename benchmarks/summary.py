"""The headline figures: one line per subject, unkernel beside a named peer, all from one machine.

The README shows the first lines, and the top of RESULTS.md all of them (page.py). Comparisons that unkernel
loses are listed, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.report import HEADLINE_MACHINE, Figure, Saved, number

SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Comparison:
    """A figure of unkernel, and the same figure of a peer.

    Attributes
    ----------
    words : str
        Description of the figure in the summary.
    benchmark, task, figure : str
        Benchmark, task and figure of the two numbers.
    ours, peer : str
        The two contenders.
    peer_words : str
        Name of the peer in the summary; by default its name in the benchmark.
    """

    words: str
    benchmark: str
    task: str
    figure: str
    ours: str
    peer: str
    peer_words: str = ""


COMPARISONS = [
    Comparison(
        "Classify one record (Adult, 14 columns), `PolySVC(degree=2)` in a scikit-learn pipeline",
        "records",
        "adult, ColumnTransformer + PolySVC(degree=2)",
        "label of a record",
        "unkernel",
        "scikit-learn, a frame of one row",
        "the pipeline itself",
    ),
    Comparison(
        "Score one row (a9a), scikit-learn's `SVC` of degree 2",
        "engines",
        "a9a-10k-d2, one row",
        "time",
        "unkernel, SVC compiled, score_one",
        "SVC, predict",
        "`SVC.predict`",
    ),
    Comparison(
        "Train an SVM on all pairs of features (a9a), to within 0.1 % of the optimum",
        "poly",
        "a9a",
        "to 0.001",
        "unkernel",
        "LIBLINEAR",
        "LIBLINEAR on expanded rows",
    ),
    Comparison(
        "Memory of that training",
        "poly",
        "a9a",
        "training",
        "unkernel",
        "LIBLINEAR",
        "LIBLINEAR on expanded rows",
    ),
    Comparison(
        "Classify one record, linear SVM (Adult)",
        "records_onnx",
        "Adult, OneHotEncoder + KBinsDiscretizer + LinearSVC",
        "label of a record",
        "unkernel",
        "ONNX Runtime",
    ),
    Comparison(
        "Score rows in a batch, degree 2 (a9a)",
        "engines",
        "a9a-10k-d2",
        "scores",
        "unkernel, auto",
        "pecco -t 1",
    ),
    Comparison(
        "Score rows in a batch, degree 2 (a9a)", "engines", "a9a-10k-d2", "scores", "unkernel, auto", "LIBSVM"
    ),
    Comparison(
        "Train a linear SVM (a9a), to within 0.1 % of the optimum",
        "cutplane",
        "linear, a9a",
        "to 0.001",
        "unkernel, dual",
        "LIBLINEAR -s 3",
        "LIBLINEAR",
    ),
    Comparison(
        "Train a sparse SVM on all pairs of features (a9a, l1), to within 0.1 %",
        "sparse",
        "a9a-svm",
        "to 0.001",
        "unkernel",
        "LIBLINEAR",
        "LIBLINEAR on expanded rows",
    ),
    Comparison(
        "Train a ranking (MQ2008)", "ranking", "mq2008", "training", "unkernel, linear", "LightGBM lambdarank"
    ),
    Comparison(
        "NDCG@10 of rankings (MQ2008)",
        "ranking",
        "mq2008",
        "NDCG@10, test",
        "unkernel, degree 2",
        "LightGBM lambdarank",
    ),
    Comparison(
        "Train a tree kernel (TREC questions)",
        "tree",
        "train, TREC, DESC against the rest",
        "from the file",
        "unkernel",
        "SVM-light-TK",
    ),
    Comparison(
        "Classify one tree (TREC questions)",
        "tree",
        "answer, TREC, DESC against the rest",
        "time",
        "unkernel, text",
        "SVM-light-TK",
    ),
    Comparison(
        "F1 of names found in text",
        "chunking",
        "names",
        "F1",
        "unkernel",
        "CRFsuite, our templates, c1 0, c2 1",
        "CRFsuite",
    ),
    Comparison(
        "Answer requests over HTTP, one record each",
        "serve",
        "one record per request",
        "requests",
        "unkernel",
        "ONNX Runtime under uvicorn",
    ),
    Comparison(
        "Read an svmlight file (15.6 MB)", "data", "mnist38, 15.6 MB", "time", "unkernel", "scikit-learn"
    ),
]


def lines(files: Iterable[Saved], comparisons: Sequence[Comparison] = COMPARISONS) -> Iterator[list[str]]:
    """Yield the cells of each comparison that was measured: words, our figure, the peer's, and the ratio."""
    figures = {
        (file.benchmark, figure.task, figure.contender, figure.figure): figure
        for file in files
        if file.state.machine == HEADLINE_MACHINE
        for figure in file.figures
        if figure.value is not None
    }
    for comparison in comparisons:
        ours = figures.get((comparison.benchmark, comparison.task, comparison.ours, comparison.figure))
        peer = figures.get((comparison.benchmark, comparison.task, comparison.peer, comparison.figure))
        if ours and peer:
            yield [
                comparison.words,
                f"**{format_with_unit(ours)}**",
                f"{comparison.peer_words or comparison.peer}: {format_with_unit(peer)}",
                ratio(ours, peer),
            ]


def format_with_unit(figure: Figure) -> str:
    """Return a number with the unit that a reader would choose: times in two digits, from ns to s."""
    unit = next((word for word in figure.unit.split() if word in SECONDS), "")
    assert figure.value is not None
    if unit:
        seconds = figure.value * SECONDS[unit]
        unit = next(name for name, size in SECONDS.items() if seconds >= size or name == "ns")
        return f"{two_digits(seconds / SECONDS[unit])} {unit}"
    if figure.unit == "1/s":
        return f"{two_digits(figure.value)} per second"
    if figure.unit == "MB":
        return f"{two_digits(figure.value)} MB"
    return f"{figure.value:.1f} {'%' if figure.unit == '%' else ''}".strip()


def two_digits(value: float) -> str:
    """Return a number in at least two digits that count."""
    return number(float(f"{value:.2g}")) if value < 100 else f"{float(f'{value:.3g}'):,.0f}"


def ratio(ours: Figure, peer: Figure) -> str:
    """Return how many times better ours is; nothing for shares and scores."""
    assert ours.value and peer.value
    if ours.unit in ("%", "F1"):
        return ""
    better = ours.value / peer.value if ours.unit == "1/s" else peer.value / ours.value
    return f"{two_digits(better)} ×"
