"""Explain the score of a row, and list the heaviest conjunctions of a model."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.frames import frame_of
from unkernel.data.repr_html import HtmlRepr
from unkernel.data.rows.csr import canonical_rows, is_sparse
from unkernel.engines.explain.contributions import Model, Split
from unkernel.engines.tables.builders import Head, Machine, build_expanded, is_linear_of_pairs, simplify
from unkernel.engines.tables.compiled_tables import CONJUNCTIONS, Tables
from unkernel.models import ConjunctionModel, Decision, KernelModel, LinearModel
from unkernel.models.curves import scores_per_member
from unkernel.models.decision import pairs
from unkernel.models.numbering import decode
from unkernel.models.several_outputs import MULTI_LABEL, MULTI_OUTPUT, find_output, list_score_ranges

AND = " and "  # joins the names of the features of a conjunction

# --- Results ------------------------------------------------------------------------------------------

_MAX_WEIGHTS_AT_ONCE = 1 << 24  # if a model has more weights, columns are read in batches


@dataclass(frozen=True)
class Heavy:
    """A feature, conjunction or tree fragment with a large weight in a model.

    Attributes
    ----------
    label : str
        Names of the features, joined by "and"; for trees, the fragment in brackets.
    weight : float
        Contribution to the score of ``for_class``. For two classes, the weight is positive, and ``for_class``
        is the class that it supports. For more classes, a negative weight is evidence against ``for_class``.
    for_class : label or None
        The class. None for rankings and regression, where positive weights increase the score.
    columns : tuple of int or None, default=None
        Columns of the features, ascending and counted from 0; None for trees.
    against : label, default=None
        The other class, if the score compares two classes.
    channel : str or None, default=None
        For trees, the channel in which the fragment occurs.
    output : int or None, default=None
        The number of the output, for models of several outputs.

    See Also
    --------
    unkernel.CompiledClassifier.heaviest : List the largest weights.

    Examples
    --------
    >>> from unkernel import PolySVC
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> heavy = PolySVC(C=10, gamma=1).fit(X, y).heaviest(1)[0]
    >>> heavy.label, heavy.for_class
    ('0 and 1', 0)
    """

    label: str
    weight: float
    for_class: Any
    columns: tuple[int, ...] | None = None
    against: Any = None
    channel: str | None = None
    output: int | None = None

    def __str__(self) -> str:
        class_text = "" if self.for_class is None else f"  for {self.for_class}"
        if self.output is not None:
            class_text += f"  of output {self.output}"
        return f"{self.weight:+.6g}  {self.label}{class_text}"


@dataclass(frozen=True)
class Contribution:
    """Contribution of a conjunction to the scores of a row.

    Attributes
    ----------
    features : tuple of int
        Columns of the conjunction, ascending and counted from 0. A column is listed twice if its value is
        squared.
    names : tuple of str
        Names of the columns, or their numbers if they have no names.
    value : float or list of float
        The contribution to each score of the model.

    See Also
    --------
    Explanation : All contributions to a score.

    Examples
    --------
    >>> from unkernel import PolySVC
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> explained = PolySVC(C=10, gamma=1).fit(X, y).explain([0, 1], names=["left", "right"])
    >>> explained.contributions[0].names
    ('left', 'right')
    """

    features: tuple[int, ...]
    names: tuple[str, ...]
    value: float | list[float]


@dataclass(frozen=True)
class Comparison:
    """The scores that an explanation shows, and the classes that they support.

    Attributes
    ----------
    for_class : object
        The class that positive numbers support; None for rankings and regression.
    against : object
        The class that ``for_class`` is compared with, or None.
    columns : tuple of int
        Indices of the shown scores: one score, or the scores of both classes if each class has one.
    sign : float
        -1 if the model's score supports ``against``.
    output : int or None
        The number of the output whose scores are shown; None for models of one output or of labels.
    """

    for_class: Any
    against: Any
    columns: tuple[int, ...]
    sign: float = 1.0
    output: int | None = None

    def numbers(self, value: float | list[float]) -> tuple[float, ...]:
        """Return the values of the shown scores, given one value per score."""
        values = value if isinstance(value, list) else [value]
        return tuple(self.sign * values[column] for column in self.columns)


@dataclass(frozen=True)
class Explanation(HtmlRepr):
    """Explanation of the score of a row: the conjunctions that contributed to it.

    ``intercept``, ``contributions`` and ``rest`` add up to ``score``. ``print`` shows the single score of two
    classes or, for more classes, the scores of the predicted class and the runner-up.

    Attributes
    ----------
    score : float or list of float
        Scores of the model; for models of pairs of classes, the scores of the pairs.
    intercept : float or list of float
        Constant contribution to every row.
    contributions : list of Contribution
        The contributions, sorted by their effect on the comparison, largest first.
    rest : float or list of float
        Sum of the contributions that are not listed.
    n_conjunctions : int
        Number of contributions, listed or not.
    comparison : Comparison
        The class that the scores support, the class that it is compared with, and the shown scores.

    See Also
    --------
    unkernel.CompiledClassifier.explain : Explain a prediction.
    TreeExplanation : Explanation of the score of a tree.

    Examples
    --------
    >>> from unkernel import PolySVC
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> clf = PolySVC(C=10, gamma=1, tol=1e-9).fit(X, y)
    >>> print(clf.explain([0, 1], top=1, names=["left", "right"]))
    score -1 for 1 against 0; negative values speak for 0
                -1  (intercept)
                -4  left and right
                +4  (2 others)
    """

    score: float | list[float]
    intercept: float | list[float]
    contributions: list[Contribution] = field(repr=False)
    rest: float | list[float]
    n_conjunctions: int
    comparison: Comparison

    @property
    def for_class(self) -> Any:
        """The class that the scores support; None for rankings and regression."""
        return self.comparison.for_class

    @property
    def against(self) -> Any:
        """The class that ``for_class`` is compared with, if any."""
        return self.comparison.against

    @property
    def output(self) -> int | None:
        """The number of the output that is explained, for models of several outputs."""
        return self.comparison.output

    def to_frame(self) -> Any:
        """Return the contributions as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per contribution, and rows for the intercept and the rest.
        """
        parts = [(AND.join(part.names), part.value) for part in self.contributions]
        parts += [("(intercept)", self.intercept), ("(others)", self.rest)]
        scores = [f"for {self.for_class}" if self.for_class is not None else "score"]
        if len(self.comparison.columns) > 1:
            scores.append(f"for {self.against}")
        return frame_of(
            [
                {"part": name} | dict(zip(scores, self.comparison.numbers(value), strict=True))
                for name, value in parts
            ]
        )

    def __str__(self) -> str:
        title = self._format_title()
        if self.output is not None:
            title = f"output {self.output}: {title}"
        lines = [title, self._format_line(self.intercept, "(intercept)")]
        lines += [self._format_line(part.value, AND.join(part.names)) for part in self.contributions]
        if others := self.n_conjunctions - len(self.contributions):
            lines.append(self._format_line(self.rest, f"({others:,} other{'' if others == 1 else 's'})"))
        return "\n".join(lines)

    def _format_title(self) -> str:
        shown = [f"{number:+.6g}" for number in self.comparison.numbers(self.score)]
        if len(shown) > 1:
            return f"{self.for_class} {shown[0]} against {self.against} {shown[1]}"
        if self.for_class is None:
            return f"score {shown[0]}"
        if self.against is None:
            return f"score {shown[0]} for {self.for_class}"
        hint = f"; negative values speak for {self.against}" if shown[0].startswith("-") else ""
        return f"score {shown[0]} for {self.for_class} against {self.against}{hint}"

    def _format_line(self, value: float | list[float], words: str) -> str:
        numbers = [f"{number:+.6g}" for number in self.comparison.numbers(value)]
        return "".join(f"  {number:>12}" for number in numbers) + f"  {words}"


# --- One row ------------------------------------------------------------------------------------------


def explain(
    model: Model,
    row: tuple[NDArray[np.int64], NDArray[np.float64]],
    split: Split,
    top: int | None,
    *,
    of: Any = None,
    names: Any = None,
) -> Explanation:
    """Return the conjunctions of a row, largest contributions first; see ``CompiledClassifier.explain``.

    The row is given by distinct columns and their values; `split` is the model's :func:`make_split`.
    """
    if top is not None and (isinstance(top, bool) or not isinstance(top, Integral) or top < 0):
        raise ValueError(f"top must be a number of conjunctions, or None for all, got {top!r}")
    contributions = split(*row)
    total = contributions.total
    if not all(map(math.isfinite, total)):
        raise ValueError("a score is not finite: the values are too large for the kernel; scale them")
    comparison = choose_comparison(model.decision, np.array(total), of)
    listed, rest, n_conjunctions = contributions.list_largest(comparison.columns, top)
    feature_names = get_feature_names(model) if names is None else names
    return Explanation(
        score=_to_number_or_list(total),
        intercept=_to_number_or_list(contributions.intercept.tolist()),
        contributions=[
            Contribution(columns, tuple([_name_feature(column, feature_names) for column in columns]), value)
            for columns, value in listed
        ],
        rest=rest,
        n_conjunctions=n_conjunctions,
        comparison=comparison,
    )


def choose_comparison(decision: Decision, scores: NDArray[np.float64], of: Any = None) -> Comparison:
    """Return the scores to show: those of the winner and the runner-up, or the score of the class `of`."""
    if decision.outputs:
        choose = _choose_label if decision.scheme == MULTI_LABEL else _choose_output
        return choose(decision, scores, of)
    classes = decision.classes.tolist()
    if decision.scheme in ("regression", "ordinal"):
        if of is not None:
            raise ValueError("of names a class, and the scores of this model support none")
        return Comparison(None, None, (0,))
    if decision.scheme == "calibrated" and decision.n_scores > scores_per_member(len(classes)):
        raise ValueError(
            "the answers are averages over several calibrated classifiers, which no sum of contributions "
            "explains; calibrate with ensemble=False, or explain the classifier before its calibration"
        )
    index = None if of is None else find_class(classes, of)
    if decision.n_scores == 1 and decision.scheme in ("binary", "one_class", "calibrated"):
        index = 1 if index is None else index
        return Comparison(classes[index], classes[1 - index], (0,), 1.0 if index == 1 else -1.0)
    order = _rank_classes(decision, scores)
    if decision.scheme in ("one_vs_rest", "calibrated"):
        if index is not None:
            return Comparison(classes[index], None, (index,))
        return Comparison(classes[order[0]], classes[order[1]], (order[0], order[1]))
    winner = order[0] if index is None else index
    other = next(k for k in order if k != winner)
    column = list(pairs(len(classes))).index((min(winner, other), max(winner, other)))
    return Comparison(classes[winner], classes[other], (column,), 1.0 if winner < other else -1.0)


def _choose_label(decision: Decision, scores: NDArray[np.float64], of: Any) -> Comparison:
    """Return the comparison that shows the score of the label `of`, or else the largest score."""
    labels = decision.classes.tolist()
    index = int(decision.decide(scores[None, :])[0].argmax()) if of is None else find_class(labels, of)
    begin, end = list_score_ranges(decision.outputs)[index]
    shown = choose_comparison(decision.outputs[index], scores[begin:end])
    return replace(_shift(shown, begin), for_class=labels[index], against=None)


def _choose_output(decision: Decision, scores: NDArray[np.float64], of: Any) -> Comparison:
    """Return the comparison of one output; `of` is its number, or a pair of its number and a class."""
    output, of_class = of if isinstance(of, tuple) and len(of) == 2 else (of, None)
    output = 0 if output is None else output
    count = len(decision.outputs)
    if isinstance(output, bool) or not isinstance(output, Integral) or not 0 <= int(output) < count:
        raise ValueError(
            f"of must be the number of an output, 0 to {count - 1}, or a pair of it and a class, got {of!r}"
        )
    begin, end = list_score_ranges(decision.outputs)[int(output)]
    shown = choose_comparison(decision.outputs[int(output)], scores[begin:end], of_class)
    return replace(_shift(shown, begin), output=int(output))


def _shift(comparison: Comparison, begin: int) -> Comparison:
    """Return a comparison of the scores that begin at an index."""
    return replace(comparison, columns=tuple(begin + column for column in comparison.columns))


def _rank_classes(decision: Decision, scores: NDArray[np.float64]) -> list[int]:
    """Return the indices of the classes, best first; the first one is the predicted class."""
    merits = decision.merits(scores[None, :])[0]
    order: list[int] = np.argsort(-merits, kind="stable").tolist()
    if decision.threshold is not None:
        predicted = int(decision.codes(scores[None, :])[0])
        return [predicted, 1 - predicted]
    return order


def find_class(classes: list[Any], label: Any) -> int:
    """Return the index of a label among the classes; raise a ``ValueError`` if it is not a class."""
    if label not in classes:
        raise ValueError(f"{label!r} is not one of the classes {classes}")
    return classes.index(label)


def get_feature_names(model: Any) -> Any:
    """Return the names of the columns that a model stores, or None."""
    names = model.origin.get("feature_names")
    return names if isinstance(names, Sequence) and not isinstance(names, str) else None


def _to_number_or_list(numbers: list[float]) -> float | list[float]:
    return numbers[0] if len(numbers) == 1 else numbers


def _list_features(padded: list[int]) -> tuple[int, ...]:
    return tuple(sorted([column for column in padded if column >= 0]))


def _name_feature(feature: int, names: Any) -> str:
    try:
        return str(feature) if names is None else str(names[feature])
    except (KeyError, IndexError):
        return str(feature)


def read_row(row: Any, model: Model) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nonzero columns of a row in ascending order, and their values."""
    if hasattr(row, "to_numpy"):  # a pandas row lists values, not columns
        row = np.atleast_2d(row.to_numpy())
    elif isinstance(row, Iterator):
        row = list(row)
    columns, values = _read_column_list(row) if _lists_columns(row) else _read_dense(row, model)
    if (columns < 0).any() or not np.isfinite(values).all():
        raise ValueError("a row has columns counted from 0, and finite values: no NaN, no infinity")
    order = np.argsort(columns)
    if (np.diff(columns[order]) == 0).any():
        raise ValueError(
            "a column occurs twice in the list of columns; a row of values is given as a matrix of one row"
        )
    present = order[values[order] != 0]
    return columns[present], values[present]


