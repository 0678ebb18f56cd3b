"""Records: from a dict to its class, against the scikit-learn pipeline that the model was compiled from.

    python benchmarks/records.py [--data FOLDER] [--repeats 5]

Adult: 14 columns; CLINC150: 15,000 sentences of 150 intents. Both sides get the same records, one after the
other, in turns; the least CPU time of several rounds counts. Labels must be equal.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import lzma
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder
from sklearn.svm import LinearSVC

import unkernel
from unkernel import PolySVC, RecordEncoder

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "records"
NUMBERS = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]


def adult(folder: Path, part: str) -> tuple[pd.DataFrame, np.ndarray]:
    """The records of Adult and whether the income is high."""
    with lzma.open(folder / f"adult.{part}.csv.xz", "rt", encoding="utf-8") as file:
        frame = pd.read_csv(io.StringIO(file.read()), keep_default_na=False, quoting=csv.QUOTE_MINIMAL)
    return frame.drop(columns="income"), frame["income"].str.rstrip(".").to_numpy(dtype=str)


def clinc(folder: Path, part: str) -> tuple[list[str], np.ndarray]:
    """The sentences of CLINC150 and their intents."""
    with lzma.open(folder / f"clinc150.{part}.jsonl.xz", "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [line["text"] for line in lines], np.array([line["intent"] for line in lines])


def best(tasks: dict[str, tuple[Callable[[], Any], int]], repeats: int) -> dict[str, float]:
    """Microseconds of CPU time per record of each task, run in turns."""
    found = dict.fromkeys(tasks, float("inf"))
    for _ in range(repeats):
        for name, (task, records) in tasks.items():
            began = time.process_time()
            task()
            found[name] = min(found[name], (time.process_time() - began) / records * 1e6)
    return found


def ask_adult(folder: Path, repeats: int) -> None:
    """One-hot categories and intervals, PolySVC of degree 2."""
    X, y = adult(folder, "train")
    test, labels = adult(folder, "test")
    categories = [name for name in X.columns if name not in NUMBERS]
    columns = ColumnTransformer(
        [
            ("categories", OneHotEncoder(handle_unknown="ignore"), categories),
            ("numbers", KBinsDiscretizer(16, quantile_method="averaged_inverted_cdf"), NUMBERS),
        ]
    )
    records = test.to_dict("records")[:2000]
    rows = [test.iloc[[k]] for k in range(20)]
    for name, encoder in (("ColumnTransformer", columns), ("RecordEncoder", RecordEncoder())):
        pipeline = make_pipeline(encoder, PolySVC(degree=2)).fit(X, y)
        fast = unkernel.compile(pipeline)
        assert [fast.predict_one(record) for record in records] == pipeline.predict(test[:2000]).tolist()
        found = best(
            {
                "ours": (lambda fast=fast: [fast.predict_one(record) for record in records], len(records)),
                "scikit-learn": (lambda p=pipeline: [p.predict(row) for row in rows], len(rows)),
            },
            repeats,
        )
        accuracy = np.mean(fast.predict(test) == labels)
        print(
            f"Adult, {name} + PolySVC(degree=2): accuracy {accuracy:.4f}; dict to label "
            f"{found['ours']:.2f} us; pipeline.predict of a one-row frame {found['scikit-learn']:.0f} us; "
            f"ratio {found['scikit-learn'] / found['ours']:.0f}"
        )
    found = best(
        {
            "ours": (lambda: RecordEncoder().fit_transform(X), len(X)),
            "scikit-learn": (lambda: columns.fit_transform(X), len(X)),
        },
        repeats,
    )
    print(
        f"Adult, fit_transform of {len(X)} records: RecordEncoder {found['ours']:.2f} us per record, "
        f"OneHotEncoder + KBinsDiscretizer {found['scikit-learn']:.2f}; "
        f"ratio {found['scikit-learn'] / found['ours']:.1f}"
    )


def ask_bound(folder: Path, repeats: int) -> None:
    """Many candidates that share ten of Adult's columns with each other."""
    X, y = adult(folder, "train")
    test, _ = adult(folder, "test")
    shared = list(X.columns[:10])
    fast = unkernel.compile(make_pipeline(RecordEncoder(), PolySVC(degree=2)).fit(X, y))
    records = test.to_dict("records")[:2000]
    first = {name: records[0][name] for name in shared}
    candidates = [{name: record[name] for name in X.columns[10:]} for record in records]
    whole = [first | candidate for candidate in candidates]
    bound = fast.bind(first)
    np.testing.assert_allclose(bound.decision_function(candidates), fast.decision_function(whole), atol=1e-9)
    count = len(records)
    found = best(
        {
            "bound": (lambda: [bound.score_one(candidate) for candidate in candidates], count),
            "whole": (lambda: [fast.score_one(record) for record in whole], count),
            "put together": (lambda: [fast.score_one(first | candidate) for candidate in candidates], count),
            "bind": (lambda: [fast.bind(first) for _ in range(10)], 10),
        },
        repeats,
    )
    print(
        f"Adult, 10 of 14 columns shared, {bound.sums_once} summed once: {found['bound'] * 1000:.0f} ns per "
        f"candidate; whole {found['whole'] * 1000:.0f} ns, {found['put together'] * 1000:.0f} ns "
        f"with putting together; ratio {found['whole'] / found['bound']:.1f}; bind {found['bind']:.0f} us"
    )


def ask_clinc(folder: Path, repeats: int) -> None:
    """Tf-idf of words and pairs of words, LinearSVC."""
    X, y = clinc(folder, "train")
    test, labels = clinc(folder, "test")
    pipeline = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LinearSVC()).fit(X, y)
    fast = unkernel.compile(pipeline)
    equal = int(np.sum(np.array([fast.predict_one(text) for text in test]) == pipeline.predict(test)))
    found = best(
        {
            "ours": (lambda: [fast.predict_one(text) for text in test], len(test)),
            "scikit-learn": (lambda: [pipeline.predict([text]) for text in test[:50]], 50),
        },
        repeats,
    )
    print(
        f"CLINC150, TfidfVectorizer(1-2) + LinearSVC: accuracy {np.mean(fast.predict(test) == labels):.4f}; "
        f"equal labels {equal} of {len(test)}; sentence to intent {found['ours']:.1f} us; pipeline.predict "
        f"{found['scikit-learn']:.0f} us; ratio {found['scikit-learn'] / found['ours']:.0f}"
    )


def main() -> None:
    """Run all."""
    warnings.filterwarnings("ignore", "Bins whose width")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    ask_adult(options.data, options.repeats)
    ask_bound(options.data, options.repeats)
    ask_clinc(options.data, options.repeats)


if __name__ == "__main__":
    main()
