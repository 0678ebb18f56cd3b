"""Random models of records: encoders and learners of this package, and pipelines of scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, LinearSVR

import unkernel
from one_answer import values
from one_answer.values import Random, pick
from unkernel import CuttingPlaneSVC, PolyLogisticRegression, PolyRegressor, PolySVC, RecordEncoder
from unkernel.engines.records.classifier import RecordClassifier
from unkernel.engines.search.options import ENGINES
from unkernel.models import Threshold

ROWS = 24
LABELS: list[list[Any]] = [["no", "yes"], ["no", "yes", "maybé"], [0, 1], [3, 1, 2, 7], [False, True]]
COLUMNS = {
    "colour": "category",
    "größe": "number",
    "size": "number",
    "grade": "grade",
    "when": "date",
    "note": "text",
    "member": "flag",
    "tags": "tags",
}


@dataclass(frozen=True, eq=False)
class Subject:
    """A compiled model, and facts about its records.

    Attributes
    ----------
    name : str
        Description, for messages.
    model : RecordClassifier
    kinds : dict
        The kind of each column, a key of ``values.DRAWN``.
    """

    name: str
    model: RecordClassifier
    kinds: dict[str, str]

    @property
    def whole(self) -> bool:
        """Return whether a record is the text of its only column."""
        return self.model.plan.whole


def draw_subject(rng: Random) -> Subject:
    """Draw, fit and compile a model."""
    labels = pick(rng, LABELS)
    y = np.array(labels)[np.arange(ROWS) % len(labels)][rng.permutation(ROWS)]
    draw = pick(rng, [_ours, _ours, _columns, _columns, _texts])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline, X, kinds = draw(rng, len(labels))
        pipeline.fit(X, rng.normal(size=ROWS) if isinstance(pipeline[-1], RegressorMixin) else y)
        model, engine = _compile_somehow(pipeline, rng)
        model = _with_threshold(rng, model, X)
    words = " ".join(repr(pipeline).split())
    threshold = model.decision.threshold
    return Subject(f"{words} with labels {labels}, engine {engine}, {threshold}", model, kinds)


def draw_subject_of_outputs(rng: Random) -> Subject:
    """Draw, fit and compile a model of several labels or outputs."""
    last, targets, names = pick(rng, [_labels, _outputs, _numbers])(rng)
    draw = pick(rng, [_ours, _columns, _texts])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline, X, kinds = draw(rng, 2)
        pipeline.steps[-1] = ("last", last)
        pipeline.fit(X, targets)
        model, engine = _compile_somehow(pipeline, rng, classes=names)
    words = " ".join(repr(pipeline).split())
    return Subject(f"{words} with targets {targets[:3].tolist()}, engine {engine}", model, kinds)


def _labels(rng: Random) -> tuple[Any, Any, Any]:
    """Return a classifier of several labels, an indicator matrix, and names of the labels or None."""
    count = int(rng.integers(2, 5))
    indicator = (rng.random((ROWS, count)) < 0.4).astype(int)
    indicator[0], indicator[1] = 0, 1  # otherwise a column of equal values could come first
    if count > 2 and rng.random() < 0.3:
        indicator[:, int(rng.integers(count))] = int(rng.integers(2))  # a label of all rows or of none
    inner = [*_linear_classifiers(rng), PolySVC(degree=2), SVC(kernel="poly", degree=2, coef0=1.0)]
    last = OneVsRestClassifier(pick(rng, [*inner, CalibratedClassifierCV(LinearSVC(C=0.3), cv=2)]))
    if rng.random() < 0.2 and (indicator.min(axis=0) < indicator.max(axis=0)).all():
        last = RidgeClassifier()
    return last, indicator, pick(rng, [None, ["ä", "b, c", "d", "e"]])


def _outputs(rng: Random) -> tuple[Any, Any, None]:
    """Return a classifier of several outputs, and their classes."""
    choices = [np.array(["no", "yes", "maybé"]), np.array([3, 1, 2, 7])]
    classes = pick(rng, choices)
    counts = rng.integers(2, len(classes) + 1, size=int(rng.integers(1, 4)))
    columns = [classes[np.arange(ROWS) % count][rng.permutation(ROWS)] for count in counts]
    inner = [
        *_linear_classifiers(rng),
        SVC(
            kernel=pick(rng, ["linear", "poly"]), degree=2, decision_function_shape=pick(rng, ["ovr", "ovo"])
        ),
        CalibratedClassifierCV(LinearSVC(C=0.3), cv=2),
        PolySVC(degree=2),
        PolyLogisticRegression(degree=2),
    ]
    if counts.max() == 2:
        inner.append(FixedThresholdClassifier(LogisticRegression(), threshold=0.3))
    return MultiOutputClassifier(pick(rng, inner)), np.column_stack(columns), None


def _numbers(rng: Random) -> tuple[Any, Any, None]:
    """Return a regression of several numbers, and the numbers."""
    regressions = [Ridge(), MultiOutputRegressor(LinearSVR()), MultiOutputRegressor(PolyRegressor(degree=2))]
    return pick(rng, regressions), rng.normal(size=(ROWS, int(rng.integers(2, 4)))), None


def _with_threshold(rng: Random, model: RecordClassifier, X: Any) -> RecordClassifier:
    """Return the model, for some models of two classes with a threshold: often a record's probability."""
    decision = model.decision
    if len(decision.classes) != 2 or decision.probability is None or rng.random() < 0.5:
        return model
    positive = int(rng.integers(2))
    values = [0.2, 0.8, *model.predict_proba(X)[:3, positive].tolist()]
    return model.with_threshold(Threshold(pick(rng, [value for value in values if 0 < value < 1]), positive))


