"""Records: from a dict to its class, against the scikit-learn pipeline that the model was compiled from.

Adult: 14 columns; CLINC150: 15,000 sentences of 150 intents. Both sides get the same records, one after the
other, in turns. Labels must be equal.

- "adult", "bound", "clinc": one record; columns that many records share; one sentence, by a linear machine.
- "pairs": one sentence, by the 11,175 decisions of SVC(kernel="linear"). Takes some minutes.
- "frame": a polars frame of a million records to labels, on one thread.
- "csv": Adult's test file, tiled to 100 MB, through `unkernel predict`, on one thread; with labels that are
  compared, and without the column of labels.
- "vowpal": Vowpal Wabbit beside ours: all pairs of features, learnt online; a line of text to a score.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/records.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder
from sklearn.svm import SVC, LinearSVC

import unkernel
from harness import Report, Times, main, take_turns
from unkernel import PolySVC, RecordEncoder, cli, datasets

ROWS_OF_FRAME = 1_000_000
BYTES_OF_CSV = 100_000_000
NUMBERS = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
PER_RECORD = "CPU µs per record"
Works = dict[str, tuple[Callable[[], Any], int]]


def data_file(name: str) -> Path:
    """Return the path of a file of records; raise a FileNotFoundError if it is missing."""
    path = (datasets.folder() or Path("data")) / "records" / name
    if not path.exists():
        raise FileNotFoundError(f"there is no records/{name} where UNKERNEL_DATA says")
    return path


def adult(part: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the records of Adult, and their incomes, high or low."""
    with lzma.open(data_file(f"adult.{part}.csv.xz"), "rt", encoding="utf-8") as file:
        frame = pd.read_csv(io.StringIO(file.read()), keep_default_na=False, quoting=csv.QUOTE_MINIMAL)
    return frame.drop(columns="income"), frame["income"].str.rstrip(".").to_numpy(dtype=str)


def clinc(part: str) -> tuple[list[str], np.ndarray]:
    """Return the sentences of CLINC150, and their intents."""
    with lzma.open(data_file(f"clinc150.{part}.jsonl.xz"), "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [line["text"] for line in lines], np.array([line["intent"] for line in lines])


def measure_times(report: Report, works: Works) -> dict[str, Times]:
    """Return the microseconds of CPU time per record of each function; functions take turns."""
    times_of_work = take_turns({name: work for name, (work, _) in works.items()}, 3 if report.quick else 7)
    return {name: times.scaled(1e6 / works[name][1]) for name, times in times_of_work.items()}


def add_times(report: Report, task: str, figure: str, works: Works) -> None:
    for contender, times in measure_times(report, works).items():
        report.add(task, contender, figure, PER_RECORD, times)


def one_hot_and_bins(X: pd.DataFrame, encode: str = "onehot") -> ColumnTransformer:
    """Return a transformer of one-hot categories and intervals of numbers."""
    categories = [name for name in X.columns if name not in NUMBERS]
    bins = KBinsDiscretizer(16, encode=encode, quantile_method="averaged_inverted_cdf")
    return ColumnTransformer(
        [("categories", OneHotEncoder(handle_unknown="ignore"), categories), ("numbers", bins, NUMBERS)]
    )


def measure_adult(report: Report, task: str) -> None:
    """Measure one-hot categories and intervals with PolySVC of degree 2."""
    X, y = adult("train")
    test, labels = adult("test")
    columns = one_hot_and_bins(X)
    records = test.to_dict("records")[:2000]
    rows = [test.iloc[[k]] for k in range(20)]
    for name, encoder in (("ColumnTransformer", columns), ("RecordEncoder", RecordEncoder())):
        pipeline = make_pipeline(encoder, PolySVC(degree=2)).fit(X, y)
        fast = unkernel.compile(pipeline)
        assert [fast.predict_one(record) for record in records] == pipeline.predict(test[:2000]).tolist()
        row = f"{task}, {name} + PolySVC(degree=2)"
        works: Works = {
            "unkernel": (lambda fast=fast: [fast.predict_one(record) for record in records], len(records)),
            "scikit-learn, a frame of one row": (
                lambda p=pipeline: [p.predict(row) for row in rows],
                len(rows),
            ),
        }
        add_times(report, row, "label of a record", works)
        report.add(row, "unkernel", "accuracy", "%", 100 * np.mean(fast.predict(test) == labels))
    works = {
        "unkernel, RecordEncoder": (lambda: RecordEncoder().fit_transform(X), len(X)),
        "scikit-learn, OneHotEncoder + KBinsDiscretizer": (lambda: columns.fit_transform(X), len(X)),
    }
    add_times(report, f"{task}, encoders", "fit_transform", works)


def measure_bound(report: Report, task: str) -> None:
    """Measure many candidates that share ten of Adult's columns."""
    X, y = adult("train")
    test, _ = adult("test")
    shared = list(X.columns[:10])
    fast = unkernel.compile(make_pipeline(RecordEncoder(), PolySVC(degree=2)).fit(X, y))
    records = test.to_dict("records")[:2000]
    shared_values = {name: records[0][name] for name in shared}
    candidates = [{name: record[name] for name in X.columns[10:]} for record in records]
    complete = [shared_values | candidate for candidate in candidates]
    bound = fast.bind(shared_values)
    np.testing.assert_allclose(
        bound.decision_function(candidates), fast.decision_function(complete), atol=1e-9
    )
    count = len(records)
    works: Works = {
        "unkernel, bound": (lambda: [bound.score_one(candidate) for candidate in candidates], count),
        "unkernel, whole records": (lambda: [fast.score_one(record) for record in complete], count),
        "unkernel, put together first": (
            lambda: [fast.score_one(shared_values | candidate) for candidate in candidates],
            count,
        ),
        "unkernel, bound, as one list": (lambda: bound.decision_function(candidates), count),
        "unkernel, whole records, as one list": (lambda: fast.decision_function(complete), count),
        "unkernel, bind": (lambda: [fast.bind(shared_values) for _ in range(10)], 10),
    }
    times = measure_times(report, works)
    for contender, microseconds in times.items():
        report.add(task, contender, "score", PER_RECORD, microseconds)
    saved = times["unkernel, whole records"].best - times["unkernel, bound"].best
    earned = times["unkernel, bind"].best / saved if saved > 0 else None
    report.add(task, "unkernel, bound", "bind is earned back after", "records", earned)


def measure_clinc(report: Report, task: str) -> None:
    """Measure tf-idf of words and pairs of words with LinearSVC."""
    X, y = clinc("train")
    test, labels = clinc("test")
    pipeline = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LinearSVC()).fit(X, y)
    add_sentences(report, f"{task}, TfidfVectorizer(1-2) + LinearSVC", pipeline, test, labels)


