"""Thresholds of probabilities, as --threshold and --costs set them: parsed and checked before training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.options.report_options import parse_costs
from unkernel.models import Decision, Threshold
from unkernel.models.base import Model

Given = Mapping[str, Any]  # the values of the options that are set, by name


def read_threshold(option_values: Given) -> Threshold | None:
    """Return the threshold that --threshold or --costs set; None without them."""
    threshold, costs = option_values.get("threshold"), option_values.get("costs")
    if threshold is not None and costs is not None:
        raise ValueError("--threshold and --costs set the same threshold; give one of them")
    try:
        if threshold is not None:
            return Threshold(threshold)
        if costs is None:
            return None
        false_positive, false_negative = parse_costs(costs)
        return Threshold.from_costs(false_negative=false_negative, false_positive=false_positive)
    except ValueError as error:
        if str(error).startswith("--costs"):
            raise
        raise ValueError(f"{name_option(option_values)}: {error}") from error


def name_option(option_values: Given) -> str:
    """Return the name of the option that sets the threshold."""
    return "--threshold" if option_values.get("costs") is None else "--costs"


def check_learner(learner: Any, *, records: bool, folds: int | None) -> None:
    """Raise a ``ValueError`` for a threshold of a learner that gets no probabilities."""
    option_values = learner.option_values
    if read_threshold(option_values) is None or learner.has_probabilities:
        return
    option = name_option(option_values)
    if not records:
        raise ValueError(
            f"{option} needs probabilities, which train {learner.name} learns for records only (--target); "
            "train logistic learns them for rows"
        )
    if option_values.get("calibrate") == 0:
        raise ValueError(f"{option} needs probabilities, and --calibrate 0 is for none; leave one out")
    if folds is not None:
        raise ValueError(
            f"--cv measures train {learner.name} before its calibration, so without {option}; leave one out, "
            "or train logistic"
        )


def check_labels(option_values: Given, labels: NDArray[Any] | None, file: str) -> None:
    """Raise a ``ValueError`` for a threshold of labels that are not two classes."""
    if labels is None or read_threshold(option_values) is None:
        return
    count = len(np.unique(labels))
    if count != 2:
        raise ValueError(f"{file}: {name_option(option_values)} is for two classes, and there are {count:,}")


def set_threshold(model: Any, option_values: Given) -> Any:
    """Return a trained model with the threshold that the options set."""
    threshold = read_threshold(option_values)
    if threshold is None:
        return model
    assert isinstance(model, Model)
    try:
        return model.with_threshold(threshold)
    except ValueError as error:
        raise ValueError(f"{name_option(option_values)}: {error}") from error


def decide_by_threshold(decision: Decision, option_values: Given) -> Decision:
    """Return a decision with the threshold that the options set, if it has probabilities."""
    threshold = read_threshold(option_values)
    if threshold is None or decision.probability is None:
        return decision
    return replace(decision, threshold=threshold)
