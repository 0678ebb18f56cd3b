"""Trees made ready for the solvers, and kept from one fit to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import ExampleSet
from unkernel.data.trees.forest import Forest, as_forest
from unkernel.models import ExampleKernel


@dataclass(frozen=True, eq=False)
class TreeTargets:
    """What is to be learned: each example's class and weight, and the class that each problem is about."""

    codes: NDArray[np.int32]
    importance: NDArray[np.float64]
    positives: list[int]


@dataclass(frozen=True, eq=False)
class TrainingTrees:
    """Examples made ready for the solvers."""

    forest: Forest
    kernel: ExampleKernel
    examples: ExampleSet
    targets: TreeTargets


@dataclass(frozen=True, eq=False)
class KeptTrees:
    """Examples that the next fit may use again: the parsed trees, and what the kernel has counted in them.

    Attributes
    ----------
    source : list of str or Forest
        What was given to ``fit``; a copy of a list, as a list may change. Trees of other types, which may
        change as well, are not kept.
    count : int
        Examples; a forest that was extended has more.
    """

    source: list[str] | Forest
    count: int
    forest: Forest
    kernel: ExampleKernel
    examples: ExampleSet

    @staticmethod
    def of(X: Any, forest: Forest, kernel: ExampleKernel, examples: ExampleSet) -> KeptTrees | None:
        """What can be kept of a fit on X; None where X may change unseen."""
        if isinstance(X, Forest) or _is_list_of_text(X):
            source = X if isinstance(X, Forest) else list(X)
            return KeptTrees(source, len(forest), forest, kernel, examples)
        return None

    def forest_of(self, X: Any) -> Forest:
        """The forest of X: the kept one where X is the same as before."""
        same = X is self.source or (_is_list_of_text(X) and list(X) == self.source)
        return self.forest if same else as_forest(X)

    def examples_of(self, forest: Forest, kernel: ExampleKernel) -> ExampleSet | None:
        """What was counted in a forest by a kernel; None where one of them is another."""
        same = forest is self.forest and len(forest) == self.count and kernel == self.kernel
        return self.examples if same else None


def _is_list_of_text(X: Any) -> bool:
    return isinstance(X, list | tuple) and all(isinstance(tree, str) for tree in X)
