"""The contenders of the benchmark of tables, each with its defaults, in one thread.

Rivals get numbers unchanged, categories in the form that their library expects, and texts as tf-idf of words;
CatBoost takes texts directly. Fitting a contender returns a `Fitted`.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import unkernel
from tables_data import CLASSES, Parts, Table
from unkernel import PolyLogisticRegression, PolyRegressor, RecordEncoder

MOST_VALUES_OF_HIST = 254  # HistGradientBoosting refuses categories of more than 255 values
RARE = "(rare)"
SEED = 0


@dataclass(frozen=True)
class Fitted:
    """A trained contender.

    Attributes
    ----------
    predict : callable
        Returns, for a frame, the probabilities of the classes in sorted order, or numbers.
    predict_one : callable
        Returns the same for one record, in the form that `records` makes.
    records : callable
        Converts a frame to a list of records.
    stored_bytes : int
        The size of the stored model and its encoder.
    """

    predict: Callable[[pd.DataFrame], np.ndarray]
    predict_one: Callable[[Any], Any]
    records: Callable[[pd.DataFrame], list[Any]]
    stored_bytes: int


@dataclass(frozen=True)
class Contender:
    """A contender.

    Attributes
    ----------
    name : str
        Ours begin with ``unkernel``.
    module : str
        The package to import before the clock starts.
    fit : callable
        Takes a table and its parts, and returns a `Fitted`; it does not use the test part.
    quick : bool
        Whether short runs measure it.
    takes_texts : bool
        Whether it takes texts, or the sparse rows of their words.
    """

    name: str
    module: str
    fit: Callable[[Table, Parts], Fitted]
    quick: bool = False
    takes_texts: bool = True

    def is_here(self) -> bool:
        package, _, name = self.module.partition(":")
        return find_spec(package.partition(".")[0]) is not None and (not name or hasattr(unkernel, name))


# --- Ours ---------------------------------------------------------------------------------------------


def fit_encoder_and_pairs(table: Table, parts: Parts) -> Fitted:
    """Fit `RecordEncoder` and a model of degree 2, and compile them."""
    learner = PolyLogisticRegression(degree=2) if table.target == CLASSES else PolyRegressor(degree=2)
    pipeline = make_pipeline(RecordEncoder(), learner).fit(parts.train, parts.y_train)
    return make_fitted(table, unkernel.compile(pipeline))


def fit_default(table: Table, parts: Parts) -> Fitted:
    """Fit the estimator that chooses a model by itself, and compiles it."""
    estimator = unkernel.TableEstimator().fit(parts.train, parts.y_train)
    return make_fitted(table, estimator.classifier_)


def make_fitted(table: Table, fast: Any) -> Fitted:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.uk")
        fast.save(path)
        stored = path.stat().st_size
    of_classes = table.target == CLASSES
    return Fitted(
        fast.predict_proba if of_classes else fast.predict,
        fast.predict_proba_one if of_classes else fast.predict_one,
        lambda frame: list(frame.to_dict("records")),
        stored,
    )


# --- Rivals -------------------------------------------------------------------------------------------


class TypedColumns:
    """Columns for boosters: numbers, categories by the values of the training part, and tf-idf of texts.

    Without texts, `transform` returns a frame with the categories of pandas. With texts, it returns sparse
    rows with codes of categories from 1 on; 0 stands for missing or unknown values.

    Parameters
    ----------
    most_values : int, optional
        Number of values of a category to keep, the most frequent ones; all others are pooled.
    """

    def __init__(self, table: Table, frame: pd.DataFrame, most_values: int | None = None) -> None:
        self.values: dict[str, pd.Index] = {}
        for name in table.categories(frame):
            frequent = frame[name].value_counts().index[:most_values]
            pooled = [RARE] if len(frequent) < frame[name].nunique() else []
            self.values[name] = pd.Index([*sorted(frequent), *pooled])
        self.words = {name: TfidfVectorizer(dtype=np.float32).fit(frame[name]) for name in table.texts}

    def transform(self, frame: pd.DataFrame) -> Any:
        typed = frame.drop(columns=list(self.words)).assign(
            **{name: self._category(frame[name], values) for name, values in self.values.items()}
        )
        if not self.words:
            return typed
        codes = typed.assign(**{name: typed[name].cat.codes + 1 for name in self.values})
        blocks = [sparse.csr_matrix(codes.to_numpy(dtype=np.float32))]
        blocks += [words.transform(frame[name]) for name, words in self.words.items()]
        return sparse.hstack(blocks, format="csr")

    def places_of_categories(self, frame: pd.DataFrame) -> list[int]:
        """Return the columns of the sparse rows that hold codes of categories."""
        names = [name for name in frame if name not in self.words]
        return [k for k, name in enumerate(names) if name in self.values]

    @staticmethod
    def _category(column: pd.Series, values: pd.Index) -> pd.Series:
        if values[-1] == RARE:
            column = column.where(column.isin(values) | column.isna(), RARE)
        known = column.where(column.isin(values), None)
        return pd.Series(pd.Categorical(known, categories=values), index=column.index)


def wrap_rival(table: Table, model: Any, transform: Callable[[pd.DataFrame], Any], encoder: Any) -> Fitted:
    answer = model.predict_proba if table.target == CLASSES else model.predict

    def predict(frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(answer(transform(frame)))

    def records(frame: pd.DataFrame) -> list[Any]:
        return [frame.iloc[[k]] for k in range(len(frame))]

    return Fitted(predict, predict, records, len(pickle.dumps((encoder, model))))


def targets(table: Table, parts: Parts) -> np.ndarray:
    """Return the targets as numbers, which all libraries take: classes become indices in sorted order."""
    y = parts.y_train
    return np.unique(y, return_inverse=True)[1] if table.target == CLASSES else y


def fit_lightgbm(table: Table, parts: Parts) -> Fitted:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if table.target == CLASSES else LGBMRegressor
    columns = TypedColumns(table, parts.train)
    told = {"categorical_feature": columns.places_of_categories(parts.train)} if table.texts else {}
    model = kind(n_jobs=1, verbose=-1, random_state=SEED)
    model.fit(columns.transform(parts.train), targets(table, parts), **told)
    return wrap_rival(table, model, columns.transform, columns)


def fit_xgboost(table: Table, parts: Parts) -> Fitted:
    from xgboost import XGBClassifier, XGBRegressor

    kind = XGBClassifier if table.target == CLASSES else XGBRegressor
    columns = TypedColumns(table, parts.train)
    rows = columns.transform(parts.train)
    told: dict[str, Any] = {}
    if table.texts:
        categories = set(columns.places_of_categories(parts.train))
        told["feature_types"] = ["c" if k in categories else "q" for k in range(rows.shape[1])]
    model = kind(n_jobs=1, random_state=SEED, enable_categorical=True, **told)
    model.fit(rows, targets(table, parts))
    return wrap_rival(table, model, columns.transform, columns)


def fit_catboost(table: Table, parts: Parts) -> Fitted:
    from catboost import CatBoostClassifier, CatBoostRegressor

    categories, texts = table.categories(parts.train), list(table.texts)
    kind = CatBoostClassifier if table.target == CLASSES else CatBoostRegressor

    def transform(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(**{name: frame[name].fillna("").astype(str) for name in categories + texts})

    model = kind(
        thread_count=1, random_seed=SEED, verbose=False, allow_writing_files=False,
        cat_features=categories, text_features=texts or None,
    )  # fmt: skip
    model.fit(transform(parts.train), targets(table, parts))
    return wrap_rival(table, model, transform, None)


def fit_hist_gradient_boosting(table: Table, parts: Parts) -> Fitted:
    columns = TypedColumns(table, parts.train, MOST_VALUES_OF_HIST)

    kind = HistGradientBoostingClassifier if table.target == CLASSES else HistGradientBoostingRegressor
    model = kind(random_state=SEED).fit(columns.transform(parts.train), targets(table, parts))
    return wrap_rival(table, model, columns.transform, columns)


def list_number_columns(table: Table, frame: pd.DataFrame) -> list[str]:
    other = {*table.texts, *table.categories(frame)}
    return [name for name in frame if name not in other]


def fit_linear(table: Table, parts: Parts) -> Fitted:
    """Fit a logistic regression, or ridge, on one-hot categories, standardized numbers and tf-idf."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    model = LogisticRegression(max_iter=1000) if table.target == CLASSES else Ridge()
    one_hot = OneHotEncoder(handle_unknown="ignore")
    return fit_columns(table, parts, numbers, one_hot, model)


