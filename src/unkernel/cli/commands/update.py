"""``unkernel update``: update a model of records with new records."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from unkernel.cli.inputs.model_kinds import is_records
from unkernel.cli.inputs.records import (
    OpenedRecords,
    check_records,
    open_record_file,
    open_record_model,
    read_blocks,
    read_labels,
)
from unkernel.cli.learners.record_training import expand_files
from unkernel.cli.options import shared_options, train_options
from unkernel.cli.output_files import check_model_output, require_output
from unkernel.cli.quality import log_loss
from unkernel.cli.terminal.console import format_seconds, format_size, print_facts, print_json
from unkernel.cli.terminal.progress import Display
from unkernel.engines import RecordClassifier
from unkernel.measures.number_format import format_labels, format_percent
from unkernel.models import ConjunctionModel
from unkernel.records.files.training_table import check_columns
from unkernel.selection import update_classifier
from unkernel.selection.updates import make_learner

_LONGEST_NAME = 60  # characters of a feature's name that are printed
ModelToUpdate = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="Model of records, made by unkernel train FILE --target COLUMN.", readable=False
    ),
]
Forget = Annotated[
    float,
    typer.Option(
        "--forget",
        min=0.0,
        max=1.0,
        metavar="SHARE",
        help="Share of the old records to forget: 0 counts old and new records equally, 1 counts only new "
        "records.",
    ),
]
MinCount = Annotated[
    int,
    typer.Option(
        "--min-count",
        min=1,
        metavar="N",
        help="Smallest number of new records in which a new category or word must occur to get a feature.",
    ),
]


def update(
    model: ModelToUpdate,
    data: train_options.RecordFiles,
    *,
    output: train_options.ModelOutput = None,
    forget: Forget = 0.0,
    min_count: MinCount = 1,
    jobs: shared_options.Jobs = None,
    json: shared_options.Json = False,
    quiet: shared_options.Quiet = False,
    force: shared_options.Force = False,
) -> None:
    """Update a model of records with new records, without those that it was trained on.

    The model keeps how certain each of its weights is. An update minimises the loss of the new records, and
    moves weights the less, the more old records support them. It takes as long as training on the new records
    alone. New categories and words get features; new classes need new training.

    The new records need the columns and the target of the training data. The old model is first measured on
    them, which shows how well it predicted what came after it.

    \b
    [dim]$[/dim] unkernel update income.uk today.csv -o income.new.uk
    [dim]$[/dim] unkernel update rent.uk 'week-*.csv' -o rent.uk --forget 0.2
    [dim]$[/dim] unkernel update income.uk today.parquet -o income.uk --json | jq .before
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    target_file = require_output(output, "update", [model, *data, "updated.uk"])
    files = expand_files(data)
    check_model_output(target_file, *files, force=force)
    with Display(quiet=quiet or json) as display:
        start = time.perf_counter()
        opened = _open_model(model)
        threads = shared_options.count_threads(jobs)
        columns, labels = _read_records(opened, files, threads, display)
        read_end = time.perf_counter()
        classifier = opened.classifier
        with display.show_work("updating"):
            try:
                before = _measure(classifier, columns, labels, threads)
                updated = update_classifier(
                    classifier, columns, labels, forget=forget, min_count=min_count, n_jobs=threads
                )
            except (ValueError, TypeError) as error:
                raise ValueError(f"{', '.join(files)}: {error}") from error
        update_end = time.perf_counter()
        updated.save(target_file)
    new_names = Counter(updated.plan.feature_names) - Counter(classifier.plan.feature_names)
    result = {
        "model": str(target_file),
        "data": files,
        "rows": len(labels),
        "forget": forget,
        "new_features": list(new_names.elements()),
        "weights": {"before": _count_weights(classifier), "after": _count_weights(updated)},
        "before": before,
        "gap": updated.classifier.model.origin["gap"],
        "updates": updated.classifier.model.origin["updates"],
        "bytes": target_file.stat().st_size,
        "seconds": {"reading": read_end - start, "updating": update_end - read_end},
    }
    if json:
        print_json(result)
    elif not quiet:
        _print(result)


