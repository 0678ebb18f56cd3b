"""The compiled classifier of trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import ExampleMachine, ExampleSet, OneTreeScorer, example_machine
from unkernel.data.threads import thread_count
from unkernel.data.trees.forest import Forest, as_forest
from unkernel.engines.estimator import CompiledEstimator
from unkernel.engines.explain.fragments import Fragment, Search, TreeExplanation
from unkernel.models.threshold import Threshold
from unkernel.models.tree import TreeModel

if TYPE_CHECKING:
    from unkernel.engines.explain.explanation import Comparison, Heavy

_MAX_CACHED_DIFFERENCES = 4  # cached machines; each computes the difference of two classes' scores
_NOT_FINITE = "a score is not finite: a tree is too large for the kernel's decay"


class TreeClassifier(CompiledEstimator):
    """Compiled classifier of trees: immutable and safe to use from many threads.

    :func:`unkernel.compile` and :func:`unkernel.load` return such classifiers. The support trees are merged
    into weights of their subtrees. A tree is scored by the subtrees that it shares with support trees,
    instead of a sum over all support trees. The scores are the same.

    All parameters are also attributes.

    Parameters
    ----------
    model : TreeModel
        The model.

    See Also
    --------
    TreeSVC : Train a model of trees.
    CompiledClassifier : Compiled classifier of rows.

    Examples
    --------
    >>> from unkernel import TreeSVC, compile
    >>> trees = ["(S (NP dogs) (VP bark))", "(NP (NP cats) (PP of))"]
    >>> fast = compile(TreeSVC().fit(trees, ["S", "NP"]))
    >>> fast.predict(["(S (NP cats) (VP bark))"])
    array(['S'], dtype='<U2')
    """

    model: TreeModel
    _parameter_names = ("model",)
    _takes_rows = False

    def __init__(self, model: TreeModel) -> None:
        self.model = model

    # --- Properties -----------------------------------------------------------------------------------

    @property
    def engine(self) -> str:
        """Name of the engine that computes the scores."""
        return "forest" if self.model.kernel.combination in ("trees", "sum") else "kernels"

    @property
    def exact(self) -> bool:
        """Whether the scores are exactly those of the model; always true."""
        return True

    @property
    def nbytes(self) -> int:
        """Size of the weighted forest in bytes."""
        return int(self._machine.nbytes) + self.model.support.nbytes

    def bytes_to_come(self) -> float:
        """Return an upper bound of the memory that the weighted forest will take.

        Returns
        -------
        float
            The bound, in bytes.
        """
        support = self.model.support
        entries = 0.0
        for roots in support.trees.values():
            # A tree has at most one distinct subtree per node, and all subtrees precede the tree in the
            # table.
            sizes = np.asarray(support.table.tree_sizes(roots))
            entries += float(np.minimum(sizes, roots + 1.0).sum())
        return 24.0 * entries + 16.0 * support.nodes * self.model.n_scores

    @cached_property
    def _machine(self) -> ExampleMachine:
        return self._make_machine(self.model.coefficients)

    def _make_machine(self, coefficients: NDArray[np.float64]) -> ExampleMachine:
        model = self.model
        examples = model.kernel.examples(model.support, indexed=True)
        all_trees = np.arange(model.n_support, dtype=np.int32)
        return example_machine(model.kernel.core(), examples, all_trees, np.ascontiguousarray(coefficients))

    def with_threshold(self, threshold: float | Threshold | None) -> TreeClassifier:
        """Return a copy with another decision threshold, which is saved with the model.

        Parameters
        ----------
        threshold : float, Threshold or None
            The smallest probability of ``classes_[1]`` for which this class is predicted. A
            :class:`~unkernel.models.Threshold` applies to the other class, or to scores instead of
            probabilities. None removes the threshold.

        Returns
        -------
        TreeClassifier
            A classifier that shares the trees.
        """
        return TreeClassifier(self.model.with_threshold(threshold))

    # --- Many trees -----------------------------------------------------------------------------------

    def decision_function(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        return self.decision.decide(self.raw_scores(X, n_jobs))

    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[Any]:
        return self.decision.choose(self.raw_scores(X, n_jobs))

    def raw_scores(self, X: Any, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Compute all scores of the model for each tree.

        Parameters
        ----------
        X : list of trees, or Forest
            The trees.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors.

        Returns
        -------
        ndarray of shape (n_trees, n_scores)
            The scores.
        """
        forest = as_forest(X)
        threads = thread_count(n_jobs)
        examples = self.model.kernel.examples(forest, like=self.model.support, threads=threads)
        scores = np.asarray(self._machine.score(examples, threads)) + self.model.intercept
        if not np.isfinite(scores).all():
            raise ValueError(_NOT_FINITE)
        return scores

    # --- One tree -------------------------------------------------------------------------------------

    def score_one(self, tree: str) -> float | list[float]:
        """Return the scores of one tree in brackets.

        Do not call this method from several threads; give each thread its own :meth:`worker`.

        Parameters
        ----------
        tree : str
            The tree in brackets.

        Returns
        -------
        float or list of float
            The result of :meth:`decision_function` for the tree.
        """
        return self._default_worker.score_one(tree)

    @cached_property
    def _default_worker(self) -> OneTreeWorker:
        return self.worker()

    def worker(self) -> OneTreeWorker:
        """Return a scorer of single trees with its own buffers, for use in one thread.

        Returns
        -------
        OneTreeWorker
            The scorer; it has a method ``score_one``.
        """
        return OneTreeWorker(self)

    # --- Explanations ---------------------------------------------------------------------------------

    def explain(self, tree: Any, top: int = 10, *, of: Any = None) -> TreeExplanation:
        """Explain the score of one tree by its fragments.

        Parameters
        ----------
        tree : tree
            One tree, in any form that :meth:`predict` takes.
        top : int, default=10
            Number of fragments to list, largest first.
        of : label, default=None
            The class whose score is explained. With None, this is the predicted class, compared with the
            runner-up if there are more than two classes.

        Returns
        -------
        TreeExplanation
            The fragments; with ``rest`` and ``intercept`` they add up to the score.
        """
        from unkernel.engines.explain.explanation import check_top, choose_comparison

        forest = tree if isinstance(tree, Forest) else as_forest([tree])
        if len(forest) != 1:
            raise ValueError(f"one tree at a time can be explained, got {len(forest)}")
        count = check_top(top)
        scores = self.raw_scores(forest, 1)
        chosen = self.decision.choose(scores)[0] if of is None and self.model.n_scores == 1 else of
        comparison = choose_comparison(self.decision, scores[0], chosen)
        examples = self.model.kernel.examples(forest, like=self.model.support)
        fragments, complete = self._find_decisive(examples, comparison, count)
        score, intercept = (
            _compute_difference(comparison, values) for values in (scores[0], self.model.intercept)
        )
        unlisted = score - intercept - sum(fragment.value for fragment in fragments)
        return TreeExplanation(
            score,
            comparison.for_class,
            comparison.against,
            intercept,
            fragments,
            unlisted,
            complete,
            scores[0].tolist(),
        )

    def heaviest(self, top: int = 10, *, of: Any = None) -> list[Heavy]:
        """List the fragments with the largest weights.

        Parameters
        ----------
        top : int, default=10
            Number of fragments to list, largest absolute weight first.
        of : label, default=None
            The class whose score the fragments contribute to; None lists the fragments of all classes.

        Returns
        -------
        list of Heavy
            The fragments in brackets, each with its weight and the class that it supports.
        """
        from unkernel.engines.explain.explanation import Heavy, check_top, find_supported_class

        count = check_top(top)
        columns: Sequence[int] = range(self.model.n_scores)
        if of is not None:
            columns = range(1) if self.model.n_scores == 1 else [self._find_class_index(of)]
        search = self._make_search(self._machine)
        heaviest = []
        for column in columns:
            for fragment in search.find_heaviest(count, column)[0]:
                for_class, against, weight = find_supported_class(self.decision, column, fragment.weight)
                heaviest.append(Heavy(fragment.text, weight, for_class, None, against, fragment.channel))
        return sorted(heaviest, key=lambda heavy: -abs(heavy.weight))[:count]

    def _find_decisive(
        self, examples: ExampleSet, comparison: Comparison, top: int
    ) -> tuple[list[Fragment], bool]:
        """Return the fragments that contribute most to the comparison, and whether this is proved."""
        if len(comparison.columns) == 1:
            search = self._make_search(self._machine)
            fragments, complete = search.find_decisive(examples, top, comparison.columns[0])
            sign = comparison.sign
            signed = [replace(part, value=sign * part.value, weight=sign * part.weight) for part in fragments]
            return signed, complete
        return self._make_search(self._get_difference_machine(comparison)).find_decisive(examples, top, 0)

    def _get_difference_machine(self, comparison: Comparison) -> ExampleMachine:
        """Return a machine, cached if possible, whose score is the difference of the compared scores."""
        cached: dict[tuple[int, ...], ExampleMachine] = self.__dict__.setdefault("_differences", {})
        if comparison.columns not in cached:
            while len(cached) >= _MAX_CACHED_DIFFERENCES:
                cached.pop(next(iter(cached)), None)
            cached[comparison.columns] = self._make_machine(
                _compute_difference(comparison, self.model.coefficients.T)[:, None]
            )
        return cached[comparison.columns]

    def _make_search(self, machine: ExampleMachine) -> Search:
        kernel = self.model.kernel
        if kernel.combination not in ("trees", "sum"):
            raise ValueError(
                f"the kernel is {kernel.words()}: its scores are not sums over fragments of trees"
            )
        channels = ["all"] if kernel.tree_pairing == "all" else list(self.model.support.trees)
        return Search(machine, channels, kernel.tree_weight if kernel.combination == "sum" else 1.0)

    def _find_class_index(self, label: Any) -> int:
        indices = np.flatnonzero(self.classes_ == label)
        if not len(indices):
            raise ValueError(f"{label!r} is not one of the classes {self.classes_.tolist()}")
        return int(indices[0])

    # --- Files ----------------------------------------------------------------------------------------

    def to_container(self) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
        return self.model.kind, *self.model.to_container()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model,)

    def __repr__(self) -> str:
        return f"TreeClassifier({self.model.n_support} support trees, {self.model.kernel.words()})"


