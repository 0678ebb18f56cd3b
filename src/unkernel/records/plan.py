"""Plans encode records as rows of features, and are plain data.

A plan is a list of steps. Each step reads columns of the record, or the vectors of earlier steps, and makes a
vector. The vector of the last step is the row. ``cpp/unkernel/records`` implements all kinds of steps, and
``tests/reference/records.py`` is a slow implementation for tests.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import RecordPlan
from unkernel.data.rows.csr import CsrRows
from unkernel.errors import FormatError
from unkernel.records.memory_budget import claim_tables, claim_vectors
from unkernel.records.plan_json import check_type, encode_names, extract_arrays, insert_arrays, read_names
from unkernel.records.plan_step import PlanStep
from unkernel.records.tables import Table, check_no_unknown_columns, is_arrow, make_table
from unkernel.records.text_analysis import make_analyzer
from unkernel.records.training_counts import TrainingCounts

_NEEDED_VERSION = "needed_version"  # the setting with the first version of files whose readers know all steps
_STEPS_OF_VERSION_2 = ("function", "finite", "snap", "power", "quantiles", "splines")


@dataclass(frozen=True, eq=False)
class Plan:
    """The encoding of records as rows of features, as plain data.

    A plan is a list of steps. Each step reads columns of the record or the output of earlier steps; the
    output of the last step is the row. :class:`~unkernel.RecordEncoder` makes plans, and
    :func:`unkernel.compile` makes them from scikit-learn pipelines.

    Attributes
    ----------
    columns : sequence of str
        Names of the columns that the steps read.
    steps : sequence of PlanStep
        The steps.
    required : bool, default=False
        Whether it is an error if a record lacks a column. Otherwise the value counts as missing.
    whole : bool, default=False
        Whether there is a single column and a record is just its value, for example a text.
    ignores_unknown_keys : bool, default=True
        Whether records may have columns that are not in `columns`. Otherwise such columns are errors.
    bound : sequence of str, default=()
        Columns that a record must not have, because ``bind`` has fixed their values. Not stored in files.
    example : mapping of str to object, default={}
        An example of a record, with a typical value of each column: the most frequent category, the median
        of numbers, a date. Columns of texts have no typical value.
    training : TrainingCounts or None, default=None
        Counts of the training records, with which new records can be compared; None if they are unknown.

    See Also
    --------
    unkernel.RecordEncoder : Learn a plan from data.

    Examples
    --------
    >>> from unkernel import RecordEncoder
    >>> plan = RecordEncoder(min_count=1).fit([{"job": "clerk"}, {"job": "pilot"}]).plan_
    >>> list(plan.feature_names)
    ['job = clerk', 'job = pilot', 'job = (other)', 'job is missing']
    >>> plan.encode_one({"job": "pilot"})
    (array([1], dtype=int32), array([1.]))
    """

    columns: Sequence[str]
    steps: Sequence[PlanStep]
    required: bool = False
    whole: bool = False
    ignores_unknown_keys: bool = True
    bound: Sequence[str] = ()
    example: Mapping[str, Any] = field(default_factory=dict)
    training: TrainingCounts | None = None

    @property
    def feature_names(self) -> Sequence[str]:
        """Return a label for each feature of the rows."""
        return self.steps[-1].names

    @property
    def n_features(self) -> int:
        """Number of features of the rows."""
        return int(self.native.width)

    @cached_property
    def native(self) -> RecordPlan:
        """Return the compiled plan of the C++ core."""
        repeated, analyzers, copies = self._column_copies
        native = RecordPlan(
            columns=list(self.columns),
            unread=self._list_unread_columns(),
            repeated=repeated,
            analyzers=analyzers,
            bound=list(self.bound),
            required=self.required,
            whole=self.whole,
            ignores_unknown_keys=self.ignores_unknown_keys,
        )
        for number, step in enumerate(self.steps):
            table = step.table
            # Check the number of features before memory is allocated for them.
            if table.get("width", len(step.names)) != len(step.names):
                raise ValueError(_describe_width(step, table["width"]))
            if number in copies:
                table = table | {"columns": np.array([copies[number]], np.int32)}
            width = native.add(step.kind, table)
            if width != len(step.names):
                raise ValueError(_describe_width(step, width))
        return native

    def __getstate__(self) -> dict[str, Any]:
        return {
            key: value
            for key, value in self.__dict__.items()
            if key not in ("native", "_column_copies", "_distinguishes_nan")
        }

    def with_none_as_nan(self) -> Plan:
        """Return a plan that treats None like NaN, as data frames do.

        Returns
        -------
        Plan
            The plan. It differs from this plan only if NaN is a category and None is not.
        """

        def treat_none_as_nan(table: dict[str, Any]) -> dict[str, Any]:
            # A category that is not in the table has the code of unknown values.
            if table["none"] != table["unknown"] or table["nan"] == table["unknown"]:
                return table
            return table | {"none": table["nan"], "absent": table["nan"]}

        steps = [
            replace(
                step,
                table=step.table | {"categories": list(map(treat_none_as_nan, step.table["categories"]))},
            )
            if "categories" in step.table
            else step
            for step in self.steps
        ]
        return replace(self, steps=steps) if self._distinguishes_nan else self

    def _list_read_columns(self) -> list[str]:
        """Return the names of the columns that a step reads."""
        unread = set(self._list_unread_columns())
        return [name for index, name in enumerate(self.columns) if index not in unread]

    @cached_property
    def _distinguishes_nan(self) -> bool:
        """Return whether None and NaN are different categories in some step."""
        tables = [table for step in self.steps for table in step.table.get("categories", ())]
        return any(table["none"] != table["nan"] for table in tables)

    def _list_unread_columns(self) -> list[int]:
        """Return the indices of the columns that no step reads."""
        read_columns = {int(column) for step in self.steps for column in step.table.get("columns", ())}
        return sorted(set(range(len(self.columns))) - read_columns)

    @cached_property
    def _column_copies(self) -> tuple[list[int], list[Callable[[str], list[str]] | None], dict[int, int]]:
        """Find the columns that must be copied, and the functions that split texts into n-grams.

        If a text is not ASCII, Python splits it, and the core gets n-grams, which differ from step to step.
        If several steps read a column, each step for texts therefore gets its own copy of the column.

        Returns
        -------
        list of int
            The column of each copy. The numbers of copies follow the numbers of the columns.
        list
            For each column and then each copy, the function that splits texts that are not ASCII; None for
            columns without texts.
        dict
            The number of the copy of each step that has one, by the index of the step.
        """
        readers = Counter(int(column) for step in self.steps for column in step.table.get("columns", ()))
        repeated: list[int] = []
        copies: dict[int, int] = {}
        analyzers: list[Callable[[str], list[str]] | None] = [None] * len(self.columns)
        for number, step in enumerate(self.steps):
            if step.kind != "text":
                continue
            column = int(step.table["columns"][0])
            if readers[column] == 1:
                analyzers[column] = make_analyzer(step.table)
            else:
                copies[number] = len(analyzers)
                repeated.append(column)
                analyzers.append(make_analyzer(step.table))
        return repeated, analyzers, copies

    def encode(self, X: Any, threads: int = 1) -> CsrRows:
        """Encode many records.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts or dict of columns
            The records.
        threads : int, default=1
            Number of threads.

        Returns
        -------
        CsrRows of shape (n_records, n_features)
            The rows.
        """
        if not self.whole and is_arrow(X):
            return self._make_rows(*self.native.encode_arrow(X.__arrow_c_stream__(), threads))
        required = () if not self.required else self._list_read_columns()
        table = make_table(X, self.columns, whole=self.whole, required=required, nan=self._distinguishes_nan)
        if not self.whole and not self.ignores_unknown_keys:
            check_no_unknown_columns(X, self.columns)
        return self.encode_table(table, threads)

    def encode_table(self, table: Table, threads: int = 1) -> CsrRows:
        """Encode the records of a table.

        Parameters
        ----------
        table : Table
            The columns.
        threads : int, default=1
            Number of threads.

        Returns
        -------
        CsrRows of shape (n_records, n_features)
            The rows.
        """
        columns = [*table.columns, *(table.columns[column] for column in self._column_copies[0])]
        return self._make_rows(*self.native.encode_table(columns, table.n_rows, threads))

    def _make_rows(self, offsets: Any, columns: Any, values: Any) -> CsrRows:
        return CsrRows.of(np.asarray(offsets), np.asarray(columns), np.asarray(values), self.n_features)

    def encode_one(self, record: Any) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Encode one record.

        Parameters
        ----------
        record : dict, or the value itself if the plan is ``whole``
            The record.

        Returns
        -------
        ids : ndarray of int32
            Indices of the features of the record.
        values : ndarray of float64
            The values of these features.
        """
        ids, values = self.native.encode_one(record)
        return np.asarray(ids), np.asarray(values)

    # --- Files ----------------------------------------------------------------------------------------

    def to_container(self, prefix: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and settings to store in a file.

        Parameters
        ----------
        prefix : str
            Prefix of the names of the arrays.

        Returns
        -------
        arrays : dict of str to ndarray
            The arrays of the plan.
        settings : dict
            The rest of the plan, as values that JSON can represent.
        """
        arrays: dict[str, NDArray[Any]] = {}
        steps = [
            {
                "kind": step.kind,
                "names": encode_names(step, self.steps),
                "table": extract_arrays(step.table, f"{prefix}{number}", arrays),
            }
            for number, step in enumerate(self.steps)
        ]
        settings = {
            "columns": list(self.columns),
            "required": self.required,
            "whole": self.whole,
            "ignores_unknown_keys": self.ignores_unknown_keys,
            "steps": steps,
        }
        if any(step.kind in _STEPS_OF_VERSION_2 for step in self.steps):
            settings[_NEEDED_VERSION] = 2
        if self.example:
            settings["example"] = dict(self.example)
        if self.training is not None:
            settings["training"] = self.training.to_json()
        return arrays, settings

    @classmethod
    def from_container(cls, file: str, arrays: Mapping[str, NDArray[Any]], settings: Any) -> Plan:
        """Make a plan from the arrays and settings of a file, and check it.

        Parameters
        ----------
        file : str
            Name of the file in error messages.
        arrays : mapping of str to ndarray
            The arrays.
        settings : dict
            The settings.

        Returns
        -------
        Plan
            The plan.

        Raises
        ------
        FormatError
            If the plan is damaged.
        """
        try:
            steps: list[PlanStep] = []
            for step in settings["steps"]:
                table = insert_arrays(check_type(step["table"], dict), arrays)
                names = read_names(step["names"], table, steps)
                steps.append(PlanStep(check_type(step["kind"], str), table, names))
            plan = cls(
                columns=[check_type(name, str) for name in settings["columns"]],
                steps=steps,
                required=check_type(settings["required"], bool),
                whole=check_type(settings["whole"], bool),
                ignores_unknown_keys=check_type(settings["ignores_unknown_keys"], bool),
                example=check_type(settings.get("example", {}), dict),
                training=_read_training(settings),
            )
            _check_example(plan)
            if not plan.steps:
                raise ValueError("it has no steps")
            claim_tables(steps)
            claim_vectors(steps)
            _ = plan.native
        except FormatError:
            raise
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            RuntimeError,
            re.error,
        ) as error:
            raise FormatError(file, 0, 0, f"the plan of the model is damaged: {error}") from error
        return plan


def _describe_width(step: PlanStep, width: int) -> str:
    return f"not a sound plan: step {step.kind} has {width} features, and {len(step.names)} names"


def _read_training(settings: Mapping[str, Any]) -> TrainingCounts | None:
    if "training" not in settings:  # the file is older than these counts, or made from another pipeline
        return None
    return TrainingCounts.from_json(settings["training"], settings["columns"])


def _check_example(plan: Plan) -> None:
    """Raise a ``ValueError`` if the example has an unknown column, or a value that JSON cannot represent."""
    for name, value in plan.example.items():
        values = value if isinstance(value, list) else [value]
        if name not in plan.columns or not all(_is_text_or_number(item) for item in values):
            raise ValueError(f"its example has {value!r} in column {name!r}")


def _is_text_or_number(value: Any) -> bool:
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
