"""The options of ``unkernel train``. Defaults are the learners' own: ``--help`` reads them there."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from unkernel.cli.learners.base import default_words
from unkernel.cutplane import CuttingPlaneSVC, RankSVM
from unkernel.poly import PolyLogisticRegression, PolySVC
from unkernel.tree import TreeSVC

_ESTIMATORS = {
    "poly": PolySVC,
    "logistic": PolyLogisticRegression,
    "linear": CuttingPlaneSVC,
    "rank": RankSVM,
    "tree": TreeSVC,
}

_svm = partial(typer.Option, rich_help_panel="The SVM")
_poly = partial(typer.Option, rich_help_panel="--model poly and logistic")
_linear = partial(typer.Option, rich_help_panel="--model linear")
_rank = partial(typer.Option, rich_help_panel="--model rank")
_tree = partial(typer.Option, rich_help_panel="--model tree")
_solver = partial(typer.Option, rich_help_panel="The solver")
_large = partial(typer.Option, rich_help_panel="Large data: --model linear and rank")


class ModelKind(StrEnum):
    poly = "poly"
    logistic = "logistic"
    linear = "linear"
    rank = "rank"
    tree = "tree"


class LossName(StrEnum):
    hinge = "hinge"
    squared_hinge = "squared_hinge"


class PenaltyName(StrEnum):
    l1 = "l1"
    l2 = "l2"
    elasticnet = "elasticnet"


class FeatureMapName(StrEnum):
    kernel = "kernel"
    plain = "plain"


class StorageName(StrEnum):
    auto = "auto"
    on_the_fly = "on_the_fly"
    condensed = "condensed"
    split_ = "split"  # the plain name is a method of strings


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
    exact = "exact"
    sampled = "sampled"


class TreeKernelName(StrEnum):
    sst = "sst"
    st = "st"
    sst_bow = "sst_bow"
    ptk = "ptk"


class PairingName(StrEnum):
    same = "same"
    all = "all"


class CombinationName(StrEnum):
    auto = "auto"
    trees = "trees"
    vectors = "vectors"
    sum = "sum"
    product = "product"


class VectorKernelName(StrEnum):
    linear = "linear"
    polynomial = "polynomial"
    rbf = "rbf"
    sigmoid = "sigmoid"


_default = partial(default_words, _ESTIMATORS)


DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="Rows in the svmlight format, or trees, plain or .gz, .xz, .bz2, .zst; - reads stdin. Several "
        "files, or patterns such as 'part-*.svm', with --out-of-core or --dask.",
    ),
]
Kind = Annotated[
    ModelKind | None,
    _svm(
        "--model",
        help="poly: conjunctions of features, as a polynomial kernel has them; logistic: these as a "
        "log-linear model, with probabilities; linear: a weight a feature; "
        "rank: weights that order rows, within the groups that qid: fields name; tree: fragments of trees, "
        "as a tree kernel counts them.",
        show_default="tree with --kernel or where DATA holds trees, else poly",
    ),
]
Cost = Annotated[
    float | None,
    _svm(
        "--C",
        "-C",
        help="Weight of the losses; larger fits the data more closely.",
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
        help="Factors of C, by class; not rank.",
        show_default="all 1",
    ),
]

Degree = Annotated[
    int | None,
    _poly(
        help="Features in a conjunction, at most: 1, 2 or 3. Of tree: of the polynomial --vector-kernel.",
        show_default=_default("degree"),
    ),
]
Gamma = Annotated[
    str | None,
    _poly(
        metavar="FLOAT|scale|auto",
        help="Factor of the kernel's inner product; of tree, where it is a number, of --vector-kernel's.",
        show_default=_default("gamma"),
    ),
]
Coef0 = Annotated[
    float | None,
    _poly(help="Constant of the kernel; of tree: of --vector-kernel.", show_default=_default("coef0")),
]
Penalty = Annotated[
    PenaltyName | None,
    _poly(
        help="On the size of weights. With l1 most are 0 and not stored; of poly, it needs --loss "
        "squared_hinge. elasticnet is for logistic.",
        show_default=_default("penalty"),
    ),
]
L1Ratio = Annotated[
    float | None,
    _poly(help="Share of l1 in --penalty elasticnet.", show_default=_default("l1_ratio")),
]
FeatureMap = Annotated[
    FeatureMapName | None,
    _poly(help="The kernel's map, or 1 as every coefficient.", show_default=_default("feature_map")),
]
Storage = Annotated[
    StorageName | None,
    _poly(
        help="Where conjunctions live, with --penalty l2; the model is the same.",
        show_default=_default("storage"),
    ),
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
    _solver(
        help="linear: cutting_plane or dual, which stop at the same gap; dual needs rows in memory. tree: "
        "exact, or sampled, which is approximate and takes the same time for any number of trees.",
        show_default=_default("solver"),
    ),
]
Intercept = Annotated[
    bool | None,
    _solver(
        "--intercept/--no-intercept",
        help="Whether scores have a constant; linear and tree.",
        show_default="--intercept",
    ),
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

TreeKernel = Annotated[
    TreeKernelName | None,
    _tree(
        "--kernel",
        help="What counts of a tree: connected pieces that keep whole productions (sst), whole subtrees "
        "(st), those of sst and words (sst_bow), any connected pieces (ptk).",
        show_default=_default("kernel"),
    ),
]
Decay = Annotated[
    float | None, _tree(help="lambda: larger fragments count less.", show_default=_default("decay"))
]
WidthDecay = Annotated[float | None, _tree(help="mu, of --kernel ptk.", show_default=_default("width_decay"))]
Normalize = Annotated[
    bool | None,
    _tree(
        "--normalize/--no-normalize",
        help="Whether each tree's kernel with itself is brought to 1.",
        show_default="--normalize",
    ),
]
SampleSize = Annotated[
    int | None,
    _tree(help="Of --solver sampled: trees in a sample.", show_default=_default("sample_size")),
]
Imbalance = Annotated[
    float | None,
    _tree(
        help="How much more a positive tree weighs: above 1 finds more of them, at the price of precision.",
        show_default=_default("imbalance"),
    ),
]
TreePairing = Annotated[
    PairingName | None,
    _tree(
        help="Where examples have several trees: compare first with first and so on, or all with all.",
        show_default=_default("tree_pairing"),
    ),
]
Combine = Annotated[
    CombinationName | None,
    _tree(
        help="What of the examples counts; auto is the sum where there are vectors beside the trees.",
        show_default=_default("combine"),
    ),
]
TreeWeight = Annotated[
    float | None, _tree(help="Weight of the trees in a sum.", show_default=_default("tree_weight"))
]
VectorKernel = Annotated[
    VectorKernelName | None,
    _tree(
        help="Of the vectors beside the trees; with --degree, --gamma, --coef0.",
        show_default=_default("vector_kernel"),
    ),
]
NormalizeVectors = Annotated[
    bool | None,
    _tree(
        "--normalize-vectors/--no-normalize-vectors",
        help="Whether each vector's kernel with itself is brought to 1.",
        show_default="--normalize-vectors",
    ),
]

Tolerance = Annotated[
    float | None, _solver(help="Stop at this relative duality gap.", show_default=_default("tol"))
]
MaxIter = Annotated[
    int | None,
    _solver(help="Stop after so many passes over the rows, or steps.", show_default=_default("max_iter")),
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
        help="Of the order in which rows are visited, or of what --solver sampled draws; not rank.",
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
