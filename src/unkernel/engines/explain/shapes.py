"""Compute the contribution of a column or a pair of columns to scores, as a function of the values."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.frames import frame_of
from unkernel.data.repr_html import HtmlRepr, ask
from unkernel.data.rows.csr import CsrRows
from unkernel.models import Decision
from unkernel.models.several_outputs import name_columns
from unkernel.records.feature_columns import FeatureColumns
from unkernel.records.feature_labels import make_interval_labels
from unkernel.records.plan import Plan

_MAX_PRINTED_CELLS = 20


@dataclass(frozen=True)
class Cell:
    """A set of values of a column that have the same features: an interval of numbers, or a category.

    Attributes
    ----------
    label : str
        The values in words, such as ``"35–37"`` or ``"clerk"``.
    count : int
        Number of records with such a value among the given records.
    low, high : float
        The interval [low, high) of numbers; NaN for other values.

    See Also
    --------
    Shape : The contributions of all cells.

    Examples
    --------
    >>> from unkernel.engines import Cell
    >>> Cell("clerk", 2).is_interval
    False
    """

    label: str
    count: int
    low: float = math.nan
    high: float = math.nan

    @property
    def is_interval(self) -> bool:
        """Whether the cell is an interval of numbers."""
        return not math.isnan(self.low)


@dataclass(frozen=True, eq=False)
class Shape(HtmlRepr):
    """Contribution of a column or a pair of columns to the scores, as a function of the values.

    :meth:`Importances.shape` returns shapes. Notebooks draw them: a curve for numbers, lines for categories,
    and a heat map for two columns.

    Attributes
    ----------
    columns : tuple of str
        Names of one or two columns.
    cells : tuple of list of Cell
        The cells of each column: intervals in ascending order, then other values, most frequent first.
    scores : ndarray of shape (n_cells, n_scores) or (n_cells, n_cells_of_second, n_scores)
        The contribution of each cell to each score. For a pair, the contributions of its columns alone are
        not included.
    score_names : list of str
        A name for each score: the class that it supports, or ``"score"`` for regression and rankings.

    See Also
    --------
    Importances : Importances of columns and pairs of columns.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from unkernel import PolySVC, RecordEncoder, compile
    >>> people = [{"job": job, "city": city} for job in ("clerk", "pilot") for city in ("Rome", "Oslo")]
    >>> pipeline = make_pipeline(RecordEncoder(min_count=1), PolySVC(C=10, gamma=1, tol=1e-9))
    >>> fast = compile(pipeline.fit(people, ["no", "yes", "yes", "no"]))
    >>> print(fast.importances(people).shape("job", "city"))
    job, city: contribution to yes
           +1  clerk, Oslo
           -1  clerk, Rome
           -1  pilot, Oslo
           +1  pilot, Rome
    """

    columns: tuple[str, ...]
    cells: tuple[list[Cell], ...]
    scores: NDArray[np.float64]
    score_names: list[str]

    def to_frame(self) -> Any:
        """Return the contributions as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per cell, with the number of records and, for numbers, the interval; or one row per pair
            of cells.
        """
        return frame_of(self._list_rows())

    def _list_rows(self) -> list[dict[str, Any]]:
        titles = [name if name == "score" else f"for {name}" for name in self.score_names]
        if len(self.columns) == 1:
            has_intervals = any(cell.is_interval for cell in self.cells[0])
            return [
                {"value": cell.label, "records": cell.count}
                | ({"low": cell.low, "high": cell.high} if has_intervals else {})
                | dict(zip(titles, scores, strict=True))
                for cell, scores in zip(self.cells[0], self.scores.tolist(), strict=True)
            ]
        return [
            {self.columns[0]: first.label, self.columns[1]: second.label}
            | dict(zip(titles, scores, strict=True))
            for first, row in zip(self.cells[0], self.scores.tolist(), strict=True)
            for second, scores in zip(self.cells[1], row, strict=True)
        ]

    def to_svg(self, of: Any = None) -> str:
        """Return a drawing as SVG, with text in the colour of the page.

        Parameters
        ----------
        of : label, default=None
            The class to draw, if there are more than two classes. None draws all classes for one column and,
            for two columns, the class whose contributions differ most.

        Returns
        -------
        str
            The SVG element.
        """
        svg: str = ask("shape", self, self._find_score(of))
        return svg

    def _find_score(self, of: Any) -> int | None:
        if of is None:
            return None
        if str(of) not in self.score_names:
            raise ValueError(f"{of!r} is not one of {', '.join(self.score_names)}")
        return self.score_names.index(str(of))

    def __str__(self) -> str:
        names, scores = self.score_names, self.scores.reshape(-1, len(self.score_names))
        labels = [", ".join(cell.label for cell in cells) for cells in itertools.product(*self.cells)]
        lines = [f"{', '.join(self.columns)}: contribution to {', '.join(names)}"]
        for label, row in zip(labels[:_MAX_PRINTED_CELLS], scores.tolist(), strict=False):
            numbers = "  ".join(f"{number:+9.4g}" for number in row)
            lines.append(f"{numbers}  {label}")
        n_hidden = len(labels) - _MAX_PRINTED_CELLS
        return "\n".join([*lines, f"and {n_hidden:,} more"] if n_hidden > 0 else lines)

    def __repr__(self) -> str:
        return f"Shape({', '.join(map(repr, self.columns))})"


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """The cells of a column in given records.

    Attributes
    ----------
    cells : list of Cell
    rows : CsrRows
        The features of each cell.
    """

    cells: list[Cell]
    rows: CsrRows


def find_cells(
    plan: Plan, columns: FeatureColumns, rows: CsrRows, column: int, numbers: NDArray[np.float64] | None
) -> ColumnCells:
    """Find the cells of a column: the sets of values in the records that have the same features.

    Parameters
    ----------
    plan : Plan
    columns : FeatureColumns
        The columns of the features of the plan.
    rows : CsrRows
        The encoded records.
    column : int
        Index of the column.
    numbers : ndarray of shape (n_records,) or None
        The numbers in the column, if its features are not intervals.
    """
    is_own_set = np.array([members == (column,) for members in columns.sets], bool)
    own_rows = rows.filter_entries(is_own_set[columns.set_of_feature[rows.indices]])
    first_rows, counts = _find_distinct_rows(own_rows)
    cell_rows = own_rows[first_rows]
    are_whole = _are_whole(plan, columns, is_own_set[columns.set_of_feature])
    cells = []
    for index, (first_row, count) in enumerate(zip(first_rows.tolist(), counts.tolist(), strict=True)):
        features = cell_rows.indices[cell_rows.indptr[index] : cell_rows.indptr[index + 1]]
        if numbers is not None and not math.isnan(numbers[first_row]):
            number = float(numbers[first_row])
            cells.append(Cell(f"{number:.6g}", count, number, number))
        else:
            cells.append(_make_cell(plan, columns, column, features, count, are_whole=are_whole))
    order = sorted(range(len(cells)), key=lambda k: _get_sort_key(cells[k]))
    return ColumnCells([cells[k] for k in order], cell_rows[order])


def _get_sort_key(cell: Cell) -> tuple[bool, float]:
    return (not cell.is_interval, cell.low if cell.is_interval else -cell.count)


def _find_distinct_rows(rows: CsrRows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the index of the first row of each group of equal rows, and the sizes of the groups."""
    first_rows, counts = [], []
    lengths = np.diff(rows.indptr)
    for length in np.unique(lengths).tolist():
        members = np.flatnonzero(lengths == length)
        entries = rows.indptr[members][:, None] + np.arange(length)
        content = np.hstack([rows.indices[entries].astype(np.float64), rows.data[entries]])
        if length:
            _, first, group_sizes = np.unique(content, axis=0, return_index=True, return_counts=True)
        else:
            first, group_sizes = np.zeros(1, np.intp), np.array([len(members)])
        first_rows.append(members[first])
        counts.append(group_sizes)
    return np.concatenate(first_rows), np.concatenate(counts)


