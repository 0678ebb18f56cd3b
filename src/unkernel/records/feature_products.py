"""Remove products of 0/1 features at the end of a plan: conjunctions of the model can replace them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unkernel.records import steps
from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep


def remove_products(plan: Plan, max_size: int) -> tuple[Plan, NDArray[np.int64]] | None:
    """Remove the last step of a plan if it multiplies 0/1 features.

    Parameters
    ----------
    plan : Plan
    max_size : int
        Largest number of features in a product.

    Returns
    -------
    (Plan, ndarray of shape (products, max_size)) or None
        The plan without the step, and the distinct features of each product in descending order, padded with
        -1. A feature is listed once even if it is a factor twice, because 0/1 features equal their squares.
        None if the last step is not such a step.
    """
    last = plan.steps[-1]
    if last.kind != "products" or "factors" not in last.table:
        return None
    source = int(last.table["input"])
    if not _is_binary(plan.steps, source):
        return None
    sets = _list_sets(last, max_size)
    if sets is None:
        return None
    kept_steps = list(plan.steps[:-1])
    # Only the products needed dense vectors.
    while kept_steps[source].kind == "densify":
        source = int(kept_steps[source].table["input"])
    if kept_steps[-1].kind == "densify":
        kept_steps.pop()
    if source != len(kept_steps) - 1:
        kept_steps.append(steps.concatenate([source], kept_steps[source].names))
    return replace(plan, steps=kept_steps), sets


def _is_binary(all_steps: Sequence[PlanStep], number: int) -> bool:
    """Return whether all values of a step are 0 or 1."""
    step = all_steps[number]
    if step.kind in ("one_hot", "indicate", "binarize"):
        return True
    if step.kind == "bins":
        return bool(step.table["one_hot"])
    if step.kind == "text":
        ids = step.table["ids"]
        return bool(step.table["binary"]) and not step.table["hashed"] and len(np.unique(ids)) == len(ids)
    if step.kind in ("select", "densify"):
        return _is_binary(all_steps, int(step.table["input"]))
    if step.kind == "concatenate":
        return all(_is_binary(all_steps, int(source)) for source in step.table["inputs"])
    return False


def _list_sets(step: PlanStep, max_size: int) -> NDArray[np.int64] | None:
    """Return the factors of each product as :func:`remove_products` does; None if a product has too many."""
    begins, factors = step.table["begins"], step.table["factors"].astype(np.int64)
    sizes = np.diff(begins)
    if sizes.max(initial=0) > max_size:
        return None
    sets = np.full((len(sizes), max_size), -1, np.int64)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    sets[rows, np.arange(len(factors)) - np.repeat(begins[:-1], sizes)] = factors
    sets = -np.sort(-sets, axis=1)
    sets[:, 1:][sets[:, 1:] == sets[:, :-1]] = -1  # repeated factors
    return -np.sort(-sets, axis=1)
