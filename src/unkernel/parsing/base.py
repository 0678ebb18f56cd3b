"""Base class of the estimators of parsers, taggers and chunkers."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from unkernel.engines import CompiledClassifier
from unkernel.engines.delegation import delegate
from unkernel.parsing.model_estimator import ModelEstimator, Source
from unkernel.parsing.parser_model import ParserModel
from unkernel.poly import PolyLogisticRegression, PolySVC

_SUPPORT_VECTOR_ENGINES = ("inverted", "bitsliced", "split", "pruned")


Parser = TypeVar("Parser", bound=ParserModel)


class BaseParser(ModelEstimator[Source, Parser]):
    """Base class of estimators that fit a :class:`ParserModel`, ``model_``, and answer with it."""

    model_class: ClassVar[type[ParserModel]]

    degree: int
    C: float | None
    learner: str
    engine: str
    min_count: int
    tol: float
    random_state: Any

    # --- Fitted attributes ----------------------------------------------------------------------------

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifiers that make the decisions, by name."""
        return self._fitted_model.parts_

    class_names = delegate(ParserModel.class_names)
    feature_names = delegate(ParserModel.feature_names)
    explain = delegate(ParserModel.explain)
    heaviest = delegate(ParserModel.heaviest)

    # --- For training ---------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.engine in _SUPPORT_VECTOR_ENGINES and (self.learner != "svm" or self.degree == 1):
            raise ValueError(
                f"engine={self.engine!r} sums over support vectors, which learner={self.learner!r} of degree "
                f"{self.degree} does not have: use engine='auto'"
            )

    def _check_min_count(self, corpus: Any, features: int) -> None:
        """Raise ValueError if `min_count` has left no feature; some templates give none at all."""
        if self.min_count > 1 and not features:
            raise ValueError(
                f"{corpus.name}: no feature occurs {self.min_count} times in {len(corpus):,} "
                f"sentence{'s' * (len(corpus) != 1)}: give more sentences, or lower min_count"
            )

    def _new_row_learner(self, **others: Any) -> PolySVC | PolyLogisticRegression:
        """Return an estimator of rows with the parser's parameters and `others`."""
        if self.engine in _SUPPORT_VECTOR_ENGINES:
            others = {"storage": "split"} | others  # support vectors instead of weights
        chosen = {
            "degree": self.degree,
            "C": self.C,
            "tol": self.tol,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
        } | others
        return PolyLogisticRegression(**chosen) if self.learner == "logistic" else PolySVC(**chosen)
