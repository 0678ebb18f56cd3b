"""Read, compile and describe models of rows and trees."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unkernel.cli.inputs.file_contents import explain_wrong_file
from unkernel.cli.inputs.model_kinds import describe_parser_file, list_commands
from unkernel.cli.terminal.console import format_size, note
from unkernel.cli.terminal.progress import Display
from unkernel.engines import Candidate, CompiledClassifier, TreeClassifier, compile, load
from unkernel.engines.search.candidates import describe_layout
from unkernel.engines.tables.compiled_tables import BITSLICED, CONJUNCTIONS, Tables
from unkernel.errors import FormatError
from unkernel.models import (
    ConjunctionModel,
    Decision,
    Kernel,
    KernelModel,
    LinearModel,
    TreeModel,
    read_model,
)
from unkernel.models.decision import pairs
from unkernel.models.model_files import is_compiled
from unkernel.models.several_outputs import MULTI_LABEL, MULTI_OUTPUT, find_output, name_columns

Model = KernelModel | LinearModel | ConjunctionModel
_SINGLE_NAMES = ("score", "value")  # of an output with one score


@dataclass(frozen=True, eq=False)
class Opened:
    """A model of rows; `classifier` is None if its support vectors have not been compiled."""

    path: Path
    model: Model
    classifier: CompiledClassifier | None
    stored_tables: bool = False  # whether the file contains the compiled tables

    def get_classifier(self, display: Display, *, threads: int, quiet: bool = False) -> CompiledClassifier:
        """Return the classifier; if there is none, compile the support vectors and print a note."""
        if self.classifier is not None:
            return self.classifier
        with display.show_attempts("compiling") as on_progress, _name_file_in_errors(self.path):
            classifier = compile(self.model, n_jobs=threads, on_progress=on_progress)
        assert isinstance(classifier, CompiledClassifier)  # the model is not a model of trees
        if not quiet:
            note(
                f"{self.path}: compiled for this run (engine {classifier.engine}, "
                f"{format_size(classifier.nbytes)}); `unkernel compile` saves the result in a file"
            )
        return classifier


@dataclass(frozen=True, eq=False)
class OpenedTrees:
    """A model of trees, and its classifier."""

    path: Path
    model: TreeModel
    classifier: TreeClassifier


def open_model(path: Path, command: str) -> Opened | OpenedTrees:
    """Read a model from a ``.uk`` file or from a file of another program.

    Any other file raises ``FormatError``. If it contains rows, trees or sentences, the message shows the
    arguments of `command`.
    """
    _check_no_parser(path)
    with explain_wrong_file(path, command), _name_file_in_errors(path):
        if path.is_file() and is_compiled(path):  # pipes are not files, and cannot be read twice
            classifier = load(path)
            if isinstance(classifier, TreeClassifier):
                return OpenedTrees(path, classifier.model, classifier)
            return Opened(path, classifier.model, classifier, stored_tables=True)
        model = read_model(path)
        if isinstance(model, TreeModel):
            return OpenedTrees(path, model, TreeClassifier(model))
        if isinstance(model, KernelModel):
            return Opened(path, model, None)
        return Opened(path, model, CompiledClassifier(model).validate())


def _check_no_parser(path: Path) -> None:
    description = describe_parser_file(path)
    if description is not None:
        reason = f"{description}, and not a model of rows or trees: {list_commands(path)}"
        raise FormatError(os.fspath(path), 0, 0, reason)


@contextlib.contextmanager
def _name_file_in_errors(path: Path) -> Iterator[None]:
    """Add the name of the file to error messages about a model."""
    try:
        yield
    except FormatError:
        raise
    except ValueError as error:
        raise FormatError(os.fspath(path), 0, 0, str(error)) from error


def first_index(model: Model, rows_zero_based: bool = True) -> int:
    """Return the number of column 0 in files: 0 or 1.

    This is the number that the model stores about its training file. If it stores none, `rows_zero_based`
    decides: whether indices start at 0 in the file of the rows to predict.
    """
    stored = model.origin.get("zero_based")
    return 0 if (stored if isinstance(stored, bool) else rows_zero_based) else 1


def read_stored_feature_names(model: Model) -> dict[int, str]:
    """Return the names of the columns that the model stores from its training data frame."""
    names = model.origin.get("feature_names")
    return dict(enumerate(map(str, names))) if isinstance(names, list) else {}


def is_ranking(model: Model) -> bool:
    """Return whether a model was trained to rank rows."""
    return model.decision.ranking


def describe_threshold(decision: Decision) -> dict[str, Any] | None:
    """Describe the threshold of a model, for JSON; None if it has none."""
    threshold = decision.threshold
    if threshold is None:
        return None
    label = decision.classes.tolist()[threshold.positive]
    return {"class": label, "of": threshold.of, "value": threshold.value}


def describe(model: Model) -> dict[str, Any]:
    """Return a description of a model of rows for JSON."""
    description: dict[str, Any] = {
        "kind": model.kind,
        "ranking": is_ranking(model),
        "format": _source_format(model),
        "scheme": model.decision.scheme,
        "classes": model.classes.tolist(),
        "features": model.n_features,
        "fixed_width": model.fixed_width,
        "probability": model.decision.has_probabilities,
        "threshold": describe_threshold(model.decision),
    }
    if model.decision.scheme == MULTI_OUTPUT:
        description["outputs"] = [
            {
                "scheme": output.scheme,
                "classes": output.classes.tolist(),
                "threshold": describe_threshold(output),
            }
            for output in model.decision.outputs
        ]
    if model.decision.scheme == "regression":
        description["link"] = model.decision.link
    if model.decision.scheme == "ordinal":
        description["thresholds"] = model.decision.thresholds.tolist()
    if isinstance(model, KernelModel):
        description |= _kernel_to_json(model.kernel)
        return description | {
            "support_vectors": model.n_support,
            "binary": model.binary,
            "used_features": len(np.unique(model.support_vectors.indices)),
            "intercept": model.intercept.tolist(),
        }
    if isinstance(model, LinearModel):
        n_used = int(np.count_nonzero(model.weights.any(axis=1)))
        return description | {"used_features": n_used, "intercept": model.intercept.tolist()}
    return description | {
        "degree": model.degree,
        "basis": "sets" if model.sets else "monomials",
        "used_features": len(model.columns),
        "feature_map": model.feature_map,
        "gamma": model.gamma,
        "coef0": model.coef0,
        "intercept": model.intercept.tolist(),
    }


def describe_trees(model: TreeModel) -> dict[str, Any]:
    """Return a description of a model of trees for JSON; parameters without effect are null."""
    kernel, support = model.kernel, model.support
    uses_trees, uses_vectors = kernel.combination != "vectors", kernel.combination != "trees"
    return {
        "kind": model.kind,
        "format": _source_format(model),
        "scheme": model.decision.scheme,
        "classes": model.classes.tolist(),
        "probability": model.decision.probability is not None,
        "threshold": describe_threshold(model.decision),
        "combine": kernel.combination,
        "kernel_words": kernel.words(),
        "kernel": kernel.tree if uses_trees else None,
        "decay": kernel.decay if uses_trees else None,
        "width_decay": kernel.width_decay if uses_trees and kernel.tree == "ptk" else None,
        "normalize": kernel.normalize if uses_trees else None,
        "tree_pairing": kernel.tree_pairing if uses_trees else None,
        "tree_weight": kernel.tree_weight if kernel.combination == "sum" else None,
        "vector_kernel": _kernel_to_json(kernel.vector) if uses_vectors else None,
        "normalize_vectors": kernel.normalize_vectors if uses_vectors else None,
        "vector_pairing": kernel.vector_pairing if uses_vectors else None,
        "support_trees": model.n_support,
        "subtrees": support.nodes,
        "productions": support.productions,
        "labels": support.labels,
        "tree_channels": list(support.trees),
        "vector_channels": list(support.vectors),
        "intercept": model.intercept.tolist(),
    }


def _kernel_to_json(kernel: Kernel) -> dict[str, Any]:
    """Return a description of a kernel for JSON; parameters without effect are null."""
    return {
        "kernel": kernel.name,
        "degree": kernel.degree if kernel.name == "polynomial" else None,
        "gamma": None if kernel.name in ("linear", "precomputed") else kernel.gamma,
        "coef0": kernel.coef0 if kernel.name in ("polynomial", "sigmoid") else None,
    }


def _source_format(model: Model | TreeModel) -> str:
    stored = model.origin.get("format")
    return stored if isinstance(stored, str) else "unkernel"


def count_zones(tables: Tables) -> dict[str, int]:
    """Return the number of features in each zone: a part of the tables with its own way of storage."""
    numbers, used = tables.numbers, len(tables.arrays["columns"])
    if tables.layout == CONJUNCTIONS:
        first_rare = numbers["rare"]
        dense, fused = numbers["head"], numbers["fused"]
        return {
            "used": used,
            "fused": fused,
            "grouped": _count_grouped(tables),
            "dense": dense,
            "rare": used - first_rare,
        }
    if tables.layout == BITSLICED:
        return {"used": used, "as_bits": numbers["frequent"], "as_lists": used - numbers["frequent"]}
    return {"used": used}


def _count_grouped(tables: Tables) -> int:
    """Return the number of features in groups; the tables store one sum for each subset of a group."""
    begins = tables.arrays.get("group_begins")
    return 0 if begins is None or not len(begins) else int(begins[-1])


def describe_trie(classifier: CompiledClassifier) -> dict[str, int] | None:
    """Return a description of a compiled model's prefix trie for JSON."""
    trie = classifier.trie
    if trie is None:
        return None
    return {"nodes": trie.nodes, "limit": trie.limit, "bytes": trie.nbytes}


