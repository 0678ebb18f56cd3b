"""Compute the importances of the columns of records, and of pairs of columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.frames import frame_of
from unkernel.data.repr_html import HtmlRepr
from unkernel.data.rows.csr import CsrRows
from unkernel.engines.explain.column_terms import ColumnTerms, list_monomials
from unkernel.engines.explain.contributions import Model
from unkernel.engines.explain.explanation import AND, check_top
from unkernel.engines.explain.shapes import Shape, find_cells, name_scores
from unkernel.models import Decision
from unkernel.models.curves import scores_per_member
from unkernel.records import steps
from unkernel.records.feature_columns import FeatureColumns, trace_columns
from unkernel.records.plan import Plan

_MAX_ROWS_PER_BATCH = 2_000
_MAX_TERM_VALUES_PER_BATCH = 4_000_000  # largest number of values of terms that are computed at a time
_MAX_SHAPE_CELLS = 250_000
_PRINTED_TERMS = 20
_MAX_SHAPE_COLUMNS = 2


@dataclass(frozen=True, eq=False)
class EncodedRecords:
    """Records for which importances are computed.

    Attributes
    ----------
    plan : Plan
    columns : FeatureColumns
        The columns of the features of the plan.
    rows : CsrRows
        The encoded records.
    records : object or None
        All given records; None if only `rows` are known.
    selected : ndarray of int
        For each of the `rows`, the index of its record among the given records.
    """

    plan: Plan
    columns: FeatureColumns
    rows: CsrRows
    records: Any
    selected: NDArray[np.intp]


@dataclass(frozen=True)
class Importances(HtmlRepr):
    """Importances of the columns of records, and of pairs of columns.

    The score of a record is a constant plus one term for each column and each pair of columns (and, for
    models of degree 3, each triple). A conjunction contributes to the term of its columns; the part of it
    that fewer columns predict contributes to their terms instead. The importance of a term is its share of
    the variance of the score over the given records: the covariance of term and score, divided by the
    variance of the score. The shares add up to 1. A term that mostly cancels other terms has a negative
    share.

    Attributes
    ----------
    columns : list of tuple of str
        Names of the columns of each term, the most important term first.
    shares : ndarray of shape (n_terms,)
        The share of each term. For several scores, this is the sum of the covariances, divided by the sum of
        the variances.
    score_shares : ndarray of shape (n_terms, n_scores)
        The shares for each score.
    score_names : list of str
        A name for each score: the class that it supports, or ``"score"`` for regression and rankings.
    measure : str or None
        The measure of quality whose loss was measured; None if there was no `y`.
    losses : dict of str to ndarray
        For each column, the loss of quality in each shuffle of the column's values.
    n_records : int
        Number of records that were used.

    See Also
    --------
    unkernel.engines.RecordClassifier.importances : Compute importances.
    Shape : Contribution of a column by its values.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from unkernel import PolySVC, RecordEncoder, compile
    >>> people = [{"job": job, "city": city} for job in ("clerk", "pilot") for city in ("Rome", "Oslo")]
    >>> pipeline = make_pipeline(RecordEncoder(min_count=1), PolySVC(C=10, gamma=1, tol=1e-9))
    >>> fast = compile(pipeline.fit(people, ["no", "yes", "yes", "no"]))
    >>> print(fast.importances(people))
    share of the variance of the score, 4 records
    100.0 %  job and city
      0.0 %  city
      0.0 %  job
    """

    columns: list[tuple[str, ...]]
    shares: NDArray[np.float64]
    score_shares: NDArray[np.float64]
    score_names: list[str]
    measure: str | None
    losses: Mapping[str, NDArray[np.float64]]
    n_records: int
    _terms: ColumnTerms = field(repr=False)
    _encoded: EncodedRecords = field(repr=False)

    def shape(self, *columns: str) -> Shape:
        """Return the contribution of one column or a pair of columns as a function of the values.

        Parameters
        ----------
        *columns : str
            Names of one or two columns.

        Returns
        -------
        Shape
            The contributions of the values that occur in the given records. For a pair, the contributions of
            its columns alone are not included.
        """
        if not 1 <= len(columns) <= _MAX_SHAPE_COLUMNS or len(set(columns)) < len(columns):
            raise ValueError(f"shape takes the names of one column or two different columns, got {columns}")
        indices = [self._find_column(name) for name in columns]
        parts = [self._find_cells(index) for index in indices]
        sizes = [len(part.cells) for part in parts]
        if np.prod(sizes) > _MAX_SHAPE_CELLS:
            raise ValueError(f"{AND.join(columns)} have {np.prod(sizes):,} pairs of values, too many to show")
        scores = self._evaluate(
            parts[0].rows if len(parts) == 1 else _pair_rows(*(p.rows for p in parts)), indices
        )
        return Shape(
            tuple(columns),
            tuple(part.cells for part in parts),
            scores.reshape(*sizes, len(self.score_names)),
            self.score_names,
        )

    def _find_column(self, name: str) -> int:
        names = list(self._encoded.plan.columns)
        if name not in names:
            raise ValueError(f"the records have no column {name!r}; they have {', '.join(names)}")
        return names.index(name)

    def _find_cells(self, column: int) -> Any:
        """Return the cells of a column; raise a ``ValueError`` for words and parts of dates."""
        encoded = self._encoded
        kinds = {
            step.kind
            for step in encoded.plan.steps
            if column in np.asarray(step.table.get("columns", ())).tolist()
        }
        if kinds - {"one_hot", "numbers", "ordinal"}:
            raise ValueError(
                f"column {encoded.plan.columns[column]!r} has features of words or of parts of dates, whose "
                "combinations are no curve; heaviest lists their weights"
            )
        return find_cells(
            encoded.plan, encoded.columns, encoded.rows, column, self._find_numbers(column, kinds)
        )

    def _find_numbers(self, column: int, kinds: set[str]) -> NDArray[np.float64] | None:
        """Return the numbers of a column, if its features are not intervals; otherwise None."""
        encoded = self._encoded
        if kinds != {"numbers"}:
            return None
        members = np.array([members == (column,) for members in encoded.columns.sets], bool)
        is_own = members[encoded.columns.set_of_feature]
        if not np.isnan(encoded.columns.low[is_own]).all():
            return None
        if encoded.records is None:
            raise ValueError(f"the numbers of column {encoded.plan.columns[column]!r} are not given")
        return _read_numbers(encoded, column)

    def _evaluate(self, rows: CsrRows, columns: list[int]) -> NDArray[np.float64]:
        """Return the values of the columns' term; `rows` have only features of these columns."""
        term = tuple(sorted(columns))
        if term not in self._terms.terms:
            return np.zeros((rows.shape[0], len(self.score_names)))
        return self._terms.evaluate(rows, [self._terms.terms.index(term)])[:, 0]

    def to_frame(self) -> Any:
        """Return the importances as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per term, with its share and, for several scores, the share for each of them. If `y` was
            given, rows of single columns also have the mean loss of the measure and its standard deviation.
        """
        return frame_of(self._list_rows())

    def _list_rows(self) -> list[dict[str, Any]]:
        rows = []
        for names, share, score_shares in zip(
            self.columns, self.shares.tolist(), self.score_shares.tolist(), strict=True
        ):
            row: dict[str, Any] = {"columns": AND.join(names) or "(none)", "share": share}
            if len(self.score_names) > 1:
                row |= {
                    f"share for {name}": value
                    for name, value in zip(self.score_names, score_shares, strict=True)
                }
            if self.measure is not None:
                losses = self.losses.get(names[0]) if len(names) == 1 else None
                row[f"loss of {self.measure}"] = np.nan if losses is None else float(losses.mean())
                row["deviation"] = np.nan if losses is None else float(losses.std())
            rows.append(row)
        return rows

    def table(self, top: int | None = None) -> str:
        """Return the importances as text.

        Parameters
        ----------
        top : int, default=None
            Number of terms to list; None lists all.

        Returns
        -------
        str
            One line per term: its share, the loss of the measure if `y` was given, and its columns.
        """
        count = len(self.columns) if top is None else check_top(top)
        head = f"share of the variance of the score, {self.n_records:,} records"
        if self.measure is not None:
            head += f"; loss of {self.measure} when a column is shuffled"
        lines = [head]
        for row in self._list_rows()[:count]:
            loss = ""
            if self.measure is not None:
                value = row[f"loss of {self.measure}"]
                loss = f"  {'' if np.isnan(value) else f'{value:+.4f}':>7}"
            lines.append(f"{100 * row['share']:5.1f} %{loss}  {row['columns']}")
        n_hidden = len(self.columns) - count
        return "\n".join([*lines, f"and {n_hidden:,} with less"] if n_hidden > 0 else lines)

    def __str__(self) -> str:
        return self.table(_PRINTED_TERMS)

    def __repr__(self) -> str:
        return f"Importances({len(self.columns)} terms, {self.n_records:,} records)"


