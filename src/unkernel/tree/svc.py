"""Support vector machines with tree kernels."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions

from unkernel.data.memory import available_bytes
from unkernel.data.threads import thread_count
from unkernel.data.trees.forest import as_forest, has_trees
from unkernel.engines.delegation import delegate
from unkernel.engines.trees.classifier import TreeClassifier
from unkernel.learners.base import Learner, Outcome, read_only_view
from unkernel.learners.parameters import COST
from unkernel.learners.prepared_classifier import PreparedClassifier
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import check_weights
from unkernel.models import Decision, ExampleKernel, Kernel, TreeModel
from unkernel.models.tree import COMBINATIONS, LEAST_DECAY, PAIRINGS, TREE_KERNELS, VECTOR_KERNELS
from unkernel.tree.options import ExactOptions, SampledOptions
from unkernel.tree.training_trees import NO_TREES, LocalTrees, ReusableTrees, TrainingTrees, TreeTargets

_MIN_SAMPLED_EXAMPLES = 500_000  # with at least this many examples, "auto" chooses "sampled"
_MAX_KERNEL_MATRIX_BYTES = 1 << 30  # largest size of the kernel matrix of the active examples
_MEMORY_SHARE = 0.25  # largest share of the free memory for the kernel matrix


class TreeSVC(PreparedClassifier, Learner):
    r"""Support vector classification with tree kernels, at about the speed of a linear SVM.

    Let :math:`\phi(x)` be the weighted counts of all fragments of a tree :math:`x`. The estimator solves

    .. math:: \min_{w, b} \; \tfrac{1}{2} \|w\|^2 + C \sum_i \max(0,\, 1 - y_i (w^\top \phi(x_i) + b))

    Problems with more than two classes are solved one versus the rest.

    Parameters
    ----------
    kernel : {"sst", "st", "sst_bow", "ptk"}, default="sst"
        The fragments to count: subset trees, complete subtrees, subset trees and words, or partial trees. See
        :class:`~unkernel.TreeKernel`.
    decay : float, default=0.4
        Factor (lambda) by which each production of a fragment reduces its weight.
    width_decay : float, default=0.4
        Factor (mu) by which each node of a fragment reduces its weight, for ``kernel="ptk"``.
    normalize : bool, default=True
        Whether to scale the kernel so that k(x, x) = 1 for every tree x.
    C : float, default=1.0
        Weight of the loss; larger values fit the training set more closely.
    solver : {"auto", "exact", "sampled"}, default="auto"
        Exact or approximate training. "exact" solves the whole problem and certifies the duality gap.
        "sampled" adds cutting planes from samples of the examples; its time does not depend on the number of
        examples. "auto" chooses "sampled" if there are at least 500,000 examples.
    sample_size : int, default=1000
        Number of examples per sample, for ``solver="sampled"``.
    imbalance : float, default=1.0
        Weight of a positive example relative to a negative one (j in the papers). "exact" multiplies the C of
        positive examples by this weight; "sampled" draws positive examples more often. Values above 1 raise
        recall and lower precision.
    tree_pairing : {"same", "all"}, default="same"
        Which trees to compare if examples have several trees: only those at the same position ("same"), or
        all pairs ("all").
    combine : {"auto", "trees", "vectors", "sum", "product"}, default="auto"
        How to combine the kernels of trees and vectors. "auto" is the sum if there are vectors, otherwise the
        tree kernel.
    tree_weight : float, default=1.0
        Weight of the tree kernel in a sum.
    vector_kernel : {"linear", "polynomial", "rbf", "sigmoid"}, default="linear"
        Kernel of the vectors that accompany the trees.
    degree : int, default=2
        Degree of the polynomial vector kernel ``(gamma <x, z> + coef0) ** degree``.
    gamma : float, default=1.0
        Factor of the inner product in the vector kernel.
    coef0 : float, default=1.0
        Constant of the vector kernel.
    normalize_vectors : bool, default=True
        Whether to scale the vector kernel so that k(x, x) = 1 for every vector x.
    fit_intercept : bool, default=True
        Whether to fit an intercept. "exact" does not regularise it, "sampled" does.
    tol : float, default=1e-3
        Precision at which training stops. "exact" stops when (P - D) / P <= tol, where P and D are the primal
        and the dual objective. "sampled" stops when the violation of a new cut exceeds the violations of all
        earlier cuts by at most ``tol``, in units of the mean loss per example.
    max_iter : int, default=1000
        Largest number of rounds.
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class; "balanced" gives all classes the same total weight.
    warm_start : bool, default=False
        Whether to keep the parsed trees and their index, which do not depend on C and y. The next fit on the
        same :class:`~unkernel.Forest`, or on an equal list of strings, reuses the trees and, for the same
        kernel, the index. The solver starts anew each time: the result equals the result of a single fit.
    n_jobs : int or None, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the samples that "sampled" draws.
    verbose : int, default=0
        1 prints the chosen solver and how training ended; 2 also prints one line per second.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    objective_ : float
        Primal objective, summed over the one-versus-rest problems. For "sampled", the losses are replaced by
        their lower bound from the cuts.
    gap_ : float
        Certified relative duality gap, the largest over all problems. For "sampled", the gap of the
        approximate problem in which the cuts replace the losses.
    n_iter_ : int
        Number of rounds, the largest over all problems.
    history_ : History
        Objective and lower bound of the optimum, pass by pass; ``to_frame()`` returns a pandas DataFrame.
    solver_ : str
        The solver that was used.
    n_support_ : int
        Number of support vectors (trees).
    model_ : TreeModel
        The fitted model; see :meth:`to_model`.

    See Also
    --------
    TreeKernel : The kernel matrix, for other kernel machines.
    read_trees : Read trees and labels from a file.
    TreeClassifier : The classifier that :func:`compile` makes from a fitted TreeSVC.

    References
    ----------
    .. [1] A. Severyn and A. Moschitti, "Large-scale support vector learning with structural kernels",
       ECML PKDD 2010.
    .. [2] A. Severyn and A. Moschitti, "Fast support vector machines for structural kernels", ECML PKDD 2011.

    Examples
    --------
    >>> from unkernel import TreeSVC
    >>> questions = ["(Q (WP who) (VBD wrote) (NP it))", "(Q (WRB where) (VBZ is) (NP it))"]
    >>> clf = TreeSVC(kernel="sst", decay=0.4, C=10).fit(questions, ["person", "place"])
    >>> clf.predict(["(Q (WP who) (VBZ is) (NP she))"])
    array(['person'], dtype='<U6')
    """

    _kind = "TreeSVC"
    _steps = "rounds"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(TREE_KERNELS))],
        "decay": [Interval(Real, LEAST_DECAY, None, closed="left")],
        "width_decay": [Interval(Real, LEAST_DECAY, None, closed="left")],
        "normalize": ["boolean"],
        "C": [COST],
        "solver": [StrOptions({"auto", "exact", "sampled"})],
        "sample_size": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "imbalance": [Interval(Real, 0, None, closed="neither")],
        "tree_pairing": [StrOptions(set(PAIRINGS))],
        "combine": [StrOptions({"auto", *COMBINATIONS})],
        "tree_weight": [Interval(Real, 0, None, closed="left")],
        "vector_kernel": [StrOptions(set(VECTOR_KERNELS))],
        "degree": [Interval(Integral, 1, 100, closed="both")],
        "gamma": [Interval(Real, None, None, closed="neither")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "normalize_vectors": ["boolean"],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        kernel: str = "sst",
        *,
        decay: float = 0.4,
        width_decay: float = 0.4,
        normalize: bool = True,
        C: float = 1.0,
        solver: str = "auto",
        sample_size: int = 1000,
        imbalance: float = 1.0,
        tree_pairing: str = "same",
        combine: str = "auto",
        tree_weight: float = 1.0,
        vector_kernel: str = "linear",
        degree: int = 2,
        gamma: float = 1.0,
        coef0: float = 1.0,
        normalize_vectors: bool = True,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    # --- Learning -------------------------------------------------------------------------------------

    def _prepare(self, X: Any, y: Any, sample_weight: Any, **_: Any) -> LocalTrees:
        reusable: ReusableTrees | None = getattr(self, "_reusable", None) if self.warm_start else None
        forest = as_forest(X) if reusable is None else reusable.find_forest(X)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(forest, labels)
        weights = None if sample_weight is None else check_weights(sample_weight, labels)
        targets = TreeTargets.from_labels(labels, weights, self.class_weight)
        kernel = self._make_kernel(with_trees=has_trees(forest), with_vectors=bool(forest.vectors))
        examples = None if reusable is None else reusable.find_examples(forest, kernel)
        if examples is None:
            examples = kernel.examples(forest, indexed=True, threads=thread_count(self.n_jobs))
        self._reusable = ReusableTrees.from_training(X, forest, kernel, examples) if self.warm_start else None
        return LocalTrees(forest, kernel, examples, targets)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the trees kept for the next fit, which are larger than the model."""
        return {name: value for name, value in super().__getstate__().items() if name != "_reusable"}

    def _train_on(self, examples: TrainingTrees, start: Any, on_progress: OnProgress | None) -> None:
        self.classes_ = examples.targets.classes
        solver = self._choose_solver(len(examples))
        report = self._choose_reporter(on_progress, "examples" if solver == "exact" else "cuts")
        train = self._train_exact if solver == "exact" else self._train_sampled
        solutions = train(examples, report)
        self.solver_ = solver
        self._finish_with_solutions(examples, solutions)

    def _make_kernel(self, *, with_trees: bool, with_vectors: bool) -> ExampleKernel:
        """Return the kernel; raise a ``ValueError`` if `combine` needs trees or vectors that are missing."""
        combine = self.combine
        if combine == "auto":
            if not with_trees and not with_vectors:
                raise ValueError(NO_TREES)
            combine = "sum" if with_trees and with_vectors else "trees" if with_trees else "vectors"
        if combine != "trees" and not with_vectors:
            raise ValueError(f"combine={combine!r} needs vectors, and the examples have none")
        if combine != "vectors" and not with_trees:
            raise ValueError(f"combine={combine!r} needs trees, and the examples have none")
        return ExampleKernel(
            tree=self.kernel,
            decay=float(self.decay),
            width_decay=float(self.width_decay),
            normalize=bool(self.normalize),
            tree_pairing=self.tree_pairing,
            combination=combine,
            tree_weight=float(self.tree_weight),
            vector=Kernel(self.vector_kernel, int(self.degree), float(self.gamma), float(self.coef0)),
            normalize_vectors=bool(self.normalize_vectors),
        )

    def _choose_solver(self, examples: int) -> str:
        if self.solver != "auto":
            return str(self.solver)
        return "sampled" if examples >= _MIN_SAMPLED_EXAMPLES else "exact"

    def _train_exact(self, trees: TrainingTrees, on_progress: OnProgress) -> list[dict[str, Any]]:
        free = available_bytes()
        memory = _MAX_KERNEL_MATRIX_BYTES
        if free:
            memory = int(min(memory, free * _MEMORY_SHARE))
        options = ExactOptions(
            imbalance=float(self.imbalance),
            tolerance=float(self.tol),
            max_rounds=int(self.max_iter),
            fit_intercept=bool(self.fit_intercept),
            memory=memory,
            threads=thread_count(self.n_jobs),
        )
        return trees.train_exact(options, float(self.C), on_progress)

    def _train_sampled(self, trees: TrainingTrees, on_progress: OnProgress) -> list[dict[str, Any]]:
        positives = trees.targets.positives
        options = SampledOptions(
            imbalance=float(self.imbalance),
            C=float(self.C),
            epsilon=float(self.tol),
            max_rounds=int(self.max_iter),
            sample_size=int(self.sample_size),
            fit_intercept=bool(self.fit_intercept),
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            method="forest" if trees.kernel.combination == "trees" else "kernels",
            threads=thread_count(self.n_jobs),
            problems=len(positives),
        )
        return [
            trees.train_sampled(
                replace(options, problem=problem, seed=options.seed + problem), positive, on_progress
            )
            for problem, positive in enumerate(positives)
        ]

    def _finish_with_solutions(self, trees: TrainingTrees, solutions: list[dict[str, Any]]) -> None:
        coefficients = np.column_stack([np.asarray(solution["coefficients"]) for solution in solutions])
        support = np.flatnonzero((coefficients != 0).any(axis=1))
        self.n_support_ = len(support)

        def make_model(origin: dict[str, Any]) -> TreeModel:
            return TreeModel(
                kernel=trees.kernel,
                support=trees.select(support),
                coefficients=read_only_view(np.ascontiguousarray(coefficients[support])),
                intercept=read_only_view(np.array([float(solution["intercept"]) for solution in solutions])),
                decision=Decision("binary" if len(solutions) == 1 else "one_vs_rest", self.classes_),
                origin=origin,
            )

        outcomes = [
            Outcome(
                solution["objective"],
                solution["dual_objective"],
                solution["rounds"],
                solution["converged"],
                solution["history"],
            )
            for solution in solutions
        ]
        about = f"solver={self.solver_}, {len(trees)} trees, {self.n_support_} of them in the model; "
        self._finish_fit(outcomes, make_model, facts={"solver": self.solver_}, about=about)

    def _describe_shortfall(self) -> str:
        rounds = f"{self.n_iter_} rounds"
        if self.solver_ == "sampled":
            return (
                f"{rounds} while new cuts were still violated by more than tol={self.tol:g}: "
                "raise max_iter or tol"
            )
        if self.n_iter_ < self.max_iter:
            return (
                f"{rounds} at a relative gap of {self.gap_:.2g}: kernels in single precision allow no more; "
                "raise tol or lower C"
            )
        return (
            f"{rounds} at a relative gap of {self.gap_:.2g} (tol={self.tol:g}): raise max_iter or tol, "
            "or lower C"
        )

    def _restore(self, model: Any) -> None:
        super()._restore(model)
        self.n_support_ = model.n_support
        solver = model.origin.get("solver")
        if isinstance(solver, str):
            self.solver_ = solver

    @classmethod
    def _infer_parameters(cls, model: Any) -> dict[str, Any]:
        kernel = model.kernel
        return super()._infer_parameters(model) | {
            "kernel": kernel.tree,
            "decay": kernel.decay,
            "width_decay": kernel.width_decay,
            "normalize": kernel.normalize,
            "tree_pairing": kernel.tree_pairing,
            "combine": kernel.combination,
            "tree_weight": kernel.tree_weight,
            "vector_kernel": kernel.vector.name,
            "degree": kernel.vector.degree,
            "gamma": kernel.vector.gamma,
            "coef0": kernel.vector.coef0,
            "normalize_vectors": kernel.normalize_vectors,
        }

    # --- Predictions ----------------------------------------------------------------------------------

    def _scores(self, X: Any) -> NDArray[np.float64]:
        return cast(TreeClassifier, self._fitted_classifier).raw_scores(X, thread_count(self.n_jobs))

    explain = delegate(TreeClassifier.explain, to="_fitted_classifier")
