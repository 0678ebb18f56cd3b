"""Generated problems at ordinary and extreme scales, solved by unkernel and by LIBLINEAR or LIBSVM.

    python -m campaigns.numerical --problems 10000 --seed 0

A learner certifies that its objective P is at most gap * P above the minimum. This is false if any weights
have an objective below (1 - gap) * P, such as those of LIBLINEAR, or zeros. The objective itself is
recomputed in higher precision from the fitted model. A compiled engine must return the kernel sum for any
kernel. Errors up to rounding are allowed, in proportion to the terms of the sum.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from reference import cutting_planes, poly, rankings, sparse
from unkernel import CuttingPlaneSVC, PolyLogisticRegression, PolySVC, RankSVM, compile

ROUNDING = 1e-12  # of the sum of the absolute values of all terms
ENGINES = ("inverted", "bitsliced", "expanded", "split", "auto")

Random = np.random.Generator
Rows = Any


# --- Problems -----------------------------------------------------------------------------------------


def make_problem(rng: Random, *, binary: bool, most_features: int = 5) -> tuple[Rows, Rows]:
    """Return rows of two classes, some equal or zero; columns may differ by orders of magnitude."""
    shape = int(rng.integers(4, 40)), int(rng.integers(1, most_features + 1))
    X = (rng.random(shape) < rng.choice([0.2, 0.5, 1.0])).astype(float)
    if not binary:
        X *= rng.normal(size=shape) * 10.0 ** (rng.choice([1, 2, 3]) * rng.uniform(-1, 1, shape[1]))
    X[rng.random(shape[0]) < 0.1] = X[0]
    y = rng.integers(0, 2, shape[0])
    y[:2] = 0, 1
    return X, y


def draw_power(rng: Random, orders: float) -> float:
    """Return a number around 1, up to this many orders of magnitude away."""
    return float(10.0 ** rng.uniform(-orders, orders))


# --- Checks ----------------------------------------------------------------------------------------


def fit_and_catch_warnings(learner: Any, *data: Any, **fit_arguments: Any) -> tuple[Any, bool]:
    """Return the fitted learner, and whether it warned about convergence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(*data, **fit_arguments)
    return learner, any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def train_peer(peer: Any, *data: Any) -> Rows:
    """Return the peer's weights, without warnings: any weights test a lower bound."""
    return fit_and_catch_warnings(peer, *data)[0].coef_[0]


def objective(
    w: Rows, Phi: Rows, y: Rows, C: float, loss: str, *, penalty: str = "l2"
) -> tuple[float, float]:
    """Return the objective of weights, and the sum of the absolute values of its terms."""
    w, Phi = np.asarray(w, np.longdouble), np.asarray(Phi, np.longdouble)
    signs = np.where(y == 1, 1, -1)
    size = 0.5 * (w * w).sum() if penalty == "l2" else np.abs(w).sum()
    margins, terms = signs * (Phi @ w), 1 + np.abs(Phi) @ np.abs(w)
    if loss == "logistic":
        return float(size + C * np.logaddexp(0, -margins).sum()), float(size + C * terms.sum())
    slack = np.maximum(1 - margins, 0)
    if loss == "hinge":
        return float(size + C * slack.sum()), float(size + C * terms.sum())
    return float(size + C * (slack**2).sum()), float(size + C * (terms**2).sum())


def find_false_claims(
    learner: Any, warned: bool, recomputed: tuple[float, float], other_objectives: list[float]
) -> Iterator[str]:
    """Yield the false statements of a fitted learner about its objective, gap and convergence."""
    value, terms = recomputed
    allowed = ROUNDING * terms
    if not np.isfinite([learner.objective_, learner.gap_]).all():
        yield f"objective {learner.objective_}, gap {learner.gap_}"
        return
    if abs(learner.objective_ - value) > 1e-8 * value + allowed:
        yield f"says that its objective is {learner.objective_!r}, and it is {value!r}"
    if learner.gap_ > learner.tol and not warned:
        yield f"did not converge ({learner.gap_} > {learner.tol}) and did not warn"
    bound = learner.objective_ * (1 - max(learner.gap_, 0.0))
    if bound > min(other_objectives) * (1 + 1e-12) + allowed:
        yield f"certified a minimum of {bound!r}, and {min(other_objectives)!r} was found"


# --- Families of problems -----------------------------------------------------------------------------


def check_linear(rng: Random) -> Iterator[str]:
    X, y = make_problem(rng, binary=rng.random() < 0.3)
    C, loss, intercept = draw_power(rng, 4), str(rng.choice(["hinge", "squared_hinge"])), rng.random() < 0.5
    options = {"C": C, "loss": loss, "fit_intercept": intercept}
    solver, tol = str(rng.choice(["cutting_plane", "dual"])), 10.0 ** -rng.integers(2, 8)
    learner, warned = fit_and_catch_warnings(
        CuttingPlaneSVC(solver=solver, tol=tol, max_iter=3000, **options), X, y
    )
    peer = LinearSVC(dual=True, tol=1e-8, max_iter=3000, **options)
    fitted_peer = fit_and_catch_warnings(peer, X, y)[0]
    if intercept:
        X = np.column_stack([X, np.ones(len(X))])
    own_weights, weights = learner.coef_[0], fitted_peer.coef_[0]
    if intercept:
        own_weights = np.append(own_weights, learner.intercept_[0])
        weights = np.append(weights, fitted_peer.intercept_[0])
    other_objectives = [objective(w, X, y, C, loss)[0] for w in (weights, 0 * weights)]
    yield from find_false_claims(learner, warned, objective(own_weights, X, y, C, loss), other_objectives)