def _are_whole(plan: Plan, columns: FeatureColumns, is_own: NDArray[np.bool_]) -> bool:
    """Return whether the labels of a column's intervals show that the numbers are whole."""
    labels = [plan.feature_names[k] for k in np.flatnonzero(is_own & ~np.isnan(columns.low)).tolist()]
    return not any(" in [" in label or " < " in label for label in labels)


def _make_cell(
    plan: Plan,
    columns: FeatureColumns,
    column: int,
    features: NDArray[Any],
    count: int,
    *,
    are_whole: bool,
) -> Cell:
    """Return the cell of the values of a column that have the given features; `count` records have them."""
    name = plan.columns[column]
    low, high = columns.low[features], columns.high[features]
    if len(features) and not np.isnan(low).any():
        # A column may be divided into intervals in several ways. A cell is the intersection of one interval
        # of each.
        interval = float(low.max()), float(high.min())
        return Cell(_label_interval(name, interval, are_whole=are_whole), count, *interval)
    labels = [_remove_name(plan.feature_names[feature], name) for feature in features.tolist()]
    return Cell(", ".join(labels) or "(no feature)", count)


def _label_interval(name: str, interval: tuple[float, float], *, are_whole: bool) -> str:
    edges = np.array([edge for edge in interval if math.isfinite(edge)])
    if not len(edges):
        return "(any number)"
    index = 0 if not math.isfinite(interval[0]) else 1
    return _remove_name(make_interval_labels(name, edges, are_integers=are_whole)[index], name)


def _remove_name(label: str, name: str) -> str:
    """Return the label of a feature without the name of its column."""
    if label == f"{name} is missing":
        return "(missing)"
    for beginning in (f"{name} = ", f"{name} in ", f"{name} "):
        if label.startswith(beginning) and len(label) > len(beginning):
            return label[len(beginning) :]
    return label


def name_scores(decision: Decision, n_scores: int) -> list[str]:
    """Return a name for each score of a decision: the class that it supports, or "score"."""
    if decision.outputs:
        return name_columns(decision, lambda output: name_scores(output, output.n_scores), "score")
    classes, scheme = decision.classes.tolist(), decision.scheme
    if scheme in ("regression", "ordinal") or not len(classes):
        return ["score"]
    if n_scores == 1:
        return [str(classes[1])]
    if n_scores == len(classes) and scheme != "one_vs_one":
        return [str(label) for label in classes]
    pairs = [(i, j) for i in range(len(classes)) for j in range(i + 1, len(classes))]
    return [f"{classes[i]} over {classes[j]}" for i, j in pairs]