def candidates_to_json(candidates: Iterable[Candidate]) -> list[dict[str, Any]]:
    """Return descriptions of the engines that were tried, for JSON; null means not built or not measured."""
    return [
        candidate.to_json()
        | {
            "details": describe_layout(candidate),
            "nbytes": candidate.nbytes if candidate.nbytes >= 0 else None,
            "microseconds": candidate.microseconds if candidate.microseconds >= 0 else None,
        }
        for candidate in candidates
    ]


def name_scores(decision: Decision) -> list[str]:
    """Return names for the scores of a row: classes or pairs of classes; a single score is called "score".

    For several outputs, the names begin with the numbers of the outputs.
    """
    if decision.outputs:
        return name_columns(decision, name_scores, *_SINGLE_NAMES)
    classes = decision.classes.tolist()
    if decision.scheme == "one_vs_rest":
        return [str(label) for label in classes]
    if decision.scheme == "one_vs_one" and len(classes) > 2:
        return [f"{classes[i]} : {classes[j]}" for i, j in pairs(len(classes))]
    return ["value" if decision.scheme == "regression" and decision.link == "identity" else "score"]


def name_decisions(decision: Decision) -> list[str]:
    """Return names for the numbers of ``decision_function``: scores, or sums of scores by class."""
    if decision.outputs:
        return name_columns(decision, name_decisions, *_SINGLE_NAMES)
    if decision.decides_by_scores:
        return name_scores(decision)
    return [str(label) for label in decision.classes.tolist()]


