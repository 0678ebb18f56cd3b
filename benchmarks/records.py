"""Records: from a dict to its class, against the scikit-learn pipeline that the model was compiled from.

    python benchmarks/records.py [adult] [bound] [clinc] [pairs] [frame] [csv] [onnx] [vowpal]
                                 [--data FOLDER] [--repeats 5]

Adult: 14 columns; CLINC150: 15,000 sentences of 150 intents. Both sides get the same records, one after the
other, in turns; the least CPU time of several rounds counts. Labels must be equal.

- adult, bound, clinc: one record; columns that many records share; one sentence, by a linear machine.
- pairs: one sentence, by the 11,175 decisions of SVC(kernel="linear"). Takes some minutes.
- frame: a polars frame of a million records to labels, on one thread.
- csv: Adult's test file, tiled to 100 MB in a temporary folder, through `unkernel predict`, on one thread.
- onnx: ONNX Runtime beside ours, if skl2onnx and onnxruntime are installed.
- vowpal: Vowpal Wabbit beside ours, if vowpalwabbit is installed: pairs of features, a line per record.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import lzma
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder
from sklearn.svm import SVC, LinearSVC

import unkernel
from unkernel import PolySVC, RecordEncoder, cli

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "records"
ROWS_OF_FRAME = 1_000_000
BYTES_OF_CSV = 100_000_000
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


def one_hot_and_bins(X: pd.DataFrame, encode: str = "onehot") -> ColumnTransformer:
    """One-hot categories, and numbers by intervals."""
    categories = [name for name in X.columns if name not in NUMBERS]
    bins = KBinsDiscretizer(16, encode=encode, quantile_method="averaged_inverted_cdf")
    return ColumnTransformer(
        [("categories", OneHotEncoder(handle_unknown="ignore"), categories), ("numbers", bins, NUMBERS)]
    )


def ask_adult(folder: Path, repeats: int) -> None:
    """One-hot categories and intervals, PolySVC of degree 2."""
    X, y = adult(folder, "train")
    test, labels = adult(folder, "test")
    columns = one_hot_and_bins(X)
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
            "batch": (lambda: bound.decision_function(candidates), count),
            "whole batch": (lambda: fast.decision_function(whole), count),
            "bind": (lambda: [fast.bind(first) for _ in range(10)], 10),
        },
        repeats,
    )
    print(
        f"Adult, 10 of 14 columns shared, {bound.sums_once} summed once: {found['bound'] * 1000:.0f} ns per "
        f"candidate; whole {found['whole'] * 1000:.0f} ns, {found['put together'] * 1000:.0f} ns "
        f"with putting together; ratio {found['whole'] / found['bound']:.1f}; as one list "
        f"{found['batch'] * 1000:.0f} and {found['whole batch'] * 1000:.0f} ns; bind {found['bind']:.0f} us, "
        f"earned back after {found['bind'] / (found['whole'] - found['bound']):.0f} candidates"
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


def ask_pairs(folder: Path, repeats: int) -> None:
    """Tf-idf of words and pairs of words, SVC(kernel="linear"): one decision per pair of intents."""
    X, y = clinc(folder, "train")
    test, labels = clinc(folder, "test")
    pipeline = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), SVC(kernel="linear")).fit(X, y)
    fast = unkernel.compile(pipeline)
    answers = np.array([fast.predict_one(text) for text in test])
    equal = int(np.sum(answers == pipeline.predict(test)))
    some = test[:: len(test) // 200][:200]
    apart = float(np.abs(fast.decision_function(some) - pipeline.decision_function(some)).max())
    found = best(
        {
            "ours": (lambda: [fast.predict_one(text) for text in test], len(test)),
            "scikit-learn": (lambda: [pipeline.predict([text]) for text in some[::4]], len(some[::4])),
        },
        repeats,
    )
    print(
        f'CLINC150, TfidfVectorizer(1-2) + SVC(kernel="linear"): accuracy {np.mean(answers == labels):.4f}; '
        f"equal labels {equal} of {len(test)}; scores of {len(some)} sentences within {apart:.1e}; sentence "
        f"to intent {found['ours']:.1f} us; pipeline.predict of one sentence {found['scikit-learn']:.0f} us "
        f"({len(some[::4])} sentences); ratio {found['scikit-learn'] / found['ours']:.0f}"
    )


def ask_frame(folder: Path, repeats: int) -> None:
    """A frame of polars to labels, the whole way, on one thread."""
    try:
        import polars
    except ImportError as error:
        print(f"The frame of polars is skipped: {error}; pip install polars")
        return
    X, y = adult(folder, "train")
    test, _ = adult(folder, "test")
    fast = unkernel.compile(make_pipeline(RecordEncoder(), PolySVC(degree=2)).fit(X, y))
    once = polars.DataFrame({name: test[name].to_list() for name in test.columns})
    frame = polars.concat([once] * -(-ROWS_OF_FRAME // len(once)))[:ROWS_OF_FRAME].rechunk()
    expected = fast.predict(test)
    assert np.array_equal(fast.predict(frame), np.resize(expected, len(frame)))
    tasks = {"labels": (lambda: fast.predict(frame, n_jobs=1), len(frame))}
    tasks["scores"] = (lambda: fast.decision_function(frame, n_jobs=1), len(frame))
    found = best(tasks, repeats)
    print(
        f"Adult, polars frame of {len(frame):,} records, RecordEncoder + PolySVC(degree=2), one thread: "
        f"{1 / found['labels']:.2f} M records/s to labels, {1 / found['scores']:.2f} M/s to scores"
    )


def ask_csv(folder: Path, repeats: int) -> None:
    """CSV to answers by the command line's own code: in this process, start and imports not counted."""
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        command(["train", "poly", folder / "adult.train.csv.xz", "--target", "income", "-o", here / "m.uk"])
        with lzma.open(folder / "adult.test.csv.xz") as file:
            header, rows = file.read().split(b"\n", 1)
        times = -(-BYTES_OF_CSV // len(rows))
        write_tiled(here / "labelled.csv", header, rows, times)
        column = header.decode().split(",").index("income")
        assert column == header.count(b","), "the target is the last column"
        bare = b"".join(line.rsplit(b",", 1)[0] + b"\n" for line in rows.splitlines())
        write_tiled(here / "bare.csv", header.rsplit(b",", 1)[0], bare, times)
        sizes = {name: (here / f"{name}.csv").stat().st_size for name in ("labelled", "bare")}
        asked = {name: ["predict", here / "m.uk", here / f"{name}.csv"] for name in sizes}
        told = ["-o", here / "answers.csv", "--jobs", "1", "--force"]
        command([*asked["bare"], *told])  # imports
        found = best(
            {name: (lambda name=name: command([*asked[name], *told]), sizes[name]) for name in sizes}, repeats
        )
    print(
        f"Adult's test file tiled to {sizes['labelled'] / 1e6:.0f} MB, CSV to a CSV of answers, one thread: "
        f"{1 / found['labelled']:.1f} MB/s of CPU time with labels that are compared; without the column of "
        f"labels ({sizes['bare'] / 1e6:.0f} MB) {1 / found['bare']:.1f} MB/s"
    )


def command(words: list[Any]) -> None:
    """Run a command of ours in this process."""
    assert cli.main([*map(str, words), "--quiet"]) == 0, words


def write_tiled(path: Path, header: bytes, rows: bytes, times: int) -> None:
    """The same records again and again, under one header."""
    with path.open("wb") as file:
        file.write(header + b"\n")
        for _ in range(times):
            file.write(rows)


def ask_onnx(folder: Path, repeats: int) -> None:
    """ONNX Runtime on one record and on one sentence, where it can express the pipeline."""
    try:
        import onnxruntime
        import skl2onnx
    except ImportError as error:
        print(f"ONNX Runtime is skipped: {error}; pip install skl2onnx onnxruntime")
        return
    print(f"skl2onnx {skl2onnx.__version__}, onnxruntime {onnxruntime.__version__}, one thread")
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    X, y = adult(folder, "train")
    records = adult(folder, "test")[0].to_dict("records")[:2000]
    kinds = {name: FloatTensorType if name in NUMBERS else StringTensorType for name in X.columns}
    types = [(name, kind([None, 1])) for name, kind in kinds.items()]
    feeds = {name: np.float32 if name in NUMBERS else object for name in X.columns}
    for model in (LinearSVC(), LogisticRegression(max_iter=1000)):
        columns = one_hot_and_bins(X, "onehot-dense")  # ONNX has no sparse output of KBinsDiscretizer
        pipeline = make_pipeline(columns, model).fit(X, y)
        compare_with_onnx(
            "Adult, OneHotEncoder + KBinsDiscretizer",
            pipeline,
            records,
            (types, lambda one: {name: np.array([[one[name]]], dtype=feeds[name]) for name in feeds}),
            repeats,
        )
    X, y = clinc(folder, "train")
    test = clinc(folder, "test")[0][:2000]
    pipeline = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LinearSVC()).fit(X, y)
    types = [("text", StringTensorType([None, 1]))]
    of_text = (types, lambda text: {"text": np.array([[text]], dtype=object)})
    compare_with_onnx("CLINC150, TfidfVectorizer(1-2)", pipeline, test, of_text, repeats)