def kernel_map(rng: Random) -> dict[str, Any]:
    return {
        "degree": int(rng.integers(1, 4)),
        "gamma": draw_power(rng, 2),
        "coef0": float(rng.choice([0.0, 1.0, draw_power(rng, 2)])),
        "feature_map": str(rng.choice(["kernel", "plain"])),
    }


def map_rows(learner: Any, X: Rows, options: dict[str, Any], *, l1: bool) -> tuple[Rows, Rows]:
    """Return the weights of a model over its conjunctions, and the mapped rows."""
    model = learner.to_model()
    w = sparse.model_weights(model, reduce=max if l1 else sum)[:, 0]
    return w, model_columns(model, X, together=max if l1 else sum)


def model_columns(model: Any, X: Rows, together: Any) -> Rows:
    """Return phi(x) of the conjunctions with weights, the constant first, in the order of `model_weights`."""
    order = sparse.conjunctions.list_conjunctions(len(model.columns), model.degree, model.sets)
    conjunctions = [(), *(order[key] for key in model.keys.tolist())]
    ranked = X[:, model.columns]
    columns = [
        np.prod(ranked[:, list(conjunction)], axis=1, dtype=np.longdouble) for conjunction in conjunctions
    ]
    constants = [sparse.constant_of(model, conjunction, together) for conjunction in conjunctions]
    return np.column_stack(columns) * np.array(constants)


def check_l2(rng: Random) -> Iterator[str]:
    X, y = make_problem(rng, binary=rng.random() < 0.5, most_features=4)
    C, loss, options = (
        draw_power(rng, 4),
        str(rng.choice(["hinge", "squared_hinge", "logistic"])),
        kernel_map(rng),
    )
    common = {"C": C, "tol": 10.0 ** -rng.integers(2, 7), "max_iter": 3000, "random_state": 0, **options}
    Phi = poly.expand(X, **options)
    if loss == "logistic":
        learner, warned = fit_and_catch_warnings(PolyLogisticRegression(penalty="l2", **common), X, y)
        peer: Any = LogisticRegression(solver="liblinear", C=C, fit_intercept=False, tol=1e-8, max_iter=1000)
    else:
        storage = str(rng.choice(["on_the_fly", "condensed"]))
        learner, warned = fit_and_catch_warnings(PolySVC(loss=loss, storage=storage, **common), X, y)
        peer = LinearSVC(dual=True, C=C, loss=loss, fit_intercept=False, tol=1e-8, max_iter=3000)
    w, columns = map_rows(learner, X, options, l1=False)
    weights = train_peer(peer, Phi, y)
    other_objectives = [objective(v, Phi, y, C, loss)[0] for v in (weights, 0 * weights)]
    yield from find_false_claims(learner, warned, objective(w, columns, y, C, loss), other_objectives)


def check_l1(rng: Random) -> Iterator[str]:
    binary = rng.random() < 0.5
    X, y = make_problem(rng, binary=binary, most_features=4)
    C, loss, options = draw_power(rng, 4), str(rng.choice(["squared_hinge", "logistic"])), kernel_map(rng)
    common = {"C": C, "tol": 10.0 ** -rng.integers(2, 7), "max_iter": 300, "random_state": 0, **options}
    Phi = (sparse.expand_sets if binary else poly.expand)(X, **options)
    if loss == "logistic":
        learner, warned = fit_and_catch_warnings(PolyLogisticRegression(penalty="l1", **common), X, y)
        peer: Any = LogisticRegression(
            solver="liblinear", l1_ratio=1, C=C, fit_intercept=False, tol=1e-8, max_iter=1000
        )
    else:
        learner, warned = fit_and_catch_warnings(PolySVC(penalty="l1", loss=loss, **common), X, y)
        peer = LinearSVC(penalty="l1", dual=False, C=C, fit_intercept=False, tol=1e-8, max_iter=1000)
    w, columns = map_rows(learner, X, options, l1=True)
    weights = train_peer(peer, Phi, y)
    other_objectives = [objective(v, Phi, y, C, loss, penalty="l1")[0] for v in (weights, 0 * weights)]
    yield from find_false_claims(
        learner, warned, objective(w, columns, y, C, loss, penalty="l1"), other_objectives
    )