def _compute_difference(comparison: Comparison, values: Any) -> Any:
    """Return the value for the shown score, or the difference of the values for two compared scores."""
    first, *others = (values[column] for column in comparison.columns)
    return comparison.sign * (first - others[0] if others else first)


@dataclass(frozen=True, eq=False)
class _ScoreFormat:
    """Adds the intercepts to the scores of one tree, and returns a float or a list of floats."""

    intercept: list[float]

    def __call__(self, scores: list[float]) -> float | list[float]:
        if len(scores) == 1:  # faster, because no list is needed
            score = scores[0] + self.intercept[0]
            if not math.isfinite(score):
                raise ValueError(_NOT_FINITE)
            return score
        shifted = [score + constant for score, constant in zip(scores, self.intercept, strict=True)]
        if not all(map(math.isfinite, shifted)):
            raise ValueError(_NOT_FINITE)
        return shifted


class OneTreeWorker:
    """Scorer of single trees with its own buffers; use one per thread."""

    def __init__(self, classifier: TreeClassifier) -> None:
        model = classifier.model
        self._classifier = classifier
        self._format = _ScoreFormat(model.intercept.tolist())
        is_single_tree = model.kernel.combination == "trees" and len(model.support.trees) == 1
        self._scorer = OneTreeScorer(classifier._machine, model.kernel.normalize) if is_single_tree else None

    def score_one(self, tree: str) -> float | list[float]:
        """Return the scores of one tree in brackets."""
        if not isinstance(tree, str):
            raise TypeError(
                f"score_one takes a tree in brackets, got {type(tree).__name__}; predict takes other forms"
            )
        if self._scorer is None:
            scores = self._classifier.raw_scores(Forest([tree]), 1)[0].tolist()
            return scores[0] if len(scores) == 1 else list(scores)
        return self._format(self._scorer.score(tree))
