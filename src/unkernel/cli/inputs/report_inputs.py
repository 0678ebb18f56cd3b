"""Read the examples for ``unkernel report``, and predict them with its models."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from unkernel.cli.inputs.labelled_files import class_labels, match_width
from unkernel.cli.inputs.model_kinds import (
    PARSERS_ONLY,
    ROWS_NOT_PARSERS,
    ROWS_NOT_RECORDS,
    is_parser,
    is_records,
    refuse_options,
)
from unkernel.cli.inputs.models import Opened, OpenedTrees, open_model
from unkernel.cli.inputs.parsers import open_parser
from unkernel.cli.inputs.prediction_rows import expect_rows, read_rows_to_predict
from unkernel.cli.inputs.records import (
    OpenedRecords,
    check_no_records,
    check_records,
    drop_target,
    encode_block,
    open_record_file,
    open_record_model,
    read_blocks,
    to_labels,
)
from unkernel.cli.inputs.sentences import Input, choose_reader, find_task, parse_given
from unkernel.cli.inputs.trees import check_rows_only, read_for_model
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM
from unkernel.data.rows.csr import canonical_rows, stack_rows
from unkernel.measures.predictions import Examples, ModelPredictions, predict_examples
from unkernel.records.files import Block
from unkernel.report import Report
from unkernel.report.build_report import assemble_report, format_tree, make_baseline
from unkernel.report.options import Choices


@dataclass(frozen=True)
class TestFile:
    """A file to evaluate models on, and the options for reading it."""

    file: str
    display: Display
    zero_based: bool | None
    threads: int
    given: Any = None  # the input of parsers of raw text: text, tokens or tags
    format: Any = None  # the format of a treebank


def make_report(
    models: Sequence[Path], test_file: TestFile, choices: Choices, train: str | None = None
) -> Report:
    """Return a report of models on a file, with a linear baseline if the file `train` is given."""
    if test_file.file == STANDARD_STREAM and len(models) > 1:
        raise ValueError("stdin can be read only once: give --test a file to compare models on it")
    if is_parser(models[0]):
        if train is not None:
            raise ValueError(f"{models[0]}: --train is for models of rows and records, and this is a parser")
        return _report_parsers(models, test_file, choices)
    predictions = [
        _score(path, name, test_file) for path, name in zip(models, name_models(models), strict=True)
    ]
    baseline = None
    if train is not None:
        training = _score(models[0], predictions[0].name, replace(test_file, file=train))
        baseline = make_baseline(
            predictions[0], training.inputs, training.examples.labels, training.examples.groups
        )
    with test_file.display.show_work("measuring"):
        return assemble_report(predictions, choices, baseline)


def _report_parsers(models: Sequence[Path], test_file: TestFile, choices: Choices) -> Report:
    from unkernel.report.parsers import make_parser_report  # imports all kinds of parsers, which is slow

    refuse_options(models[0], {"--zero-based": test_file.zero_based}, ROWS_NOT_PARSERS)
    opened = {
        name: open_parser(path, "report") for path, name in zip(models, name_models(models), strict=True)
    }
    first_parser = next(iter(opened.values()))
    reader = choose_reader(find_task(first_parser), test_file.format)
    options = parse_given(first_parser, test_file.given)
    corpus = Input(test_file.file).read(reader, test_file.display)
    with test_file.display.show_work("parsing"):
        return make_parser_report(opened, corpus, choices, test_file.threads, options)


def _score(path: Path, name: str, test_file: TestFile) -> ModelPredictions:
    """Open the model in a file, and predict the rows, records or trees of the test file with it."""
    refuse_options(path, {"--from": test_file.given, "--format": test_file.format}, PARSERS_ONLY)
    if is_records(path):
        refuse_options(path, {"--zero-based": test_file.zero_based}, ROWS_NOT_RECORDS)
        return _score_records(open_record_model(path), name, test_file)
    opened = open_model(path, "report")
    check_no_records(test_file.file, path)
    return (
        _score_trees(opened, name, test_file)
        if isinstance(opened, OpenedTrees)
        else _score_rows(opened, name, test_file)
    )


def name_models(models: Sequence[Path]) -> list[str]:
    """Return names for models: their file names, with folders if two file names are the same."""
    file_names = [path.name for path in models]
    names = file_names if len(set(file_names)) == len(file_names) else [str(path) for path in models]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{repeated} is given twice; a report compares different models")
    return names


def _score_records(opened: OpenedRecords, name: str, test_file: TestFile) -> ModelPredictions:
    """Predict the records of the test file, all of which must have labels."""
    check_records(opened)
    if opened.classifier.decision.outputs:
        raise ValueError(
            f"{opened.path}: predicts several labels or values, and reports are about one target"
        )
    if opened.target is None:
        raise ValueError(
            f"{opened.path}: was not trained on a file, so the column with the labels is unknown; make its "
            "report in Python, with unkernel.load and the method report"
        )
    with open_record_file(test_file.file, test_file.display) as source:
        blocks = list(read_blocks(opened, source, test_file.threads))
        rows = [encode_block(opened, block, test_file.threads) for block in blocks]
    values = [value for block in blocks for value in block.values(opened.target) or [None]]
    if not rows:
        raise ValueError(f"{test_file.file}: there is no record")
    if any(value is None for value in values):
        raise ValueError(f"{test_file.file}: not all records have a label in column {opened.target!r}")
    examples = Examples(
        to_labels(values), Path(test_file.file).name, "record", show=_ShownRecords(opened, blocks).__getitem__
    )
    joined = rows[0] if len(rows) == 1 else stack_rows(rows)
    return predict_examples(name, opened.classifier, joined, examples, test_file.threads)


class _ShownRecords:
    """The records of a file as dicts without the target; indices count from the beginning of the file."""

    def __init__(self, opened: OpenedRecords, blocks: Sequence[Block]) -> None:
        self._opened = opened
        self._blocks = blocks
        self._block_starts = [0, *accumulate(block.n_rows for block in blocks)]

    def __getitem__(self, example: int) -> dict[str, Any]:
        block_index = bisect_right(self._block_starts, example) - 1
        block = self._blocks[block_index].one(example - self._block_starts[block_index])
        return drop_target(self._opened, block.records()[0])


def _score_rows(opened: Opened, name: str, test_file: TestFile) -> ModelPredictions:
    expect_rows(opened, test_file.file)
    classifier = opened.get_classifier(test_file.display, threads=test_file.threads)
    rows = read_rows_to_predict(
        opened, test_file.file, test_file.display, test_file.zero_based, test_file.threads
    )
    matched_rows = canonical_rows(match_width(opened.model, rows.X, test_file.file))
    examples = Examples(class_labels(rows.y), Path(test_file.file).name, "row", rows.qid)
    return predict_examples(name, classifier, matched_rows, examples, test_file.threads)


def _score_trees(opened: OpenedTrees, name: str, test_file: TestFile) -> ModelPredictions:
    check_rows_only([test_file.file], test_file.zero_based)
    tree_examples = read_for_model(opened.model, opened.path, test_file.file, test_file.display)
    forest = tree_examples.data.X
    examples = Examples(
        np.asarray(tree_examples.labels), Path(test_file.file).name, "tree", show=format_tree(forest)
    )
    return predict_examples(name, opened.classifier, forest, examples, test_file.threads)