def compare_with_onnx(
    name: str, pipeline: Any, records: list[Any], inputs: tuple[list[Any], Callable[[Any], Any]], repeats: int
) -> None:
    """Time both, one record at a time, from the raw record to the label; how many labels are equal."""
    import onnxruntime
    from skl2onnx import to_onnx

    types, feed = inputs
    last = pipeline[-1]
    options = {id(last): {"zipmap": False} if hasattr(last, "predict_proba") else {"raw_scores": True}}
    if isinstance(pipeline[0], TfidfVectorizer):
        options[id(pipeline[0])] = {"locale": "C"}  # by default en_US.UTF-8, which not all machines have
    try:
        converted = to_onnx(pipeline, initial_types=types, options=options).SerializeToString()
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(converted, settings, providers=["CPUExecutionProvider"])
    except Exception as error:  # theirs has many kinds
        reason = str(error).splitlines()[0][:200]
        print(f"{name} + {type(last).__name__}: ONNX cannot express or run it: {reason}")
        return
    label = session.get_outputs()[0].name
    fast = unkernel.compile(pipeline)
    whole = pd.DataFrame(records) if isinstance(records[0], dict) else records
    expected = pipeline.predict(whole)
    ours = np.array([fast.predict_one(record) for record in records])
    theirs = np.array([session.run([label], feed(record))[0][0] for record in records])
    found = best(
        {
            "ours": (lambda: [fast.predict_one(record) for record in records], len(records)),
            "onnx": (lambda: [session.run([label], feed(record)) for record in records], len(records)),
        },
        repeats,
    )
    print(
        f"{name} + {type(last).__name__}: record to label {found['ours']:.2f} us, ONNX Runtime "
        f"{found['onnx']:.1f} us, ratio {found['onnx'] / found['ours']:.0f}; labels as scikit-learn's: "
        f"ours {np.sum(ours == expected)}, ONNX Runtime {np.sum(theirs == expected)} of {len(records)}"
    )