def fit_random_forest(table: Table, parts: Parts) -> Fitted:
    kind = RandomForestClassifier if table.target == CLASSES else RandomForestRegressor
    ordinal = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2, dtype=np.float32
    )
    return fit_columns(table, parts, SimpleImputer(), ordinal, kind(n_jobs=1, random_state=SEED))


def fit_columns(table: Table, parts: Parts, numbers: Any, categories: Any, model: Any) -> Fitted:
    """Fit a model of scikit-learn behind a step for each kind of column."""
    steps: list[tuple[str, Any, Any]] = [("numbers", numbers, list_number_columns(table, parts.train))]
    steps += [("categories", categories, table.categories(parts.train))]
    steps += [(f"words of {name}", TfidfVectorizer(), name) for name in table.texts]
    columns = ColumnTransformer(steps)
    model.fit(columns.fit_transform(parts.train), targets(table, parts))
    return wrap_rival(table, model, columns.transform, columns)


def fit_explainable_boosting(table: Table, parts: Parts) -> Fitted:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    columns = TypedColumns(table, parts.train)
    kind = ExplainableBoostingClassifier if table.target == CLASSES else ExplainableBoostingRegressor
    categories = set(table.categories(parts.train))
    kinds = ["nominal" if name in categories else "continuous" for name in parts.train]
    model = kind(n_jobs=1, random_state=SEED, feature_types=kinds)
    model.fit(columns.transform(parts.train), targets(table, parts))
    return wrap_rival(table, model, columns.transform, columns)


OURS = "unkernel, encoder and pairs"
OUR_DEFAULT = "unkernel, TableEstimator"
LIGHTGBM = "LightGBM"
LINEAR = "scikit-learn, linear on one-hot"
CONTENDERS: Sequence[Contender] = (
    Contender(OUR_DEFAULT, "unkernel:TableEstimator", fit_default, quick=True),
    Contender(OURS, "unkernel", fit_encoder_and_pairs, quick=True),
    Contender(LIGHTGBM, "lightgbm", fit_lightgbm, quick=True),
    Contender(LINEAR, "sklearn", fit_linear, quick=True),
    Contender(
        "scikit-learn, HistGradientBoosting",
        "sklearn",
        fit_hist_gradient_boosting,
        quick=True,
        takes_texts=False,
    ),
    Contender("scikit-learn, random forest", "sklearn", fit_random_forest),
    Contender("XGBoost", "xgboost", fit_xgboost),
    Contender("CatBoost", "catboost", fit_catboost),
    Contender("EBM", "interpret.glassbox", fit_explainable_boosting, takes_texts=False),
)
