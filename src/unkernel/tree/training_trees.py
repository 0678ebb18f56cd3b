"""Prepare training trees for the solvers, and reuse them in the next fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from unkernel._core import ExampleSet, train_exact_trees, train_sampled_trees
from unkernel.data.trees.forest import Forest, as_forest
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import compute_class_weights, encode_classes
from unkernel.models import ExampleKernel
from unkernel.tree.options import ExactOptions, SampledOptions

NO_TREES = "no example has a tree"


@dataclass(frozen=True, eq=False)
class TreeTargets:
    """The class and the weight of each example, and the positive class of each problem."""

    classes: NDArray[Any]
    codes: NDArray[np.int32]
    importance: NDArray[np.float64]
    positives: list[int]

    @staticmethod
    def from_labels(
        labels: NDArray[Any], weights: NDArray[np.float64] | None, class_weight: Any
    ) -> TreeTargets:
        """Return the targets derived from checked labels and weights."""
        check_classification_targets(labels)
        classes, codes = encode_classes(labels, weights, "TreeSVC")
        factors = np.array(compute_class_weights(class_weight, classes, codes, weights))
        importance = factors[codes] * (1.0 if weights is None else weights)
        positives = [1] if len(classes) == 2 else list(range(len(classes)))  # one problem per class
        return TreeTargets(classes, codes, importance, positives)


class TrainingTrees(Protocol):
    """Training examples in the form that the solvers take, on this machine or on a cluster."""

    @property
    def targets(self) -> TreeTargets: ...

    @property
    def kernel(self) -> ExampleKernel: ...

    def __len__(self) -> int: ...

    def train_exact(self, options: ExactOptions, C: float, on_progress: OnProgress) -> list[dict[str, Any]]:
        """Solve all problems exactly; return the results of ``train_exact_trees`` of the core."""

    def train_sampled(
        self, options: SampledOptions, positive: int, on_progress: OnProgress
    ) -> dict[str, Any]:
        """Solve one problem by sampled cuts; return the result of ``train_sampled_trees`` of the core."""

    def select(self, places: NDArray[Any]) -> Forest:
        """Return the examples at these indices as a forest."""


@dataclass(frozen=True, eq=False)
class LocalTrees:
    """Examples in the memory of this process."""

    forest: Forest
    kernel: ExampleKernel
    examples: ExampleSet
    targets: TreeTargets

    def __len__(self) -> int:
        return len(self.forest)

    def train_exact(self, options: ExactOptions, C: float, on_progress: OnProgress) -> list[dict[str, Any]]:
        """Solve all problems jointly."""
        solutions = train_exact_trees(
            options,
            kernel=self.kernel.core(),
            set=self.examples,
            codes=self.targets.codes,
            costs=C * self.targets.importance,
            positives=self.targets.positives,
            on_progress=on_progress,
        )
        return [dict(solution) for solution in solutions]

    def train_sampled(
        self, options: SampledOptions, positive: int, on_progress: OnProgress
    ) -> dict[str, Any]:
        """Solve one problem."""
        return dict(
            train_sampled_trees(
                options,
                kernel=self.kernel.core(),
                set=self.examples,
                codes=self.targets.codes,
                costs=self.targets.importance,
                positive=positive,
                on_progress=on_progress,
            )
        )

    def select(self, places: NDArray[Any]) -> Forest:
        """Return the examples at these indices as a forest."""
        return self.forest[places].compact()


@dataclass(frozen=True, eq=False)
class ReusableTrees:
    """Examples that the next fit may reuse: parsed trees and the counts of their subtrees.

    Attributes
    ----------
    source : list of str or Forest
        The argument of ``fit``. A list is copied, because the caller may change it. Trees of other types may
        change as well, and are not reused.
    count : int
        Number of examples in the fit. The caller may have extended the forest since.
    """

    source: list[str] | Forest
    count: int
    forest: Forest
    kernel: ExampleKernel
    examples: ExampleSet

    @staticmethod
    def from_training(
        X: Any, forest: Forest, kernel: ExampleKernel, examples: ExampleSet
    ) -> ReusableTrees | None:
        """Return the examples of a fit on X for reuse; None if changes of X could not be detected."""
        if isinstance(X, Forest) or _is_list_of_text(X):
            source = X if isinstance(X, Forest) else list(X)
            return ReusableTrees(source, len(forest), forest, kernel, examples)
        return None

    def find_forest(self, X: Any) -> Forest:
        """Return the forest of X; if X has not changed, the forest of the last fit."""
        is_unchanged = X is self.source or (_is_list_of_text(X) and list(X) == self.source)
        return self.forest if is_unchanged else as_forest(X)

    def find_examples(self, forest: Forest, kernel: ExampleKernel) -> ExampleSet | None:
        """Return the examples of the last fit if the forest and the kernel have not changed, else None."""
        is_unchanged = forest is self.forest and len(forest) == self.count and kernel == self.kernel
        return self.examples if is_unchanged else None


def _is_list_of_text(X: Any) -> bool:
    return isinstance(X, list | tuple) and all(isinstance(tree, str) for tree in X)
