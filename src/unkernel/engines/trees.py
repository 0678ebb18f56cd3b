"""The compiled classifier of trees."""

from __future__ import annotations

import math
import os
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
from unkernel.engines.fragments import Fragment, Search, TreeExplanation
from unkernel.models.tree import TreeModel

if TYPE_CHECKING:
    from unkernel.engines.explaining import Comparison, Heavy

_MOST_DIFFERENCES = 4  # machines of two classes' difference that are kept
_NOT_FINITE = "a score is not finite: a tree is too large for the kernel's decay"


class TreeClassifier(CompiledEstimator):
    """A model of trees, ready to classify. Immutable, and safe to use from many threads.

    Made by :func:`unkernel.compile` and :func:`unkernel.load`. The support trees become weights of their
    subtrees, so that a tree is scored by the subtrees that it has something in common with, and not by going
    through the support trees one by one. The scores are the kernel sum's.

    Parameters
    ----------
    model : TreeModel

    Examples
    --------
    >>> from unkernel import TreeSVC
    >>> trees = ["(S (NP dogs) (VP bark))", "(NP (NP cats) (PP of))"]
    >>> fast = TreeClassifier(TreeSVC().fit(trees, ["S", "NP"]).to_model())
    >>> fast.predict(["(S (NP cats) (VP bark))"])
    array(['S'], dtype='<U2')
    """

    model: TreeModel
    _parameter_names = ("model",)
    _takes_rows = False

    def __init__(self, model: TreeModel) -> None:
        self.model = model

    # --- What it is -----------------------------------------------------------------------------------

    @property
    def engine(self) -> str:
        """Which engine answers."""
        return "forest" if self.model.kernel.combination in ("trees", "sum") else "kernels"

    @property
    def exact(self) -> bool:
        """Whether the scores are the model's own: always True."""
        return True

    @property
    def nbytes(self) -> int:
        """Bytes that the weighted forest takes."""
        return int(self._machine.nbytes) + self.model.support.nbytes

    def bytes_to_come(self) -> float:
        """At most what the weighted forest will take: weights of subtrees, and the subtrees of each tree."""
        support = self.model.support
        entries = 0.0
        for roots in support.trees.values():
            # A tree has no more different subtrees than nodes, and none that comes after it in the table.
            sizes = np.asarray(support.table.tree_sizes(roots))
            entries += float(np.minimum(sizes, roots + 1.0).sum())
        return 24.0 * entries + 16.0 * support.nodes * self.model.n_scores

    @cached_property
    def _machine(self) -> ExampleMachine:
        return self._machine_of(self.model.coefficients)

    def _machine_of(self, coefficients: NDArray[np.float64]) -> ExampleMachine:
        model = self.model
        examples = model.kernel.examples(model.support, indexed=True)
        everyone = np.arange(model.n_support, dtype=np.int32)
        return example_machine(model.kernel.core(), examples, everyone, np.ascontiguousarray(coefficients))

    # --- Many trees -----------------------------------------------------------------------------------

    def decision_function(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Scores of each tree: one number for two classes, else one per class.

        Parameters
        ----------
        X : list of trees, or Forest
        n_jobs : int, default=None
            Threads; None means one, -1 all cores. The scores do not depend on it.
        """
        return self.decision.decide(self.raw_scores(X, n_jobs))

    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[Any]:
        """The class of each tree."""
        return self.decision.choose(self.raw_scores(X, n_jobs))

    def raw_scores(self, X: Any, n_jobs: int | None = None) -> NDArray[np.float64]:
        """The (trees, scores) of the model."""
        forest = as_forest(X)
        threads = thread_count(n_jobs)
        examples = self.model.kernel.examples(forest, like=self.model.support, threads=threads)
        scores = np.asarray(self._machine.score(examples, threads)) + self.model.intercept
        if not np.isfinite(scores).all():
            raise ValueError(_NOT_FINITE)
        return scores

    # --- One tree -------------------------------------------------------------------------------------

    def score_one(self, tree: str) -> float | list[float]:
        """The scores of one tree in brackets, fast: what ``decision_function`` says of it.

        Not from two threads at once: a :meth:`worker` for each.
        """
        return self._one.score_one(tree)

    @cached_property
    def _one(self) -> OneTreeWorker:
        return self.worker()

    def worker(self) -> OneTreeWorker:
        """A scorer of single trees with memory of its own, for loops in a thread."""
        return OneTreeWorker(self)

    # --- Why ------------------------------------------------------------------------------------------

    def explain(self, tree: Any, top: int = 10, *, of: Any = None) -> TreeExplanation:
        """The fragments that made the decision, with what each added to the score.

        Parameters
        ----------
        tree : tree
            One, in any of the forms that ``predict`` takes a list of.
        top : int, default=10
            How many to list, the largest in size first.
        of : class, default=None
            Explain the score of this class. None explains the class that wins: of two classes by its score,
            of more by the difference between its score and that of the runner-up.

        Returns
        -------
        TreeExplanation
            Its ``intercept``, fragments and ``rest`` add up to ``score``.
        """
        from unkernel.engines.explaining import check_top, compared

        forest = tree if isinstance(tree, Forest) else as_forest([tree])
        if len(forest) != 1:
            raise ValueError(f"one tree at a time can be explained, got {len(forest)}")
        count = check_top(top)
        scores = self.raw_scores(forest, 1)
        chosen = self.decision.choose(scores)[0] if of is None and self.model.n_scores == 1 else of
        shown = compared(self.decision, scores[0], chosen)
        examples = self.model.kernel.examples(forest, like=self.model.support)
        found, complete = self._decisive(examples, shown, count)
        score, intercept = (_difference(shown, values) for values in (scores[0], self.model.intercept))
        rest = score - intercept - sum(fragment.value for fragment in found)
        return TreeExplanation(
            score, shown.for_class, shown.against, intercept, found, rest, complete, scores[0].tolist()
        )

    def heaviest(self, top: int = 10, *, of: Any = None) -> list[Heavy]:
        """The fragments of the largest weight in the model, over all classes.

        Parameters
        ----------
        top : int, default=10
            How many to list, the largest in size first.
        of : class, default=None
            List only those in the score of this class.

        Returns
        -------
        list of Heavy
            Each with the fragment in brackets, its weight and the class that it speaks for.
        """
        from unkernel.engines.explaining import Heavy, check_top, spoken_for

        count = check_top(top)
        columns: Sequence[int] = range(self.model.n_scores)
        if of is not None:
            columns = range(1) if self.model.n_scores == 1 else [self._place_of(of)]
        search = self._search(self._machine)
        found = []
        for column in columns:
            for one in search.heaviest(count, column)[0]:
                for_class, against, weight = spoken_for(self.decision, column, one.weight)
                found.append(Heavy(one.text, weight, for_class, None, against, one.channel))
        return sorted(found, key=lambda one: -abs(one.weight))[:count]

    def _decisive(self, examples: ExampleSet, shown: Comparison, top: int) -> tuple[list[Fragment], bool]:
        """The fragments with the largest part in what is compared."""
        if len(shown.columns) == 1:
            found, complete = self._search(self._machine).decisive(examples, top, shown.columns[0])
            sign = shown.sign
            return [replace(one, value=sign * one.value, weight=sign * one.weight) for one in found], complete
        return self._search(self._machine_of_difference(shown)).decisive(examples, top, 0)

    def _machine_of_difference(self, shown: Comparison) -> ExampleMachine:
        """A machine whose one score is the difference of two; the last few are kept."""
        kept: dict[tuple[int, ...], ExampleMachine] = self.__dict__.setdefault("_differences", {})
        if shown.columns not in kept:
            while len(kept) >= _MOST_DIFFERENCES:
                kept.pop(next(iter(kept)), None)
            kept[shown.columns] = self._machine_of(_difference(shown, self.model.coefficients.T)[:, None])
        return kept[shown.columns]

    def _search(self, machine: ExampleMachine) -> Search:
        kernel = self.model.kernel
        if kernel.combination not in ("trees", "sum"):
            raise ValueError(
                f"the kernel is {kernel.words()}: its scores are no sums over fragments of trees"
            )
        channels = ["all"] if kernel.tree_pairing == "all" else list(self.model.support.trees)
        return Search(machine, channels, kernel.tree_weight if kernel.combination == "sum" else 1.0)

    def _place_of(self, label: Any) -> int:
        places = np.flatnonzero(self.classes_ == label)
        if not len(places):
            raise ValueError(f"{label!r} is none of the classes {self.classes_.tolist()}")
        return int(places[0])

    # --- Files ----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a ``.uk`` file, whole or not at all; ``unkernel.load`` reads it."""
        self.model.save(path)

    def to_model(self) -> TreeModel:
        """The model that this was compiled from."""
        return self.model

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model,)

    def __repr__(self) -> str:
        return f"TreeClassifier({self.model.n_support} support trees, {self.model.kernel.words()})"