def _open_model(path: Path) -> OpenedRecords:
    """Open a model of records; raise ``ValueError`` if it cannot be updated."""
    if not is_records(path):
        raise ValueError(f"{path}: not a model of records; unkernel train FILE --target COLUMN makes one")
    opened = open_record_model(path)
    check_records(opened)
    if opened.classifier.decision.outputs:
        raise ValueError(f"{path}: a model of several labels or outputs cannot be updated; train it again")
    try:
        make_learner(opened.classifier.classifier)
    except ValueError as error:
        raise ValueError(
            f"{path}: keeps nothing of its training records that an update could use; train it with unkernel "
            "train FILE --target COLUMN, without a kind"
        ) from error
    if opened.target is None:
        raise ValueError(
            f"{path}: the model does not name the column it predicts, because it was trained from Python: "
            "update it there, with unkernel.selection.update_classifier"
        )
    return opened


def _read_records(
    opened: OpenedRecords, files: Sequence[str], threads: int, display: Display
) -> tuple[dict[str, list[Any]], NDArray[Any]]:
    """Return the columns that the model reads, and the targets."""
    columns: dict[str, list[Any]] = {name: [] for name in opened.classifier.plan.columns}
    labels: list[NDArray[Any]] = []
    for name in files:
        with open_record_file(name, display) as file:
            if file.columns is not None:
                check_columns(name, file.columns, [str(opened.target)], str(opened.target))
            for block in read_blocks(opened, file, threads):
                block_labels = read_labels(block, opened.target)
                if block_labels is None:
                    raise ValueError(f"{name}: not all records have a value in column {opened.target!r}")
                labels.append(block_labels)
                for column in columns:
                    values = block.values(column)
                    columns[column] += [None] * block.n_rows if values is None else values
    if not labels:
        raise ValueError(f"{', '.join(files)}: there is no record")
    return columns, np.concatenate(labels)


def _measure(
    classifier: RecordClassifier, columns: dict[str, list[Any]], labels: NDArray[Any], threads: int
) -> dict[str, float | None]:
    """Return the old model's accuracy and log loss on the new records; for numbers, only the RMSE."""
    predicted = classifier.predict(columns, n_jobs=threads)
    if not len(classifier.decision.classes):
        error = float(np.sqrt(np.mean((predicted - labels.astype(float)) ** 2)))
        return {"root_mean_squared_error": error}
    decision = classifier.decision
    scores = classifier.decision_function(columns, n_jobs=threads).reshape(-1, decision.n_scores)
    loss = log_loss(decision, scores, labels) if np.isin(labels, decision.classes).all() else None
    return {"accuracy": float(np.mean(predicted == labels)), "log_loss": loss}


def _count_weights(classifier: RecordClassifier) -> int:
    model = classifier.classifier.model
    assert isinstance(model, ConjunctionModel)  # other models cannot be updated
    return model.n_conjunctions


def _print(result: dict[str, Any]) -> None:
    before, weights, seconds = result["before"], result["weights"], result["seconds"]
    names = result["new_features"]
    if "accuracy" in before:
        quality = f"accuracy {format_percent(before['accuracy'])}"
        quality += "" if before["log_loss"] is None else f", log loss {before['log_loss']:.4g}"
    else:
        quality = f"root mean squared error {before['root_mean_squared_error']:.4g}"
    listed = format_labels([name[:_LONGEST_NAME] for name in names], 4)
    features = f"{len(names):,}: {listed}" if names else "none"
    print_facts(
        result["model"],
        {
            "new records": f"{result['rows']:,}",
            "old model on them": quality,
            "new features": features,
            "weights": f"{weights['before']:,} before, {weights['after']:,} now",
            "certified gap": f"{result['gap']:.2g}",
            "bytes": format_size(result["bytes"]),
            "time": f"{format_seconds(seconds['reading'])} reading, "
            f"{format_seconds(seconds['updating'])} updating",
        },
    )