def _lists_columns(row: Any) -> bool:
    """Return whether a row lists its nonzero columns instead of all values."""
    if is_sparse(row) or isinstance(row, str | bytes):
        return False
    if isinstance(row, np.ndarray):
        return row.ndim == 1 and row.dtype.kind in "iu"
    return isinstance(row, Mapping) or not any(isinstance(part, list | tuple | np.ndarray) for part in row)


def _read_column_list(row: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    try:
        columns = np.array([operator.index(column) for column in row], np.int64)
    except (TypeError, OverflowError):
        raise ValueError("columns are whole numbers; a row of values is an array or matrix") from None
    values = [float(row[column]) for column in row] if isinstance(row, Mapping) else np.ones(len(columns))
    return columns, np.asarray(values, np.float64)


def _read_dense(row: Any, model: Model) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nonzero columns and their values of an array or a matrix of one row."""
    if not is_sparse(row):
        row = np.asarray(row)
        if row.dtype.kind not in "biuf":
            raise ValueError("a row is a list of columns, or an array or matrix of numbers")
        row = np.atleast_2d(row)
    matrix = canonical_rows(row)
    if matrix.shape[0] != 1:
        raise ValueError(f"one row is explained at a time, got {matrix.shape[0]}")
    if model.fixed_width and matrix.shape[1] != model.n_features:
        raise ValueError(
            f"the row has {matrix.shape[1]} features, but the model was trained on {model.n_features}"
        )
    return matrix.indices.astype(np.int64), matrix.data


# --- A whole model ------------------------------------------------------------------------------------


def list_heaviest(model: Model, tables: Tables | None, top: Any) -> list[Heavy]:
    """Return the largest weights of all scores, read from `tables` or, if this is None, from the model."""
    count = check_top(top)
    columns, weights = _find_heavy_rows(model, tables, count)
    sizes = np.abs(weights)
    order = np.argsort(-sizes, axis=None, kind="stable")[:count]
    names = get_feature_names(model)
    heaviest = []
    for index, score in zip(*np.unravel_index(order, sizes.shape), strict=True):
        weight = float(weights[index, score])
        if weight == 0:
            break
        features = _list_features(columns[index].tolist())
        label = AND.join(_name_feature(feature, names) for feature in features)
        output, (for_class, against, signed) = _find_supported(model.decision, int(score), weight)
        heaviest.append(Heavy(label, signed, for_class, features, against, output=output))
    return heaviest


def _find_supported(decision: Decision, score: int, weight: float) -> tuple[int | None, Any]:
    """Return the number of the output that a weight belongs to, if any, and :func:`find_supported_class`."""
    if decision.scheme != MULTI_OUTPUT:
        return None, find_supported_class(decision, score, weight)
    output, own_score = find_output(decision.outputs, score)
    return output, find_supported_class(decision.outputs[output], own_score, weight)


def find_supported_class(decision: Decision, score: int, weight: float) -> tuple[Any, Any, float]:
    """Return the class that a weight supports, the opposing class, and the weight for the supported class."""
    classes = decision.classes.tolist()
    if decision.scheme in ("regression", "ordinal"):
        return None, None, weight
    if decision.scheme == MULTI_LABEL:
        return classes[find_output(decision.outputs, score)[0]], None, weight
    if decision.scheme == "calibrated" and len(classes) > 2:
        score %= len(classes)  # the scores of several classifiers follow each other, one per class
    if decision.scheme == "one_vs_rest" or (decision.scheme == "calibrated" and len(classes) > 2):
        return classes[score], None, weight
    first, second = (1, 0)
    if decision.scheme == "one_vs_one":
        first, second = list(pairs(len(classes)))[score]
    if weight < 0:
        first, second = second, first
    return classes[first], classes[second], abs(weight)


def check_top(top: Any) -> int:
    """Return the number of entries to list; raise a ``ValueError`` if it is not a positive integer."""
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
        raise ValueError(f"top must be a whole number from 1 on, got {top!r}")
    return int(top)


def _find_heavy_rows(
    model: Model, tables: Tables | None, top: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the columns (padded with -1) and the weights of the conjunctions with the largest weights."""
    if tables is not None and tables.layout == CONJUNCTIONS:
        listed = tables.heaviest_conjunctions(top)
        return np.asarray(listed["columns"]), np.asarray(listed["weights"])
    model = simplify(model)
    if is_linear_of_pairs(model):
        return _find_heavy_columns(model, top)
    if isinstance(model, KernelModel):
        machine = Machine(model)
        if not machine.expandable:
            raise ValueError(
                f"the kernel is {model.kernel.words()}, which is not a sum over few conjunctions, so there "
                "is none to list; polynomial kernels of degree 1 to 4 have some"
            )
        return _find_heavy_rows(model, build_expanded(machine, head=Head(0.0)), top)
    chosen = _choose_largest_rows(model.weights, top)
    if isinstance(model, LinearModel):
        return chosen[:, None].astype(np.int64), model.weights[chosen]
    ranks = decode(np.asarray(model.keys[chosen]), model.degree, model.sets)
    columns = np.where(ranks >= 0, np.asarray(model.columns)[np.maximum(ranks, 0)], -1)
    return columns, np.asarray(model.weights[chosen])


def _find_heavy_columns(model: KernelModel, top: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the largest weights of a linear model of many pairs of classes, read in batches of columns."""
    columns, weights = np.empty(0, np.int64), np.empty((0, model.n_scores))
    step = max(1, _MAX_WEIGHTS_AT_ONCE // model.n_scores)
    used = np.unique(model.vectors.indices).astype(np.int64)
    for begin in range(0, len(used), step):
        batch = used[begin : begin + step]
        batch_weights = model.coefficients.multiply_transposed(model.vectors.select_columns(batch))  # type: ignore[union-attr]
        columns, weights = np.concatenate([columns, batch]), np.concatenate([weights, batch_weights])
        chosen = _choose_largest_rows(weights, top)
        columns, weights = columns[chosen], weights[chosen]
    return columns[:, None], weights


def _choose_largest_rows(weights: NDArray[np.float64], top: int) -> NDArray[np.intp]:
    """Return the indices of the rows with the largest weights; equally large rows keep their order."""
    sizes = np.abs(weights).max(axis=1, initial=0.0)
    threshold = -np.partition(-sizes, top - 1)[top - 1] if top < len(sizes) else 0.0
    chosen = np.flatnonzero(sizes >= threshold)
    return chosen[np.argsort(-sizes[chosen], kind="stable")[:top]]


def compute_linear_weights(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return weights (scores, columns) and intercepts (scores,) of a model; None if it is not linear."""
    if isinstance(model, KernelModel | LinearModel):
        if isinstance(model, KernelModel) and model.kernel.name == "precomputed":
            return None
        simplified = simplify(model)
        if not isinstance(simplified, LinearModel):
            return None
        return simplified.weights.T, simplified.intercept
    if not isinstance(model, ConjunctionModel) or model.degree != 1:
        return None
    ranks = decode(np.asarray(model.keys), 1, model.sets)[:, 0]
    dense = np.zeros((model.weights.shape[1], model.n_features))
    dense[:, np.asarray(model.columns)[ranks]] = np.asarray(model.weights).T
    return dense, model.intercept