def _difference(shown: Comparison, values: Any) -> Any:
    """Of one value per score: that of the class in question, less that of the class it is compared with."""
    first, *others = (values[column] for column in shown.columns)
    return shown.sign * (first - others[0] if others else first)


@dataclass(frozen=True, eq=False)
class _Shape:
    """Turns raw scores into one number, or a list where there are several."""

    intercept: list[float]

    def __call__(self, scores: list[float]) -> float | list[float]:
        if len(scores) == 1:  # without lists, which take longer to make
            score = scores[0] + self.intercept[0]
            if not math.isfinite(score):
                raise ValueError(_NOT_FINITE)
            return score
        shifted = [score + constant for score, constant in zip(scores, self.intercept, strict=True)]
        if not all(map(math.isfinite, shifted)):
            raise ValueError(_NOT_FINITE)
        return shifted


class OneTreeWorker:
    """Scores single trees with memory of its own: one for each thread."""

    def __init__(self, classifier: TreeClassifier) -> None:
        model = classifier.model
        self._classifier = classifier
        self._shape = _Shape(model.intercept.tolist())
        plain = model.kernel.combination == "trees" and len(model.support.trees) == 1
        self._scorer = OneTreeScorer(classifier._machine, model.kernel.normalize) if plain else None

    def score_one(self, tree: str) -> float | list[float]:
        """The scores of one tree in brackets."""
        if not isinstance(tree, str):
            raise TypeError(
                f"score_one takes a tree in brackets, got {type(tree).__name__}; predict takes others"
            )
        if self._scorer is None:
            scores = self._classifier.raw_scores(Forest([tree]), 1)[0].tolist()
            return scores[0] if len(scores) == 1 else list(scores)
        return self._shape(self._scorer.score(tree))