def _compile_somehow(pipeline: Any, rng: Random, classes: Any = None) -> tuple[RecordClassifier, str]:
    """Return a compiled pipeline, with a possible engine."""
    of_columns = not isinstance(pipeline[0], CountVectorizer | HashingVectorizer)
    options: dict[str, Any] = {"unknown_keys": "error" if of_columns and rng.random() < 0.2 else "ignore"}
    options["classes"] = classes
    for engine in [str(name) for name in rng.permutation(ENGINES)]:
        threshold = 1e-3 if engine == "pruned" else None
        try:
            return unkernel.compile(
                pipeline, engine=engine, threshold=threshold, measure=False, **options
            ), engine
        except ValueError:
            if engine == "auto":
                raise
    raise AssertionError("no engine")


def _rows(rng: Random, kinds: dict[str, str], *, hole: Any = None) -> list[dict[str, Any]]:
    """Return training records; categories and numbers may be missing (`hole`)."""
    draw = {
        "category": lambda: pick(rng, values.CATEGORIES[:6]),
        "number": lambda: round(float(rng.normal()) * 10, 1),
        "date": lambda: values.dt.datetime(2024, 1, 1) + values.dt.timedelta(hours=int(rng.integers(20000))),
        "text": lambda: " ".join(pick(rng, values.WORDS) for _ in range(5)),
        "grade": lambda: int(rng.integers(0, 4)),
        "flag": lambda: bool(rng.random() < 0.5),
        "tags": lambda: [pick(rng, values.CATEGORIES[:4]) for _ in range(2)],
    }
    may_miss = ("category", "number")
    return [
        {
            name: hole if kind in may_miss and rng.random() < 0.1 else draw[kind]()
            for name, kind in kinds.items()
        }
        for _ in range(ROWS)
    ]


def _some(rng: Random, names: list[str], min_count: int = 1) -> list[str]:
    count = int(rng.integers(min_count, len(names) + 1))
    selection = set(rng.permutation(names)[:count].tolist())
    return [name for name in names if name in selection]


# --- Encoders and learners of unkernel ----------------------------------------------------------------


def _ours(rng: Random, n_classes: int) -> tuple[Any, Any, dict[str, str]]:
    kinds = {name: COLUMNS[name] for name in _some(rng, list(COLUMNS))}
    chosen_kinds = {name: "text" for name in kinds if name == "note"}
    chosen_kinds |= {name: "date" for name in kinds if name == "when"}
    if "size" in kinds and rng.random() < 0.6:
        chosen_kinds["size"] = "number"
    if "grade" in kinds:
        chosen_kinds["grade"] = pick(rng, ["category", "binned", "number"])
    encoder = RecordEncoder(
        kinds=chosen_kinds, n_bins=int(rng.integers(2, 6)), min_count=int(rng.integers(1, 3))
    )
    learner = pick(
        rng,
        [
            PolySVC(degree=int(rng.integers(1, 4)), C=pick(rng, [0.1, 10.0])),
            PolyLogisticRegression(degree=int(rng.integers(1, 4)), C=pick(rng, [0.5, 100.0])),
            CuttingPlaneSVC(C=1.0),
            LogisticRegression(C=10.0),
            SVC(kernel="poly", degree=2, coef0=1.0, gamma=0.5),
            SVC(kernel="rbf", gamma=0.3),
        ],
    )
    if isinstance(learner, CuttingPlaneSVC) and rng.random() < 0.5:
        learner = PolyRegressor(degree=int(rng.integers(1, 4)), loss=pick(rng, ["squared_error", "quantile"]))
    return make_pipeline(encoder, learner), _rows(rng, kinds), kinds


