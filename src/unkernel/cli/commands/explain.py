"""``unkernel explain``: contributions of conjunctions to a row's score, or of fragments to a tree's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unkernel.cli.explanations import describe_explanation, find_class, list_prediction
from unkernel.cli.inputs.feature_names import read_names
from unkernel.cli.inputs.labelled_files import class_labels
from unkernel.cli.inputs.model_kinds import (
    ROWS_NOT_PARSERS,
    ROWS_NOT_RECORDS,
    ROWS_NOT_TREES,
    is_parser,
    is_records,
    refuse_options,
)
from unkernel.cli.inputs.models import (
    Opened,
    OpenedTrees,
    first_index,
    open_model,
    read_stored_feature_names,
)
from unkernel.cli.inputs.prediction_rows import expect_rows, read_rows_to_predict
from unkernel.cli.inputs.records import check_no_records
from unkernel.cli.inputs.trees import check_rows_only, read_for_model
from unkernel.cli.options import shared_options
from unkernel.cli.render.explanation import print_explanation
from unkernel.cli.terminal.console import print_json
from unkernel.cli.terminal.progress import Display
from unkernel.data import SvmlightData
from unkernel.engines import CompiledClassifier, Explanation, Fragment
from unkernel.measures.number_format import format_count
from unkernel.models import ConjunctionModel, KernelModel

_TOP, _TOP_PER_DECISION = 10, 3


def explain(
    model: shared_options.AnyModelFile,
    data: shared_options.ExplainedFile,
    *,
    row: shared_options.Row = 0,
    top: shared_options.TopOfRow = None,
    of: shared_options.OfClass = None,
    features: shared_options.Features = None,
    zero_based: shared_options.ZeroBasedLikeModel = None,
    json: shared_options.Json = False,
) -> None:
    """Explain a score: list the contribution of each conjunction of features.

    The intercept, the listed contributions and the rest add up exactly to the
    score. This works for linear models and polynomial kernels up to degree 4.
    For models of trees, the fragments with the largest contributions are
    listed. For a model of records, give a file, or one record as JSON. For a
    parser, every decision on a sentence is explained: the winner, the
    runner-up, and the difference between them.

    \b
    [dim]$[/dim] unkernel explain model.uk rows.svm
    [dim]$[/dim] unkernel explain model.uk rows.svm --row 17 --top 20 --features names.txt
    [dim]$[/dim] unkernel explain income.uk new.csv --row 3
    [dim]$[/dim] unkernel explain income.uk '{"age": 39, "education": "Masters", "hours_per_week": 50}'
    [dim]$[/dim] unkernel explain trees.uk questions.dat --row 17 --of DESC
    [dim]$[/dim] unkernel explain libsvm.model rows.svm --json | jq .contributions[0]
    [dim]$[/dim] unkernel explain parser.uk test.conllu --row 3 --top 5
    [dim]$[/dim] unkernel explain en.uk notes.txt --row 3
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    if is_parser(model):
        from unkernel.cli.inputs.decisions import explain_sentence

        row_options = {"--of": of, "--features": features, "--zero-based": zero_based}
        refuse_options(model, row_options, ROWS_NOT_PARSERS)
        explanation = explain_sentence(
            model, data, row, _TOP_PER_DECISION if top is None else top, quiet=json
        )
    elif is_records(model):
        from unkernel.cli.records.explanation import explain_record

        row_options = {"--features": features, "--zero-based": zero_based}
        refuse_options(model, row_options, ROWS_NOT_RECORDS)
        explanation = explain_record(model, data, row, _TOP if top is None else top, of, quiet=json)
    else:
        opened, top = open_model(model, "explain"), _TOP if top is None else top
        check_no_records(data, model)
        if isinstance(opened, OpenedTrees):
            check_rows_only([], zero_based)
            refuse_options(model, {"--features": features}, ROWS_NOT_TREES)
            explanation = _explain_tree(opened, data, row, top, of, quiet=json)
        else:
            rows = _read_rows(opened, data, zero_based, quiet=json)
            names = read_names(
                features, first_index(opened.model, rows.zero_based)
            ) or read_stored_feature_names(opened.model)
            explanation = {"model": str(model), "data": data} | _explain_row(opened, rows, row, top, of)
            explanation |= _name_features(explanation["contributions"], names)
    if json:
        print_json(explanation)
    else:
        print_explanation(explanation)


