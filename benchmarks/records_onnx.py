"""Records, one at a time: scikit-learn's pipelines, the same under ONNX Runtime, and the same compiled.

Adult: 14 columns, one-hot categories, numbers by intervals; CLINC150: a sentence, tf-idf of words and pairs
of words, 150 intents. All three get the same raw records, one after the other, and return labels; they take
turns. The tables show the share of labels that equal scikit-learn's. ONNX Runtime takes only arrays, so its
time includes making arrays from a record. scikit-learn gets 20 records, each as a frame of one row.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/records_onnx.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import unkernel
from harness import Report, main
from records import NUMBERS, PER_RECORD, Works, add_times, adult, clinc, one_hot_and_bins

FIGURE = "label of a record"
RECORDS, RECORDS_FOR_SKLEARN = 2000, 20
MODELS = {"adult-svc": LinearSVC(), "adult-logistic": LogisticRegression(max_iter=1000)}
TASKS = [*MODELS, "clinc"]


@dataclass(frozen=True)
class Task:
    """A fitted pipeline, records to predict, and their form for ONNX Runtime."""

    name: str
    pipeline: Any
    records: list[Any]
    types: list[Any]  # of the inputs, for skl2onnx
    feed: Callable[[Any], dict[str, np.ndarray]]

    @property
    def table(self) -> Any:
        """Return the records in the form for scikit-learn."""
        return pd.DataFrame(self.records) if isinstance(self.records[0], dict) else self.records


def load_task(name: str) -> Task:
    return sentence_task() if name == "clinc" else record_task(name)


def record_task(name: str) -> Task:
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    X, y = adult("train")
    columns = one_hot_and_bins(X, "onehot-dense")  # ONNX has no sparse output of KBinsDiscretizer
    kinds = {name: FloatTensorType if name in NUMBERS else StringTensorType for name in X.columns}
    arrays = {name: np.float32 if name in NUMBERS else object for name in X.columns}
    return Task(
        f"Adult, OneHotEncoder + KBinsDiscretizer + {type(MODELS[name]).__name__}",
        make_pipeline(columns, MODELS[name]).fit(X, y),
        adult("test")[0].to_dict("records")[:RECORDS],
        [(column, kind([None, 1])) for column, kind in kinds.items()],
        lambda record: {name: np.array([[record[name]]], dtype=kind) for name, kind in arrays.items()},
    )


def sentence_task() -> Task:
    from skl2onnx.common.data_types import StringTensorType

    X, y = clinc("train")
    return Task(
        "CLINC150, TfidfVectorizer(1-2) + LinearSVC",
        make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LinearSVC()).fit(X, y),
        clinc("test")[0][:RECORDS],
        [("text", StringTensorType([None, 1]))],
        lambda text: {"text": np.array([[text]], dtype=object)},
    )


def onnx_session(task: Task) -> Any:
    """Return the pipeline as a session of ONNX Runtime on one thread."""
    import onnxruntime
    from skl2onnx import to_onnx

    first_step, last_step = task.pipeline[0], task.pipeline[-1]
    options = {
        id(last_step): {"zipmap": False} if hasattr(last_step, "predict_proba") else {"raw_scores": True}
    }
    if isinstance(first_step, TfidfVectorizer):
        options[id(first_step)] = {"locale": "C"}  # by default en_US.UTF-8, which not all machines have
    converted = to_onnx(task.pipeline, initial_types=task.types, options=options).SerializeToString()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    return onnxruntime.InferenceSession(converted, settings, providers=["CPUExecutionProvider"])


def compare(report: Report, task: Task) -> None:
    """Time all three from the raw record to the label, and count the labels that are scikit-learn's."""
    try:
        session = onnx_session(task)
    except Exception as error:  # theirs has many kinds
        reason = str(error).splitlines()[0][:200]
        report.add(task.name, "ONNX Runtime", FIGURE, PER_RECORD, None, note=f"cannot: {reason}")
        return
    label, fast, table = session.get_outputs()[0].name, unkernel.compile(task.pipeline), task.table
    first_rows = range(RECORDS_FOR_SKLEARN)
    works: Works = {
        "unkernel": (lambda: [fast.predict_one(record) for record in task.records], len(task.records)),
        "ONNX Runtime": (
            lambda: [session.run([label], task.feed(record))[0][0] for record in task.records],
            len(task.records),
        ),
        "scikit-learn": (
            lambda: [task.pipeline.predict(table[k : k + 1]) for k in first_rows],
            len(first_rows),
        ),
    }
    add_times(report, task.name, FIGURE, works)
    expected = task.pipeline.predict(table)
    for contender in ("unkernel", "ONNX Runtime"):
        equal = 100 * float(np.mean(np.array(works[contender][0]()) == expected))
        report.add(task.name, contender, "labels that are scikit-learn's", "%", equal)


def measure(report: Report, tasks: Sequence[str]) -> None:
    warnings.filterwarnings("ignore", "Bins whose width")
    for name in tasks:
        try:
            compare(report, load_task(name))
        except (FileNotFoundError, ImportError) as error:
            report.leave_out(name, error)


if __name__ == "__main__":
    main(measure, TASKS)
