"""Build reports: evaluate the models, and choose the sections of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unkernel.data.rows.csr import CsrRows
from unkernel.data.threads import thread_count
from unkernel.data.trees.forest import Forest, as_forest
from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
from unkernel.measures.base import PredictionMeasures
from unkernel.measures.class_measures import ClassMeasures
from unkernel.measures.number_format import format_labels
from unkernel.measures.predictions import Classifier, Examples, ModelPredictions, predict_examples
from unkernel.measures.value_measures import ValueMeasures
from unkernel.parsing.parser_model import SavedModel
from unkernel.report.linear_baseline import LinearBaseline
from unkernel.report.options import Choices, Costs
from unkernel.report.page import Report, Section
from unkernel.report.search_plot import check_matplotlib
from unkernel.report.sections.about import make_engines_section, make_models_section
from unkernel.report.sections.agreement import make_agreement_section
from unkernel.report.sections.calibration import make_calibration_section
from unkernel.report.sections.columns import make_columns_section
from unkernel.report.sections.confusion import make_confusion_section
from unkernel.report.sections.curves import make_curves_section
from unkernel.report.sections.data import make_data_section
from unkernel.report.sections.mistakes import make_mistakes_section
from unkernel.report.sections.quality import make_quality_section
from unkernel.report.sections.thresholds import make_thresholds_section
from unkernel.report.sections.training_history import make_training_section
from unkernel.report.sections.values import make_errors_section, make_values_section
from unkernel.report.sections.weights import make_fragments_section, make_weights_section
from unkernel.report.summary import summarize_classes, summarize_ranks, summarize_values

Sections = list[Section | None]
# The measures of each model, the sections about them, and the sentences of the summary by model.
Parts = tuple[Sequence[PredictionMeasures], Sections, dict[str, list[str]]]


def report(
    models: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    costs: tuple[float, float] | None = None,
    top: int = 20,
    mistakes: int = 5,
    title: str | None = None,
    n_jobs: int | None = None,
    records: bool = True,
    train: tuple[Any, ...] | None = None,
) -> Report:
    """Evaluate one model, or several side by side, and make an HTML report.

    Parameters
    ----------
    models : classifier, estimator, parser, or mapping of str to these
        Compiled classifiers or fitted estimators of rows, records or trees, or parsers. A mapping names the
        models to compare. All of them must accept ``X`` and have the same classes.
    X : examples
        Test examples, in the form that the models' ``predict`` or the parsers' ``evaluate`` accepts.
    y : array-like of shape (n_samples,), default=None
        The correct labels or values; None for parsers, because their sentences are annotated.
    qid : array-like of shape (n_samples,), default=None
        Groups, for rankings: only rows of the same group are compared.
    costs : (float, float), default=None
        Costs of a false positive and of a false negative, for the table of thresholds. None means 1 each.
        Only models with two classes take costs.
    top : int, default=20
        Number of largest weights to list.
    mistakes : int, default=5
        Number of wrong predictions to show and explain.
    title : str, default=None
        Title of the page; None means a title made from the names of the models.
    n_jobs : int, default=None
        Number of threads; None means 1 and -1 means all processors.
    records : bool, default=True
        Whether the page may show test examples. If False, mistakes and the names of queries are left out.
        Weights still name features, such as categories.
    train : (X, y) or (X, y, qid), default=None
        Training examples, for classifiers and rankings of rows or records. The report trains a linear model
        on their features, as a baseline for the first model.

    Returns
    -------
    Report
        The report: notebooks display it, ``save`` writes it to a file.

    See Also
    --------
    Report : The report.
    unkernel.CompiledClassifier.report : Report on one classifier.

    Examples
    --------
    Compare two models (this needs matplotlib):

    >>> from unkernel import CuttingPlaneSVC, PolySVC
    >>> from unkernel.report import report
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 1]
    >>> models = {"linear": CuttingPlaneSVC(C=10).fit(X, y), "pairs": PolySVC(C=10, gamma=1).fit(X, y)}
    >>> page = report(models, X, y)
    >>> {name: measures[0].value for name, measures in page.measures.items()}
    {'linear': 1.0, 'pairs': 1.0}
    """
    check_matplotlib("a report")
    models_by_name = dict(models) if isinstance(models, Mapping) else {type(models).__name__: models}
    if not models_by_name:
        raise ValueError("models is empty: give a model, or a dict of models by name")
    if costs is not None and len(costs) != 2:
        raise ValueError(f"costs must be two numbers, of a false positive and a false negative, got {costs}")
    choices = Choices(None if costs is None else Costs(*costs), top, mistakes, title, records)
    threads = thread_count(n_jobs)
    if all(isinstance(model, SavedModel) for model in models_by_name.values()):
        from unkernel.report.parsers import make_parser_report  # imports all kinds of parsers, which is slow

        return make_parser_report(models_by_name, X, choices, threads)
    if y is None:
        raise ValueError("y, the right answers, must be given: only the sentences of parsers have their own")
    predictions: list[ModelPredictions] = []
    baseline: LinearBaseline | None = None
    for name, model in models_by_name.items():
        classifier = _find_classifier(model)
        if classifier.decision.outputs:
            raise ValueError(f"there is no report of a model of several labels or outputs, such as {name!r}")
        inputs = _encode_examples(classifier, X, threads)
        examples = Examples(
            _check_column(y),
            "",
            _name_unit(classifier),
            _convert_groups(qid),
            _make_example_getter(classifier, X, inputs),
        )
        predictions.append(predict_examples(str(name), classifier, inputs, examples, threads))
        if train is not None and baseline is None:
            baseline = make_baseline(
                predictions[0], _encode_examples(classifier, train[0], threads), *train[1:]
            )
    return assemble_report(predictions, choices, baseline)


def make_baseline(
    predictions: ModelPredictions, rows: CsrRows | Forest, labels: ArrayLike, groups: ArrayLike | None = None
) -> LinearBaseline:
    """Return a linear baseline for a model; `rows` are training examples encoded for its classifier."""
    if isinstance(rows, Forest) or predictions.decision.scheme in ("regression", "one_class"):
        raise ValueError("a linear baseline is for classifiers and rankings of rows or records: omit train")
    label_array = _check_column(labels)
    if len(label_array) != rows.shape[0]:
        raise ValueError(f"train has inconsistent numbers of samples: {rows.shape[0]} and {len(label_array)}")
    return LinearBaseline(rows, label_array, _convert_groups(groups))


def assemble_report(
    predictions: Sequence[ModelPredictions], choices: Choices, baseline: LinearBaseline | None = None
) -> Report:
    """Return a report on one or several models, made from their predictions."""
    _check_comparable(predictions)
    if predictions[0].is_ranking:
        measured_models, sections, summary = _measure_ranks(predictions, choices, baseline)
    elif len(predictions[0].classes):
        measured_models, sections, summary = _measure_classes(predictions, choices, baseline)
    else:
        measured_models, sections, summary = _measure_values(predictions, choices, baseline)
    all_sections = [
        make_models_section(predictions),
        make_data_section(predictions),
        *sections,
        make_training_section(predictions),
        make_engines_section(predictions),
    ]
    return Report(
        _make_title(predictions, choices),
        {model.name: model.measures for model in measured_models},
        [section for section in all_sections if section is not None],
        _list_undefined(predictions[0], measured_models),
        summary,
    )


def _list_undefined(
    predictions: ModelPredictions, measured_models: Sequence[PredictionMeasures]
) -> list[str]:
    """Return a note that lists the undefined measures if all examples are of one class."""
    if predictions.is_ranking or not len(predictions.classes) or len(np.unique(predictions.gold)) > 1:
        return []
    undefined = dict.fromkeys(
        measure.name for model in measured_models for measure in model.measures if np.isnan(measure.value)
    )
    verb = "is" if len(undefined) == 1 else "are"
    note = f"the test set has one class only: {', '.join(undefined)} {verb} undefined"
    return [note] if undefined else []


def _measure_classes(
    predictions: Sequence[ModelPredictions], choices: Choices, baseline: LinearBaseline | None
) -> Parts:
    measured_models = [ClassMeasures(model) for model in predictions]
    positive, make_section = predictions[0].positive, make_weights_section
    if positive is None:
        is_ordinal = predictions[0].decision.scheme == "ordinal"
        choices.check_no_costs(
            f"the model {'is ordinal' if is_ordinal else f'has {len(predictions[0].classes)}'}"
        )
    if isinstance(predictions[0].classifier, TreeClassifier):
        make_section = make_fragments_section
    sections: Sections = [
        make_quality_section(measured_models, None if positive is None else predictions[0].classes[positive]),
        make_agreement_section(predictions) if len(predictions) > 1 else None,
        make_confusion_section(measured_models),
        make_curves_section(measured_models),
        make_calibration_section(measured_models),
        make_thresholds_section(predictions, choices.costs or Costs()) if positive is not None else None,
        make_columns_section(measured_models),
        make_section(predictions, choices.top) if choices.top else None,
        make_mistakes_section(predictions, choices.n_shown) if choices.n_shown else None,
    ]
    return (
        measured_models,
        sections,
        {model.name: summarize_classes(model, baseline) for model in measured_models},
    )


def _measure_ranks(
    predictions: Sequence[ModelPredictions], choices: Choices, baseline: LinearBaseline | None
) -> Parts:
    from unkernel.measures.rank_measures import RankMeasures  # imports scikit-learn
    from unkernel.report.sections.ranking import make_ranking_section

    choices.check_no_costs("the model answers with an order")
    measured_models = [RankMeasures(model) for model in predictions]
    weights = make_weights_section(predictions, choices.top) if choices.top else None
    summary = {
        model.name: summarize_ranks(model, baseline, records=choices.records) for model in measured_models
    }
    return (
        measured_models,
        [
            make_quality_section(measured_models),
            make_ranking_section(measured_models, choices.records),
            make_columns_section(measured_models),
            weights,
        ],
        summary,
    )


def _measure_values(
    predictions: Sequence[ModelPredictions], choices: Choices, _: LinearBaseline | None
) -> Parts:
    choices.check_no_costs("the model answers with numbers")
    measured_models = [ValueMeasures(model) for model in predictions]
    weights = make_weights_section(predictions, choices.top) if choices.top else None
    errors = make_errors_section(measured_models, choices.n_shown) if choices.n_shown else None
    sections: Sections = [
        make_quality_section(measured_models),
        make_values_section(measured_models),
        make_columns_section(measured_models),
        weights,
        errors,
    ]
    return measured_models, sections, {model.name: summarize_values(model) for model in measured_models}


def _make_title(predictions: Sequence[ModelPredictions], choices: Choices) -> str:
    if choices.title is not None:
        return choices.title
    names = " and ".join(model.name for model in predictions)
    return (
        f"{names} on {predictions[0].examples.name}" if predictions[0].examples.name else f"Report of {names}"
    )


def _check_comparable(predictions: Sequence[ModelPredictions]) -> None:
    """Raise a ValueError if the models do not have the same possible predictions."""
    first = predictions[0]
    for other in predictions[1:]:
        if _identify_answers(first) != _identify_answers(other):
            raise ValueError(
                f"{first.name} and {other.name} cannot be compared: one answers with "
                f"{_describe_answers(first)}, the other with {_describe_answers(other)}"
            )


def _identify_answers(predictions: ModelPredictions) -> tuple[Any, ...]:
    """Return the possible predictions of a model: classes (in any order), ranks or numbers."""
    return (
        predictions.is_ranking,
        predictions.decision.scheme == "regression",
        sorted(map(str, predictions.classes)),
    )


def _describe_answers(predictions: ModelPredictions) -> str:
    return format_labels(predictions.classes) or ("an order" if predictions.is_ranking else "numbers")


# --- Inputs -------------------------------------------------------------------------------------------


def _find_classifier(model: Any) -> Classifier:
    """Return a compiled classifier itself, or that of a fitted estimator."""
    if isinstance(model, CompiledClassifier | RecordClassifier | TreeClassifier):
        return model
    if hasattr(type(model), "_fitted_classifier"):  # the model is an estimator
        fitted_classifier: CompiledClassifier | TreeClassifier = model._fitted_classifier
        return fitted_classifier
    raise TypeError(
        f"there is no report of a {type(model).__name__}: give what unkernel.compile or unkernel.load returns"
    )


def _encode_examples(classifier: Classifier, X: Any, threads: int) -> CsrRows | Forest:
    """Return examples in the form that a classifier scores: rows of features, or trees."""
    if isinstance(classifier, TreeClassifier):
        return as_forest(X)
    if isinstance(classifier, RecordClassifier):
        return classifier.plan.encode(X, threads)
    return classifier._check_rows(X)


def _name_unit(classifier: Classifier) -> str:
    units = {RecordClassifier: "record", TreeClassifier: "tree"}
    return units.get(type(classifier), "row")


def _check_column(values: ArrayLike) -> np.ndarray[Any, Any]:
    column = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {column.shape} instead")
    return column


def _convert_groups(qid: ArrayLike | None) -> np.ndarray[Any, Any] | None:
    return None if qid is None else np.asarray(qid)


def _make_example_getter(
    classifier: Classifier, X: Any, inputs: CsrRows | Forest
) -> Callable[[int], Any] | None:
    """Return a function from the index of an example to its columns, or to its tree in brackets."""
    if isinstance(inputs, Forest):
        return format_tree(inputs)
    if not isinstance(classifier, RecordClassifier) or classifier.plan.whole:
        return None
    columns = list(classifier.plan.columns)
    return lambda index: get_record(X, index, columns)


def format_tree(forest: Forest) -> Callable[[int], str]:
    """Return a function from the index of an example to its trees in brackets."""
    return lambda index: "; ".join(str(text) for text in forest[index : index + 1].brackets())


def get_record(X: Any, row: int, columns: Sequence[str]) -> dict[str, Any]:
    """Return a record of a table; the table may have any type that encoders accept."""
    if hasattr(X, "iloc"):  # pandas
        return dict(X.iloc[row])
    if hasattr(X, "slice") and hasattr(X, "to_pylist"):  # pyarrow
        return dict(X.slice(row, 1).to_pylist()[0])
    if hasattr(X, "row") and hasattr(X, "columns"):  # polars
        return dict(X.row(row, named=True))
    if isinstance(X, Mapping):
        return {name: values[row] for name, values in X.items()}
    record = X[row]
    return dict(record) if isinstance(record, Mapping) else dict(zip(columns, record, strict=False))
