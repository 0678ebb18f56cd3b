"""What the estimators of all parsers and chunkers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from unkernel.engines import CompiledClassifier
from unkernel.parsing.explanation import ExplainedDecision, HeavyConjunction
from unkernel.parsing.model_estimator import ModelEstimator, Source
from unkernel.parsing.parser_model import ParserModel
from unkernel.poly import PolyLogisticRegression, PolySVC

_OF_SUPPORT_VECTORS = ("inverted", "bitsliced", "split", "pruned")  # engines that need support vectors


class BaseParser(ModelEstimator[Source]):
    """Fits a :class:`ParserModel`, which it keeps as ``model_``, and answers with it."""

    model_class: ClassVar[type[ParserModel]]

    model_: ParserModel
    degree: int
    C: float | None
    learner: str
    engine: str
    min_count: int
    tol: float
    random_state: Any

    # --- What was learned -----------------------------------------------------------------------------

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifiers that make the decisions, by name."""
        parts: dict[str, CompiledClassifier] = self._fitted_model.parts_
        return parts

    def class_names(self, part: str) -> list[str]:
        """Return the names of the classes of one of the classifiers.

        Parameters
        ----------
        part : str
            Name of the classifier in ``parts_``.

        Returns
        -------
        list of str
            The names.
        """
        names: list[str] = self._fitted_model.class_names(part)
        return names

    def feature_names(self, part: str) -> Callable[[int], str]:
        """Return a function that names the features of one of the classifiers.

        Parameters
        ----------
        part : str
            Name of the classifier in ``parts_``.

        Returns
        -------
        callable
            A function from the number of a column to its name.
        """
        names: Callable[[int], str] = self._fitted_model.feature_names(part)
        return names

    def explain(self, source: Any, tags: Any = None, *, top: int | None = 10) -> list[ExplainedDecision]:
        """Explain how sentences are analysed, decision by decision.

        Parameters
        ----------
        source : path, open file, corpus, or lists of words
            The sentences, as ``parse`` takes them.
        tags : lists of str, default=None
            Parts of speech, if the sentences are lists of words.
        top : int or None, default=10
            How many conjunctions of features to list per decision; None lists all.

        Returns
        -------
        list of ExplainedDecision
            The decisions, each with the conjunctions that separated the chosen class from the runner-up.
        """
        explained: list[ExplainedDecision] = self._fitted_model.explain(source, tags, top=top)
        return explained

    def heaviest(self, top: int = 10) -> list[HeavyConjunction]:
        """List the conjunctions of features with the largest weights.

        Parameters
        ----------
        top : int, default=10
            How many to list for each kind of decision, such as moves and labels.

        Returns
        -------
        list of HeavyConjunction
            Kind by kind, largest absolute weight first.
        """
        found: list[HeavyConjunction] = self._fitted_model.heaviest(top)
        return found

    def _annotate(self, corpus: Any, n_jobs: int | None) -> bytes:
        return bytes(self._fitted_model._annotate(corpus, self._choose_n_jobs(n_jobs)))

    # --- For training ---------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.engine in _OF_SUPPORT_VECTORS and (self.learner != "svm" or self.degree == 1):
            raise ValueError(
                f"engine={self.engine!r} sums over support vectors, which learner={self.learner!r} of degree "
                f"{self.degree} does not have: use engine='auto'"
            )

    def _check_min_count(self, corpus: Any, features: int) -> None:
        """Raise ValueError where `min_count` has left no feature; some templates give none at all."""
        if self.min_count > 1 and not features:
            raise ValueError(
                f"{corpus.name}: no feature occurs {self.min_count} times in {len(corpus):,} "
                f"sentence{'s' * (len(corpus) != 1)}: give more sentences, or lower min_count"
            )

    def _new_row_learner(self, **others: Any) -> PolySVC | PolyLogisticRegression:
        """An estimator of rows with the parser's parameters and some others."""
        if self.engine in _OF_SUPPORT_VECTORS:
            others = {"storage": "split"} | others  # which gives support vectors, not weights
        chosen = {
            "degree": self.degree,
            "C": self.C,
            "tol": self.tol,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
        } | others
        return PolyLogisticRegression(**chosen) if self.learner == "logistic" else PolySVC(**chosen)