def _read_numbers(encoded: EncodedRecords, column: int) -> NDArray[np.float64]:
    """Return the numbers in a column of the selected records; NaN for missing numbers."""
    names = [encoded.plan.columns[column]]
    # Encode a record as two features: its number, or 0 if it is missing, and whether it is missing.
    plan_steps = [
        steps.numbers([column], names),
        steps.impute(0, [0.0], names),
        steps.indicate(0, [0], names),
        steps.concatenate([1, 2], names * 2),
    ]
    pairs = Plan(list(encoded.plan.columns), plan_steps).encode(encoded.records)
    numbers, is_missing = pairs[encoded.selected].toarray().T
    return np.where(is_missing, np.nan, numbers)


def _pair_rows(first: CsrRows, second: CsrRows) -> CsrRows:
    """Return the union of the entries of each row of `first` with each row of `second`."""
    n_first, n_second = first.shape[0], second.shape[0]
    left = first[np.repeat(np.arange(n_first), n_second)]
    right = second[np.tile(np.arange(n_second), n_first)]
    row_of_entry = np.concatenate([left.row_of_entry(), right.row_of_entry()])
    indices = np.concatenate([left.indices, right.indices])
    order = np.lexsort((indices, row_of_entry))
    indptr = left.indptr.astype(np.int64) + right.indptr
    return CsrRows.of(indptr, indices[order], np.concatenate([left.data, right.data])[order], first.shape[1])


