"""Options of ``unkernel train`` and ``unkernel tune`` that are not parameters of estimators."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

LARGE_DATA_PANEL = "Large data"
RECORDS_PANEL = "Records: CSV, TSV, JSON lines, Parquet"
_large = partial(typer.Option, rich_help_panel=LARGE_DATA_PANEL)
_records = partial(typer.Option, rich_help_panel=RECORDS_PANEL)


class FormatName(StrEnum):
    conllu = "conllu"
    conllx = "conllx"


_COMPRESSION = "plain or .gz, .xz, .bz2, .zst; - reads stdin."


def _data_argument(help: str, metavar: str = "DATA") -> Any:
    """Return the argument that names the training data."""
    return Annotated[list[str], typer.Argument(metavar=metavar, show_default=False, help=help)]


RowFiles = _data_argument(
    f"Rows in the svmlight format, such as train.svm, or records, such as train.csv, {_COMPRESSION} Records "
    "may come in several files, or by patterns in quotes such as 'part-*.csv'; rows, too, with --out-of-core "
    "or --dask.",
    "DATA...",
)
RecordFiles = _data_argument(
    f"Records in CSV, TSV, JSON lines or Parquet, such as train.csv, {_COMPRESSION} They may come in several "
    "files, or by patterns in quotes such as 'part-*.csv'.",
    "DATA...",
)
RowOrRecordFile = _data_argument(
    "Rows in the svmlight format, such as train.svm, or records in CSV, TSV, JSON lines or Parquet, such as "
    f"train.csv, {_COMPRESSION} Records may come in several files, or by patterns in quotes."
)
RowFile = _data_argument(f"Rows in the svmlight format, such as train.svm, {_COMPRESSION}")
TreeFile = _data_argument(
    f"Trees in the format of SVM-light-TK or KeLP, such as questions.dat, {_COMPRESSION}"
)
SentenceFile = _data_argument(f"Annotated sentences, such as train.conllu, {_COMPRESSION}")
ModelOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="MODEL",
        readable=False,
        show_default="required",
        help="Model file to write, such as model.uk. Replaces only models of unkernel.",
    ),
]
BestOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="MODEL",
        readable=False,
        show_default="none",
        help="Train with the best parameters on all of DATA, and write the model there. Replaces only models "
        "of unkernel.",
    ),
]
Folds = Annotated[
    int | None,
    typer.Option("--cv", metavar="K", min=2, help="Also cross-validate in K folds.", show_default="none"),
]
TuneFolds = Annotated[
    int | None,
    typer.Option("--cv", metavar="K", min=2, help="Folds of the cross-validation.", show_default="5"),
]
NdcgDepth = Annotated[
    int | None,
    typer.Option(
        "--ndcg-at",
        metavar="K",
        min=1,
        help="Number of top rows of a query that NDCG counts.",
        show_default="10",
    ),
]
Thresholds = Annotated[
    bool,
    typer.Option(
        "--thresholds",
        help="Also learn thresholds between the labels, so that the model predicts labels.",
    ),
]
ProbabilityThreshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="P",
        help="Predict the second of two classes, in sorted order, if its probability is at least P.",
        show_default="none: the more probable class",
    ),
]
StoredThreshold = Annotated[
    float | None,
    typer.Option(
        "--decision-threshold",
        metavar="P",
        help="Predict the second of two classes, in sorted order, if its probability is at least P.",
        show_default="as before",
    ),
]
CostsOfErrors = Annotated[
    str | None,
    typer.Option(
        "--costs",
        metavar="FP,FN",
        help="Set the threshold to FP / (FP + FN), by the costs of a false positive and of a false negative, "
        "such as 1,5, or false_positive=1,false_negative=5.",
        show_default="none",
    ),
]
DevFile = Annotated[
    str | None,
    typer.Option(
        "--dev",
        metavar="FILE",
        show_default="none",
        help="Sentences to evaluate on; the online learner keeps the best epoch on them.",
    ),
]
TuneDevFile = Annotated[
    str | None,
    typer.Option(
        "--dev",
        metavar="FILE",
        show_default="none: cross-validation",
        help="Sentences to evaluate on, instead of cross-validation.",
    ),
]
Format = Annotated[
    FormatName | None, typer.Option("--format", help="Format of the treebank.", show_default="conllu")
]

Target = Annotated[
    str | None,
    _records(
        "--target",
        metavar="COLUMN",
        show_default="none",
        help="Column to predict; DATA then contains records.",
    ),
]
Schema = Annotated[
    str | None,
    _records(
        "--schema",
        metavar="FILE",
        show_default="kinds are found",
        help="JSON file with kinds of columns: category, binned, number, date, text, strings or drop, "
        'such as {"zip": "category"}.',
    ),
]
Drop = Annotated[
    list[str] | None,
    _records("--drop", metavar="COLUMN", show_default="none", help="Column to leave out; may be repeated."),
]


class TargetTask(StrEnum):
    """How the values of a target are predicted: as classes or as numbers."""

    classes = "classes"
    numbers = "numbers"


PredictedAs = Annotated[
    TargetTask | None,
    _records("--as", show_default="found", help="Predict the target as classes or as numbers."),
]
Minutes = Annotated[
    float | None,
    _records("--minutes", min=0.01, show_default="none", help="Time after which no further model is tried."),
]
HeldOutSeed = Annotated[
    int | None,
    _records("--seed", min=0, max=2**32 - 1, show_default="0", help="Seed of the records that are held out."),
]
MinCount = Annotated[
    int | None,
    _records(
        "--min-count",
        min=1,
        show_default="1, with texts 3",
        help="Smallest number of records for a category or word to get its own feature.",
    ),
]
ClassWeight = Annotated[
    str | None,
    _records(
        "--class-weight",
        metavar="WEIGHTS",
        show_default="none",
        help="Weights of the classes: balanced, or a list such as yes=5,no=1.",
    ),
]
Calibrate = Annotated[
    int | None,
    _records(
        "--calibrate",
        metavar="K",
        min=0,
        show_default="3",
        help="Folds to learn probabilities from, if the model has none of its own; 0 for no probabilities.",
    ),
]

OutOfCore = Annotated[
    bool,
    _large(
        "--out-of-core",
        help="Pack the rows into a file and stream them from there; for data larger than memory.",
    ),
]
Memory = Annotated[
    str | None,
    _large(
        "--memory",
        metavar="BYTES",
        help="With --out-of-core: memory limit for training, such as 200M or 1.5G.",
        show_default="no limit",
    ),
]
Dask = Annotated[
    str | None,
    _large(
        "--dask",
        metavar="ADDRESS|local",
        help="Address of a Dask scheduler to train on; local starts --jobs workers on this machine.",
        show_default="none",
    ),
]