def ask_vowpal(folder: Path, repeats: int) -> None:
    """Vowpal Wabbit, which learns weights of all pairs of features online: a line of text to a score."""
    try:
        import vowpalwabbit
    except ImportError as error:
        print(f"Vowpal Wabbit is skipped: {error}; pip install vowpalwabbit")
        return
    X, y = adult(folder, "train")
    test, labels = adult(folder, "test")
    records = test.to_dict("records")
    fast = unkernel.compile(make_pipeline(RecordEncoder(), PolySVC(degree=2)).fit(X, y))
    lines = [vowpal_line(record) for record in records]
    with tempfile.TemporaryDirectory() as room:
        train, asked, answers, model = (Path(room) / name for name in ("train", "test", "answers", "model"))
        learnt = zip(X.to_dict("records"), y, strict=True)
        train.write_text(
            "".join(f"{1 if high == '>50K' else -1} {vowpal_line(one)}\n" for one, high in learnt)
        )
        asked.write_text("".join(f"{line}\n" for line in lines))
        train_options = f"--loss_function logistic --interactions ff -b 20 -d {train} -f {model}"
        vowpalwabbit.Workspace(f"{train_options} --quiet --no_stdin").finish()
        asking = f"-t -i {model} --quiet --no_stdin"
        workspace = vowpalwabbit.Workspace(asking)
        found = best(
            {
                "ours": (lambda: [fast.predict_one(record) for record in records], len(records)),
                "a call": (lambda: [workspace.predict(line) for line in lines], len(lines)),
                "a file": (
                    lambda: vowpalwabbit.Workspace(f"{asking} -d {asked} -p {answers}").finish(),
                    len(lines),
                ),
            },
            repeats,
        )
        theirs = np.mean((np.loadtxt(answers) > 0) == (labels == ">50K"))
    accuracy = np.mean(fast.predict(test) == labels)
    print(
        f"Adult, RecordEncoder + PolySVC(degree=2): accuracy {accuracy:.4f}, dict to label "
        f"{found['ours']:.2f} us; Vowpal Wabbit {vowpalwabbit.__version__}: accuracy {theirs:.4f}, line to "
        f"score {found['a call']:.1f} us by a call, {found['a file']:.1f} us by its own loop over a file"
    )


def vowpal_line(record: dict[str, Any]) -> str:
    """A record in the text format of Vowpal Wabbit, in one namespace."""
    words = [
        f"{name}:{value / 100:g}" if name in NUMBERS else f"{name}={value}" for name, value in record.items()
    ]
    return f"|f {' '.join(words)}"


SECTIONS = {
    "adult": ask_adult,
    "bound": ask_bound,
    "clinc": ask_clinc,
    "pairs": ask_pairs,
    "frame": ask_frame,
    "csv": ask_csv,
    "onnx": ask_onnx,
    "vowpal": ask_vowpal,
}


def main() -> None:
    """Run the sections that are named, or all."""
    warnings.filterwarnings("ignore", "Bins whose width")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"there is no section {min(unknown)!r}, but {', '.join(SECTIONS)}")
    for section in options.sections or SECTIONS:
        SECTIONS[section](options.data, options.repeats)


if __name__ == "__main__":
    main()