def check_importances(plan: Plan, decision: Decision) -> None:
    """Raise a ``ValueError`` if the scores of a model cannot be divided among columns."""
    if plan.whole:
        raise ValueError("records of this model are single values: there are no columns to compare")
    if any(
        one.scheme == "calibrated" and one.n_scores > scores_per_member(len(one.classes))
        for one in (decision.outputs or [decision])
    ):
        raise ValueError(
            "the answers are averages over several calibrated classifiers, which no sum of terms gives; "
            "calibrate with ensemble=False, or take the classifier before its calibration"
        )


def compute_importances(
    model: Model,
    decision: Decision,
    encoded: EncodedRecords,
    measure: str | None,
    losses: Mapping[str, NDArray[np.float64]],
) -> Importances:
    """Divide the variance of the scores among sets of columns."""
    rows = encoded.rows
    monomials = list_monomials(model, are_binary=bool((rows.data == 1.0).all()))
    terms = ColumnTerms.from_monomials(monomials, encoded.columns, rows)
    covariances = _compute_covariances(terms, rows)
    variances = covariances.sum(axis=0)
    score_shares = _divide(covariances, variances)
    shares = _divide(covariances.sum(axis=1), variances.sum())
    names = encoded.plan.columns
    columns = [tuple(names[column] for column in term) for term in terms.terms]
    absent = [(name,) for name in losses if (name,) not in columns]
    shares = np.concatenate([shares, np.zeros(len(absent))])
    score_shares = np.concatenate([score_shares, np.zeros((len(absent), score_shares.shape[1]))])
    columns += absent
    order = sorted(range(len(columns)), key=lambda k: (-round(float(shares[k]), 12), len(columns[k])))
    n_scores = len(terms.intercept)
    return Importances(
        [columns[k] for k in order],
        shares[order],
        score_shares[order],
        name_scores(decision, n_scores),
        measure,
        losses,
        rows.shape[0],
        terms,
        encoded,
    )


def _divide(numerators: NDArray[np.float64], denominator: Any) -> NDArray[np.float64]:
    """Return quotients; 0 where the denominator is 0, for example for a constant score."""
    is_positive = np.asarray(denominator) > 0
    return np.where(is_positive, numerators / np.where(is_positive, denominator, 1.0), 0.0)


def _compute_covariances(terms: ColumnTerms, rows: CsrRows) -> NDArray[np.float64]:
    """Return the covariance of each term with the score, of shape (terms, scores)."""
    n_terms, n_scores = len(terms.terms), len(terms.intercept)
    step = max(1, min(_MAX_ROWS_PER_BATCH, _MAX_TERM_VALUES_PER_BATCH // max(n_terms * n_scores, 1)))
    sums, products, total = np.zeros((n_terms, n_scores)), np.zeros((n_terms, n_scores)), np.zeros(n_scores)
    for begin in range(0, rows.shape[0], step):
        values = terms.evaluate(rows[begin : begin + step])
        scores = values.sum(axis=1)
        sums += values.sum(axis=0)
        products += (values * scores[:, None, :]).sum(axis=0)
        total += scores.sum(axis=0)
    n_rows = max(rows.shape[0], 1)
    return np.asarray(products / n_rows - sums / n_rows * (total / n_rows))


def encode_records(plan: Plan, records: Any, rows: CsrRows, max_records: int) -> EncodedRecords:
    """Return up to `max_records` encoded records, drawn at random, for :func:`compute_importances`."""
    selected = np.arange(rows.shape[0])
    if len(selected) > max_records:
        selected = np.sort(np.random.default_rng(0).choice(len(selected), max_records, replace=False))
    return EncodedRecords(plan, trace_columns(plan), rows[selected], records, selected)


def check_count(name: str, value: Any) -> None:
    """Raise a ``ValueError`` if a parameter is not a positive integer."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1 on, got {value!r}")