def _explain_tree(
    opened: OpenedTrees, data: str, row: int, top: int, of: str | None, *, quiet: bool
) -> dict[str, Any]:
    """Explain the score of tree number `row` by the `top` fragments that contribute most, for JSON."""
    with Display(quiet=quiet) as display:
        examples = read_for_model(opened.model, opened.path, data, display)
        if row >= examples.count:
            raise ValueError(
                f"{data}: has {format_count(examples.count, 'tree')}, so there is no tree {row:,}"
            )
        with display.show_work("explaining"), _name_model_in_errors(opened.path):
            tree = examples.data.X[row : row + 1]
            explanation = opened.classifier.explain(
                tree, max(top, 1), of=find_class(opened.model.decision, of)
            )
            prediction = opened.classifier.predict(tree, n_jobs=1).tolist()[0]
    listed = explanation.fragments[:top]
    labels = examples.data.y
    return {
        "model": str(opened.path),
        "data": data,
        "row": row,
        "label": None if labels is None else class_labels(labels[row : row + 1]).tolist()[0],
        "prediction": prediction,
        "of": explanation.for_class,
        "against": explanation.against,
        "score": explanation.score,
        "intercept": explanation.intercept,
        "contributions": [_fragment_to_json(fragment) for fragment in listed],
        "rest": explanation.rest + sum(fragment.value for fragment in explanation.fragments[top:]),
        "complete": explanation.complete,
    }


def _fragment_to_json(fragment: Fragment) -> dict[str, Any]:
    return {
        "fragment": fragment.text,
        "tree": fragment.channel,
        "value": fragment.value,
        "weight": fragment.weight,
        "occurrences": fragment.occurrences,
    }


@contextlib.contextmanager
def _name_model_in_errors(path: Path) -> Iterator[None]:
    """Add the file name of the model to error messages."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read_rows(opened: Opened, data: str, zero_based: bool | None, *, quiet: bool) -> SvmlightData:
    expect_rows(opened, data)
    with Display(quiet=quiet) as display:
        return read_rows_to_predict(opened, data, display, zero_based)


def _explain_row(opened: Opened, rows: SvmlightData, row: int, top: int, of: str | None) -> dict[str, Any]:
    """Explain the score of the row with index `row`, for JSON, by the `top` largest contributions."""
    if row >= rows.X.shape[0]:
        raise ValueError(f"the file has {format_count(rows.X.shape[0], 'row')}, so there is no row {row:,}")
    # Explain the exact model, even if the engine of the file is "pruned", which is an approximation.
    classifier = CompiledClassifier(opened.model)
    features = rows.X[row]
    values = dict(zip(features.indices.tolist(), features.data.tolist(), strict=True))
    of_class = find_class(opened.model.decision, of)
    with _name_model_in_errors(opened.path):
        explanation = classifier.explain(values, top, of=of_class)
    return _describe_row(opened, explanation, rows, row)


def _describe_row(opened: Opened, explanation: Explanation, rows: SvmlightData, row: int) -> dict[str, Any]:
    """Describe the explanation of a row, for JSON."""
    decision, index_base = opened.model.decision, first_index(opened.model, rows.zero_based)
    prediction = list_prediction(decision, decision.choose(np.atleast_2d(explanation.score)).tolist()[0])
    return {
        "row": row,
        "label": class_labels(rows.y[row : row + 1]).tolist()[0],
        "prediction": prediction,
        **describe_explanation(
            explanation,
            decision,
            lambda part: {
                "columns": list(part.features),
                "features": [column + index_base for column in part.features],
            },
        ),
        "basis": "sets" if _has_sets(opened, rows.X[row]) else "monomials",
        "exact": opened.classifier is None or opened.classifier.exact,
    }


def _name_features(parts: list[dict[str, Any]], names: dict[int, str]) -> dict[str, Any]:
    """Replace the columns of contributions by feature names or, without names, by the numbers in files."""
    contributions = []
    for part in parts:
        columns, numbers = part["columns"], part["features"]
        named = {key: value for key, value in part.items() if key != "columns"}
        named["names"] = [
            names.get(column, str(number)) for column, number in zip(columns, numbers, strict=True)
        ]
        contributions.append(named)
    return {"contributions": contributions}


def _has_sets(opened: Opened, row: Any) -> bool:
    """Return whether conjunctions are sets of features, in which no feature has a power above 1."""
    if isinstance(opened.model, ConjunctionModel):
        return opened.model.sets
    return not isinstance(opened.model, KernelModel) or (opened.model.binary and bool((row.data == 1).all()))