def name_probabilities(decision: Decision) -> list[str]:
    """Return names for probabilities: classes or labels; for several outputs, also the number of each."""
    if decision.outputs:
        return name_columns(decision, name_probabilities)
    return [str(label) for label in decision.classes.tolist()]


def find_strongest(decision: Decision, weights: list[float]) -> tuple[float, str]:
    """Return the weight with the largest absolute value, and the class that it supports."""
    index = max(range(len(weights)), key=lambda i: abs(weights[i]))
    return weights[index], _name_supported_class(decision, index, weights[index] > 0)


def _name_supported_class(decision: Decision, index: int, positive: bool) -> str:
    """Return the class that a positive or a negative value of score number `index` supports."""
    if decision.outputs:
        return _name_supported_output(decision, index, positive)
    classes = decision.classes.tolist()
    if decision.scheme == "regression":
        return "a larger value" if positive else "a smaller value"
    if decision.scheme == "ordinal":
        return "a higher class" if positive else "a lower class"
    if decision.scheme == "one_vs_rest":
        return str(classes[index]) if positive else f"not {classes[index]}"
    if decision.scheme == "one_vs_one":
        first, second = list(pairs(len(classes)))[index]
        winner, loser = (first, second) if positive else (second, first)
        return f"{classes[winner]}" + (f" over {classes[loser]}" if len(classes) > 2 else "")
    return str(classes[1 if positive else 0])


def _name_supported_output(decision: Decision, index: int, positive: bool) -> str:
    """Return what a weight of a model of several outputs supports."""
    output, own_index = find_output(decision.outputs, index)
    if decision.scheme == MULTI_LABEL:
        label = decision.classes.tolist()[output]
        return str(label) if positive else f"not {label}"
    return f"output {output}: {_name_supported_class(decision.outputs[output], own_index, positive)}"
