"""The options of ``unkernel train``. Defaults are the learners' own: ``--help`` reads them there."""

from __future__ import annotations

import inspect
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from unkernel.cutplane import CuttingPlaneSVC, RankSVM
from unkernel.poly import PolySVC

_ESTIMATORS = {"poly": PolySVC, "linear": CuttingPlaneSVC, "rank": RankSVM}

_svm = partial(typer.Option, rich_help_panel="The SVM")
_poly = partial(typer.Option, rich_help_panel="--model poly")
_linear = partial(typer.Option, rich_help_panel="--model linear")
_rank = partial(typer.Option, rich_help_panel="--model rank")
_solver = partial(typer.Option, rich_help_panel="The solver")
_large = partial(typer.Option, rich_help_panel="Large data: --model linear and rank")


class ModelKind(StrEnum):
    poly = "poly"
    linear = "linear"
    rank = "rank"


class LossName(StrEnum):
    hinge = "hinge"
    squared_hinge = "squared_hinge"


class FeatureMapName(StrEnum):
    kernel = "kernel"
    plain = "plain"


class StorageName(StrEnum):
    auto = "auto"
    on_the_fly = "on_the_fly"
    condensed = "condensed"


class ObjectiveName(StrEnum):
    error_rate = "error_rate"
    f1 = "f1"
    break_even = "break_even"
    precision_at_k = "precision_at_k"
    roc_area = "roc_area"


class SolverName(StrEnum):
    auto = "auto"
    cutting_plane = "cutting_plane"
    dual = "dual"


def _default(parameter: str) -> str:
    """The default of all learners that have the parameter, or of each."""
    by_model: dict[Any, list[str]] = {}
    for name, estimator in _ESTIMATORS.items():
        if parameter in (found := inspect.signature(estimator).parameters):
            by_model.setdefault(found[parameter].default, []).append(name)
    if len(by_model) == 1:
        return str(*by_model)
    return "; ".join(f"{', '.join(names)}: {value}" for value, names in by_model.items())


DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="Rows in the svmlight format, plain or .gz, .xz, .bz2, .zst; - reads stdin. Several files, or "
        "patterns such as 'part-*.svm', with --out-of-core or --dask.",
    ),
]
Kind = Annotated[
    ModelKind,
    _svm(
        "--model",
        help="poly: conjunctions of features, as a polynomial kernel has them; linear: a weight a feature; "
        "rank: weights that order rows, within the groups that qid: fields name.",
    ),
]
Cost = Annotated[
    float | None,
    _svm(
        "--C",
        "-C",
        help="Weight of the losses; larger fits the rows more closely.",
        show_default=_default("C"),
    ),
]
Loss = Annotated[
    LossName | None,
    _svm(help="What a row on the wrong side costs; poly and linear.", show_default=_default("loss")),
]
ClassWeight = Annotated[
    str | None,
    _svm(
        metavar="balanced|LABEL=WEIGHT,…",
        help="Factors of C, by class; poly and linear.",
        show_default="all 1",
    ),
]

Degree = Annotated[
    int | None,
    _poly(help="Features in a conjunction, at most: 1, 2 or 3.", show_default=_default("degree")),
]
Gamma = Annotated[
    str | None,
    _poly(
        metavar="FLOAT|scale|auto",
        help="Factor of the kernel's inner product.",
        show_default=_default("gamma"),
    ),
]
Coef0 = Annotated[float | None, _poly(help="Constant of the kernel.", show_default=_default("coef0"))]
FeatureMap = Annotated[
    FeatureMapName | None,
    _poly(help="The kernel's map, or 1 as every coefficient.", show_default=_default("feature_map")),
]
Storage = Annotated[
    StorageName | None,
    _poly(help="Where conjunctions live; the model is the same.", show_default=_default("storage")),
]

Objective = Annotated[
    ObjectiveName | None,
    _linear(help="What is optimised, as in SVMperf.", show_default=_default("objective")),
]
TopRows = Annotated[
    int | None,
    _linear("--k", help="For --objective precision_at_k: how many rows are on top.", show_default=False),
]
Solver = Annotated[
    SolverName | None,
    _linear(help="Both stop at the same gap; dual needs rows in memory.", show_default=_default("solver")),
]
Intercept = Annotated[
    bool | None,
    _linear("--intercept/--no-intercept", help="Whether scores have a constant.", show_default="--intercept"),
]
InterceptScaling = Annotated[
    float | None,
    _linear(help="Larger constants are regularised less.", show_default=_default("intercept_scaling")),
]

Thresholds = Annotated[
    bool | None,
    _rank(
        "--thresholds",
        help="Learn the scores between the labels as well: the model then answers with labels.",
        show_default=False,
    ),
]

Tolerance = Annotated[
    float | None, _solver(help="Stop at this relative duality gap.", show_default=_default("tol"))
]
MaxIter = Annotated[
    int | None,
    _solver(help="Stop after so many passes over the rows.", show_default=_default("max_iter")),
]
MaxCuts = Annotated[
    int | None,
    _solver(
        help="Cuts that are kept, of 8 bytes a feature; linear and rank.", show_default=_default("max_cuts")
    ),
]
Seed = Annotated[
    int | None,
    _solver(
        min=0,
        max=2**32 - 1,
        help="Of the order in which rows are visited; poly and linear.",
        show_default="0",
    ),
]

OutOfCore = Annotated[
    bool | None,
    _large(
        "--out-of-core",
        help="Pack the rows into a file once and stream them from there: they may be larger than memory.",
        show_default=False,
    ),
]
Memory = Annotated[
    str | None,
    _large(
        metavar="BYTES",
        help="With --out-of-core: what training may take, such as 200M or 1.5G.",
        show_default="no limit",
    ),
]
Cache = Annotated[
    Path | None,
    _large(
        metavar="FILE",
        help="With --out-of-core: where the packed rows are kept.",
        show_default="beside the data, .rows",
    ),
]
CheckpointFolder = Annotated[
    Path | None,
    _large(
        "--checkpoint",
        metavar="FOLDER",
        help="Keep what was found so far there: the same command goes on after it was killed.",
        show_default="none",
    ),
]
Dask = Annotated[
    str | None,
    _large(
        metavar="ADDRESS|local",
        help="Train on the workers of a Dask scheduler; local starts --jobs of them here.",
        show_default="none",
    ),
]
