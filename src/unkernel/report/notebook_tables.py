"""Make the small tables that notebooks show for models, classifiers and explanations."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
from unkernel.engines.explain.explanation import Explanation
from unkernel.engines.explain.fragments import TreeExplanation
from unkernel.engines.explain.importances import Importances
from unkernel.engines.explain.shapes import Shape
from unkernel.models.base import Model
from unkernel.parsing.parser_model import SavedModel
from unkernel.report.explanation_tables import make_explanation_table, make_importance_table
from unkernel.report.markup import Html, element, facts
from unkernel.report.model_summary import (
    describe_classifier,
    describe_model,
    describe_parser,
    describe_training,
)
from unkernel.report.page import read_style


def make_notebook_html(value: Any) -> str:
    """Return a table of facts about an object, with its style sheet."""
    return element(
        "div", element("style", Html(read_style("tables.css"))), _make_table(value), class_="unkernel"
    )


@singledispatch
def _make_table(value: Any) -> Html:
    return element("pre", repr(value))


@_make_table.register
def _(value: Model) -> Html:
    return _make_facts_table(value, describe_model(value) | describe_training(value))


@_make_table.register
def _(value: SavedModel) -> Html:
    return _make_facts_table(value, describe_parser(value))


@_make_table.register(CompiledClassifier)
@_make_table.register(RecordClassifier)
@_make_table.register(TreeClassifier)
def _(value: Any) -> Html:
    return _make_facts_table(value, describe_classifier(value))


@_make_table.register(Explanation)
@_make_table.register(TreeExplanation)
def _(value: Any) -> Html:
    return make_explanation_table(value)


@_make_table.register
def _(value: Importances) -> Html:
    return make_importance_table(value, "Importances")


@_make_table.register
def _(value: Shape) -> Html:
    return Html(value.to_svg())


def _make_facts_table(value: Any, facts_of_value: dict[str, str]) -> Html:
    class_name = type(value).__name__
    return facts([""], [(name, [text]) for name, text in facts_of_value.items()], caption=class_name)