def check_ranking(rng: Random) -> Iterator[str]:
    X, y = make_problem(rng, binary=rng.random() < 0.3)
    y = rng.integers(0, rng.integers(2, 6), len(y))
    y[:2] = 0, 1
    C = draw_power(rng, 4)
    learner, warned = fit_and_catch_warnings(
        RankSVM(C=C, tol=10.0 ** -rng.integers(2, 8), max_iter=3000), X, y
    )
    pairs, total = rankings.listed_pairs(y)
    i, j = (np.array(column) for column in list(zip(*pairs, strict=True))[:2])
    scale = C * cutting_planes.pair_scale(pairs, total)
    sides = np.where(np.arange(len(i)) % 2 == 0, 1, -1)
    differences = (X[i] - X[j]) * sides[:, None]
    peer = LinearSVC(loss="hinge", C=scale, fit_intercept=False, tol=1e-8, max_iter=3000)
    weights = np.zeros(X.shape[1]) if len(set(sides)) < 2 else train_peer(peer, differences, sides)
    values = [objective(w, differences, sides, scale, "hinge") for w in (learner.coef_, weights, 0 * weights)]
    yield from find_false_claims(learner, warned, values[0], [value for value, _ in values[1:]])


def check_engines(rng: Random) -> Iterator[str]:
    X, y = make_problem(rng, binary=rng.random() < 0.6, most_features=8)
    name = str(rng.choice(["poly", "rbf", "sigmoid", "linear"]))
    kernel = {"degree": int(rng.integers(1, 5)), "gamma": draw_power(rng, 3), "coef0": float(rng.normal())}
    if name == "poly" and rng.random() < 0.7:
        kernel["coef0"] = abs(kernel["coef0"])
    machine = SVC(kernel=name, C=draw_power(rng, 3), max_iter=10_000, **kernel)
    fit_and_catch_warnings(machine, X[::2], y[::2] if len(set(y[::2])) > 1 else np.arange(len(y[::2])) % 2)
    expected, terms = kernel_sums(machine, X)
    for engine in ENGINES:
        try:
            compiled = compile(machine, engine, measure=False)
        except ValueError as error:
            if "needs" not in str(error):
                raise
            continue
        scores = compiled.decision_function(X)
        is_wrong = np.abs(scores - expected) > 1e-10 * terms
        if is_wrong.any() or not np.isfinite(scores).all():
            place = int(np.argmax(np.abs(scores - expected)))
            answer, kernel_sum = scores[place], expected[place]
            yield f"{engine} of {name} {kernel} answers {answer!r} where the sum is {kernel_sum!r}"


def kernel_sums(machine: Any, X: Rows) -> tuple[Rows, Rows]:
    """Return scores by definition, and the sums of the absolute values of their terms."""
    A, Z = np.asarray(X, np.longdouble), np.asarray(machine.support_vectors_, np.longdouble)
    gamma, coef0, degree = machine.gamma, machine.coef0, machine.degree
    inner = A @ Z.T
    if machine.kernel == "linear":
        values, sizes = inner, np.abs(A) @ np.abs(Z).T
    elif machine.kernel == "poly":
        values = (gamma * inner + coef0) ** degree
        sizes = (gamma * np.abs(A) @ np.abs(Z).T + abs(coef0)) ** degree
    elif machine.kernel == "sigmoid":
        values, sizes = np.tanh(gamma * inner + coef0), 1 + gamma * np.abs(A) @ np.abs(Z).T + abs(coef0)
    else:
        lengths = (A**2).sum(axis=1)[:, None] + (Z**2).sum(axis=1)
        values, sizes = np.exp(-gamma * ((A[:, None] - Z) ** 2).sum(axis=2)), 1 + gamma * lengths
    coefficients = machine.dual_coef_[0]
    intercept = machine.intercept_[0]
    return values @ coefficients + intercept, sizes @ np.abs(coefficients) + abs(intercept)


FAMILIES: dict[str, Callable[[Random], Iterator[str]]] = {
    "linear": check_linear,
    "l2": check_l2,
    "l1": check_l1,
    "ranking": check_ranking,
    "engines": check_engines,
}


def run(count: int, first_seed: int = 0) -> Iterator[tuple[str, int, list[str]]]:
    """Solve one problem of each family in turn; yield the family, the seed and the faults."""
    for seed in range(first_seed, first_seed + -(-count // len(FAMILIES))):
        for name, family in FAMILIES.items():
            try:
                faults = list(family(np.random.default_rng(seed)))
            except Exception as error:  # a crash is a finding
                faults = [f"{type(error).__name__}: {error}"]
            yield name, seed, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    n_problems = dict.fromkeys(FAMILIES, 0)
    n_failed = dict.fromkeys(FAMILIES, 0)
    for number, (name, seed, faults) in zip(
        itertools.count(1), run(options.problems, options.seed), strict=False
    ):
        n_problems[name] += 1
        n_failed[name] += bool(faults)
        for line in faults:
            print(f"{name} {seed}: {line}", flush=True)
        if number % 500 == 0:
            print(f"{number:,} problems", file=sys.stderr, flush=True)
    print("| family | problems | wrong |\n|---|---|---|")
    for name, problems in n_problems.items():
        print(f"| {name} | {problems:,} | {n_failed[name]} |")
    return int(any(n_failed.values()))


if __name__ == "__main__":
    sys.exit(main())