def measure_pairs(report: Report, task: str) -> None:
    """Measure tf-idf of words and pairs with SVC(kernel="linear"), one decision per pair of intents."""
    X, y = clinc("train")
    test, labels = clinc("test")
    pipeline = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), SVC(kernel="linear")).fit(X, y)
    row = f'{task}, TfidfVectorizer(1-2) + SVC(kernel="linear")'
    fast = add_sentences(report, row, pipeline, test, labels)
    sample = test[:: len(test) // 200][:200]
    difference = float(np.abs(fast.decision_function(sample) - pipeline.decision_function(sample)).max())
    report.add(row, "unkernel", "largest difference of 200 sentences' scores", "", difference)


def add_sentences(report: Report, task: str, pipeline: Any, test: list[str], labels: np.ndarray) -> Any:
    fast = unkernel.compile(pipeline)
    answers = np.array([fast.predict_one(text) for text in test])
    some = test[:: len(test) // 50][:50]
    works: Works = {
        "unkernel": (lambda: [fast.predict_one(text) for text in test], len(test)),
        "scikit-learn": (lambda: [pipeline.predict([text]) for text in some], len(some)),
    }
    add_times(report, task, "intent of a sentence", works)
    report.add(task, "unkernel", "accuracy", "%", 100 * np.mean(answers == labels))
    equal = np.mean(answers == pipeline.predict(test))
    report.add(task, "unkernel", "labels that are scikit-learn's", "%", 100 * equal)
    return fast


def measure_frame(report: Report, task: str) -> None:
    """Measure the time from a polars frame to labels, on one thread."""
    import polars

    X, y = adult("train")
    test, _ = adult("test")
    fast = unkernel.compile(make_pipeline(RecordEncoder(), PolySVC(degree=2)).fit(X, y))
    once = polars.DataFrame({name: test[name].to_list() for name in test.columns})
    frame = polars.concat([once] * -(-ROWS_OF_FRAME // len(once)))[:ROWS_OF_FRAME].rechunk()
    expected = fast.predict(test)
    assert np.array_equal(fast.predict(frame), np.resize(expected, len(frame)))
    works: Works = {
        "unkernel, labels": (lambda: fast.predict(frame, n_jobs=1), len(frame)),
        "unkernel, scores": (lambda: fast.decision_function(frame, n_jobs=1), len(frame)),
    }
    add_times(report, task, f"polars frame of {len(frame):,} records", works)


def measure_csv(report: Report, task: str) -> None:
    """Measure `unkernel predict` from CSV to CSV in this process, without start and imports."""
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        train = data_file("adult.train.csv.xz")
        command(["train", "poly", train, "--target", "income", "-o", folder / "m.uk"])
        with lzma.open(data_file("adult.test.csv.xz")) as file:
            header, rows = file.read().split(b"\n", 1)
        times = -(-BYTES_OF_CSV // len(rows))
        write_tiled(folder / "labelled.csv", header, rows, times)
        column = header.decode().split(",").index("income")
        assert column == header.count(b","), "the target is the last column"
        bare = b"".join(line.rsplit(b",", 1)[0] + b"\n" for line in rows.splitlines())
        write_tiled(folder / "bare.csv", header.rsplit(b",", 1)[0], bare, times)
        options = ["-o", folder / "answers.csv", "--jobs", "1", "--force"]
        works = {
            f"unkernel, {name}": lambda file=file: command(
                ["predict", folder / "m.uk", folder / f"{file}.csv", *options]
            )
            for name, file in (("with labels", "labelled"), ("without labels", "bare"))
        }
        works["unkernel, without labels"]()  # imports
        sizes = {
            "unkernel, with labels": (folder / "labelled.csv").stat().st_size / 1e6,
            "unkernel, without labels": (folder / "bare.csv").stat().st_size / 1e6,
        }
        for contender, seconds in take_turns(works, 1 if report.quick else 3).items():
            report.add(task, contender, "file", "MB", sizes[contender])
            report.add(task, contender, "CSV to CSV", "MB/s", sizes[contender] / seconds.best)


def command(words: list[Any]) -> None:
    """Run a command of unkernel in this process."""
    assert cli.main([*map(str, words), "--quiet"]) == 0, words


def write_tiled(path: Path, header: bytes, rows: bytes, times: int) -> None:
    """Write the same records several times under one header."""
    with path.open("wb") as file:
        file.write(header + b"\n")
        for _ in range(times):
            file.write(rows)


def measure_vowpal(report: Report, task: str) -> None:
    import vowpalwabbit

    X, y = adult("train")
    test, labels = adult("test")
    records = test.to_dict("records")
    fast = unkernel.compile(make_pipeline(RecordEncoder(), PolySVC(degree=2)).fit(X, y))
    lines = [vowpal_line(record) for record in records]
    with tempfile.TemporaryDirectory() as folder:
        train, questions, answers, model = (
            Path(folder) / name for name in ("train", "test", "answers", "model")
        )
        learnt = zip(X.to_dict("records"), y, strict=True)
        train.write_text(
            "".join(f"{1 if label == '>50K' else -1} {vowpal_line(person)}\n" for person, label in learnt)
        )
        questions.write_text("".join(f"{line}\n" for line in lines))
        train_options = f"--loss_function logistic --interactions ff -b 20 -d {train} -f {model}"
        vowpalwabbit.Workspace(f"{train_options} --quiet --no_stdin").finish()
        asking = f"-t -i {model} --quiet --no_stdin"
        workspace = vowpalwabbit.Workspace(asking)
        of_file = f"{asking} -d {questions} -p {answers}"
        works: Works = {
            "unkernel": (lambda: [fast.predict_one(record) for record in records], len(records)),
            "Vowpal Wabbit, a call": (lambda: [workspace.predict(line) for line in lines], len(lines)),
            "Vowpal Wabbit, a file": (lambda: vowpalwabbit.Workspace(of_file).finish(), len(lines)),
        }
        add_times(report, task, "answer of a record", works)
        theirs = np.mean((np.loadtxt(answers) > 0) == (labels == ">50K"))
    report.add(task, "unkernel", "accuracy", "%", 100 * np.mean(fast.predict(test) == labels))
    report.add(task, "Vowpal Wabbit, a file", "accuracy", "%", 100 * theirs)


def vowpal_line(record: dict[str, Any]) -> str:
    """Return a record in the text format of Vowpal Wabbit, in one namespace."""
    words = [
        f"{name}:{value / 100:g}" if name in NUMBERS else f"{name}={value}" for name, value in record.items()
    ]
    return f"|f {' '.join(words)}"


TASKS: dict[str, Callable[[Report, str], None]] = {
    "adult": measure_adult,
    "bound": measure_bound,
    "clinc": measure_clinc,
    "pairs": measure_pairs,
    "frame": measure_frame,
    "csv": measure_csv,
    "vowpal": measure_vowpal,
}


def measure(report: Report, tasks: Sequence[str]) -> None:
    warnings.filterwarnings("ignore", "Bins whose width")
    for task in tasks:
        try:
            TASKS[task](report, task)
        except (FileNotFoundError, ImportError) as error:
            report.leave_out(task, error)


if __name__ == "__main__":
    main(measure, list(TASKS), quick=["adult", "bound", "clinc"])
