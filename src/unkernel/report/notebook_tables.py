"""Small tables that notebooks show for models, classifiers and explanations."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
from unkernel.engines.explain.explanation import Explanation
from unkernel.engines.explain.fragments import TreeExplanation
from unkernel.models.base import Model
from unkernel.parsing.parser_model import SavedModel
from unkernel.report.explanation_tables import explanation_table
from unkernel.report.markup import Html, element, facts
from unkernel.report.model_summary import classifier_facts, describe_training, model_facts, parser_facts
from unkernel.report.page import style


def html_of(shown: Any) -> str:
    """Return a table of facts about an object, with its style sheet."""
    return element("div", element("style", Html(style("tables.css"))), _table(shown), class_="unkernel")


@singledispatch
def _table(shown: Any) -> Html:
    return element("pre", repr(shown))


@_table.register
def _(shown: Model) -> Html:
    return _facts(shown, model_facts(shown) | describe_training(shown))


@_table.register
def _(shown: SavedModel) -> Html:
    return _facts(shown, parser_facts(shown))


@_table.register(CompiledClassifier)
@_table.register(RecordClassifier)
@_table.register(TreeClassifier)
def _(shown: Any) -> Html:
    return _facts(shown, classifier_facts(shown))


@_table.register(Explanation)
@_table.register(TreeExplanation)
def _(shown: Any) -> Html:
    return explanation_table(shown)


def _facts(shown: Any, found: dict[str, str]) -> Html:
    name = type(shown).__name__
    return facts([""], [(fact, [words]) for fact, words in found.items()], caption=name)
