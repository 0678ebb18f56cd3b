"""Small tables that notebooks show for models, classifiers and explanations."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
from unkernel.engines.explain.explanation import Explanation
from unkernel.engines.explain.fragments import TreeExplanation
from unkernel.models.base import Model
from unkernel.parsing.parser_model import SavedModel
from unkernel.report.explanation_tables import make_explanation_table
from unkernel.report.markup import Html, element, facts
from unkernel.report.model_summary import (
    describe_classifier,
    describe_model,
    describe_parser,
    describe_training,
)
from unkernel.report.page import style


def make_notebook_html(shown: Any) -> str:
    """Return a table of facts about an object, with its style sheet."""
    return element("div", element("style", Html(style("tables.css"))), _table(shown), class_="unkernel")


@singledispatch
def _table(shown: Any) -> Html:
    return element("pre", repr(shown))


@_table.register
def _(shown: Model) -> Html:
    return _facts(shown, describe_model(shown) | describe_training(shown))


@_table.register
def _(shown: SavedModel) -> Html:
    return _facts(shown, describe_parser(shown))


@_table.register(CompiledClassifier)
@_table.register(RecordClassifier)
@_table.register(TreeClassifier)
def _(shown: Any) -> Html:
    return _facts(shown, describe_classifier(shown))


@_table.register(Explanation)
@_table.register(TreeExplanation)
def _(shown: Any) -> Html:
    return make_explanation_table(shown)


def _facts(shown: Any, found: dict[str, str]) -> Html:
    name = type(shown).__name__
    return facts([""], [(fact, [words]) for fact, words in found.items()], caption=name)