# --- Pipelines of scikit-learn ------------------------------------------------------------------------


def _columns(rng: Random, n_classes: int) -> tuple[Any, Any, dict[str, str]]:
    """Return a ColumnTransformer of categories, numbers and texts."""
    hole = pick(rng, [None, np.nan])
    kinds = {name: COLUMNS[name] for name in ("colour", "größe", "size", "grade", "note", "member")}
    parts: list[tuple[str, Any, Any]] = []
    if rng.random() < 0.8:
        parts.append(("categories", _categories(rng), _some(rng, ["colour", "grade", "member"])))
    if rng.random() < 0.8:
        numbers = make_pipeline(SimpleImputer(strategy=pick(rng, ["mean", "most_frequent"])), _scaler(rng))
        parts.append(("numbers", numbers, _some(rng, ["größe", "size"])))
    if rng.random() < 0.5 or not parts:
        parts.append(("text", _vectorizer(rng), "note"))
    frame = pd.DataFrame(_rows(rng, kinds, hole=hole))
    frame["colour"] = pd.Series(
        [hole if pd.isna(value) else value for value in frame["colour"]], dtype=object
    )
    if rng.random() < 0.5:
        used = {name for *_, names in parts for name in ([names] if isinstance(names, str) else names)}
        frame = frame[[name for name in frame.columns if name in used]]
    steps = [("columns", ColumnTransformer(parts)), *pick(rng, [[], [], [("n", Normalizer())]])]
    frame_kinds = {str(name): kinds[str(name)] for name in frame.columns}
    return Pipeline([*steps, ("last", _classifier(rng, n_classes))]), frame, frame_kinds


def _categories(rng: Random) -> Any:
    return pick(
        rng,
        [
            OneHotEncoder(handle_unknown=pick(rng, ["ignore", "error", "infrequent_if_exist"])),
            OneHotEncoder(handle_unknown="ignore", min_frequency=3),
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
        ],
    )


def _scaler(rng: Random) -> Any:
    return pick(
        rng,
        [
            StandardScaler(),
            MinMaxScaler(clip=bool(rng.random() < 0.5)),
            MaxAbsScaler(),
            KBinsDiscretizer(n_bins=3, quantile_method="averaged_inverted_cdf"),
            PolynomialFeatures(2),
        ],
    )


def _vectorizer(rng: Random) -> Any:
    analyzer = pick(rng, ["word", "char", "char_wb"])
    options = {
        "analyzer": analyzer,
        "ngram_range": pick(rng, [(1, 1), (1, 2)] if analyzer == "word" else [(1, 2), (2, 3)]),
        "lowercase": bool(rng.random() < 0.7),
        "strip_accents": pick(rng, [None, "ascii", "unicode"]),
    }
    return pick(
        rng,
        [
            CountVectorizer(**options),
            TfidfVectorizer(**options, sublinear_tf=bool(rng.random() < 0.5)),
            HashingVectorizer(n_features=64, **options),
        ],
    )


def _linear_classifiers(rng: Random) -> list[Any]:
    return [
        LogisticRegression(C=10.0),
        LinearSVC(C=0.3),
        RidgeClassifier(),
        SGDClassifier(
            loss=pick(rng, ["hinge", "log_loss", "modified_huber"]), max_iter=20, tol=None, random_state=0
        ),
    ]


def _classifier(rng: Random, n_classes: int) -> Any:
    linear = _linear_classifiers(rng)
    nonlinear = [
        SVC(kernel=pick(rng, ["linear", "poly", "rbf"]), degree=2, coef0=1.0),
        SVC(kernel="linear", decision_function_shape="ovr", break_ties=True),
        OneVsRestClassifier(pick(rng, linear)),
        CalibratedClassifierCV(
            pick(rng, linear),
            method=pick(rng, ["sigmoid", "isotonic"]),
            cv=2,
            ensemble=bool(rng.random() < 0.5),
        ),
        PolySVC(degree=2),
        PolyLogisticRegression(degree=2),
    ]
    if n_classes > 2:
        nonlinear.append(OneVsOneClassifier(pick(rng, linear)))
    return pick(rng, linear + nonlinear)


def _texts(rng: Random, n_classes: int) -> tuple[Any, Any, dict[str, str]]:
    """Return a vectorizer of texts that are not in a column."""
    kinds = {"text": "text"}
    texts = [str(row["text"]) for row in _rows(rng, kinds)]
    return make_pipeline(_vectorizer(rng), _classifier(rng, n_classes)), texts, kinds
