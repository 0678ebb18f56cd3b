"""Describe models in text."""

from __future__ import annotations

from typing import Any

from unkernel.cli.terminal.console import format_size
from unkernel.measures.number_format import format_count, format_labels

_FORMATS = {
    "libsvm": "LIBSVM",
    "liblinear": "LIBLINEAR",
    "svmlight": "SVMlight",
    "svmlight-tk": "SVM-light-TK",
    "tinysvm": "TinySVM",
}
_MAX_LISTED_OUTPUTS = 10
_SCHEMES = {
    "binary": "one score",
    "one_vs_rest": "one score per class, the largest wins",
    "one_vs_one": "one vote per pair of classes",
    "one_class": "one class",
    "regression": "the score is the prediction",
    "ordinal": "the number of thresholds below the score",
    "calibrated": "the most probable class",
    "multi_label": "each label on its own: several labels, or none",
}


def model_facts(description: dict[str, Any]) -> dict[str, str]:
    """Return texts about a model, given the result of :func:`~unkernel.cli.inputs.models.describe`."""
    if "support_trees" in description:
        return _tree_facts(description)
    facts = {"kind": format_kind(description)}
    if "support_vectors" in description:
        values = "all values are 1" if description["binary"] else "real values"
        facts["kernel"] = format_kernel(description)
        facts["support vectors"] = f"{description['support_vectors']:,}, {values}"
    if description["scheme"] == "regression" and description["ranking"]:
        return facts | {"answers": "scores that order rows (ranking)"}
    return facts | _decision_facts(description)


def _tree_facts(description: dict[str, Any]) -> dict[str, str]:
    facts = {
        "kind": format_kind(description),
        "kernel": description["kernel_words"],
        "normalised": _format_normalisation(description),
        "support trees": f"{description['support_trees']:,}, with "
        f"{format_count(description['subtrees'], 'subtree')}, "
        f"{format_count(description['productions'], 'production')} "
        f"and {format_count(description['labels'], 'label')}",
    }
    if len(description["tree_channels"]) > 1 and description["combine"] != "vectors":
        pairing = "all with all" if description["tree_pairing"] == "all" else "place by place"
        facts["trees per example"] = f"at most {len(description['tree_channels'])}, compared {pairing}"
    return facts | _decision_facts(description)


def _format_normalisation(description: dict[str, Any]) -> str:
    parts = {"trees": description["normalize"], "vectors": description["normalize_vectors"]}
    return ", ".join(
        f"{part}: {'yes' if value else 'no'}" for part, value in parts.items() if value is not None
    )


def format_kind(description: dict[str, Any]) -> str:
    """Return the kind of a model, and the program that wrote its file unless this is unkernel."""
    if "basis" in description:
        return (
            f"{description['kind']} ({'sets of features' if description['basis'] == 'sets' else 'monomials'})"
        )
    source = f", read from {_FORMATS[description['format']]}" if description["format"] in _FORMATS else ""
    return f"{description['kind']}{source}"


def _decision_facts(description: dict[str, Any]) -> dict[str, str]:
    """Return texts about the classes, and about how scores become predictions."""
    scheme, classes = description["scheme"], description["classes"]
    if scheme == "multi_output":
        return _outputs_facts(description)
    if scheme == "regression":
        is_log = description["link"] == "log"
        return {"answers": "means of counts: exp(score)" if is_log else "numbers (regression)"}
    facts = {
        "labels" if scheme == "multi_label" else "classes": f"{len(classes):,}: {format_labels(classes)}"
    }
    if len(classes) > 2 or scheme in ("one_class", "ordinal", "multi_label"):
        facts["decision"] = _SCHEMES[scheme]
    if scheme == "ordinal":
        return facts | {
            "thresholds": format_labels([f"{threshold:.6g}" for threshold in description["thresholds"]])
        }
    facts["probabilities"] = "yes" if description["probability"] else "no"
    return facts | threshold_facts(description)


def _outputs_facts(description: dict[str, Any]) -> dict[str, str]:
    """Return facts about the outputs of a model of several outputs, at most the first ten."""
    outputs = description["outputs"]
    if outputs[0]["scheme"] == "regression":
        return {"answers": f"{format_count(len(outputs), 'number')} (regression)"}
    facts = {"outputs": f"{len(outputs):,}"}
    for number, output in enumerate(outputs[:_MAX_LISTED_OUTPUTS]):
        classes = output["classes"]
        facts[f"output {number}"] = f"{len(classes):,} classes: {format_labels(classes)}"
        if threshold := threshold_facts(output):
            facts[f"output {number}"] += f"; {threshold['threshold']}"
    if len(outputs) > _MAX_LISTED_OUTPUTS:
        facts["further outputs"] = f"{len(outputs) - _MAX_LISTED_OUTPUTS:,}"
    return facts | {"probabilities": "yes" if description["probability"] else "no"}


def threshold_facts(description: dict[str, Any]) -> dict[str, str]:
    """Return the fact about the threshold of a model, if it has one."""
    threshold = description.get("threshold")
    if threshold is None:
        return {}
    return {
        "threshold": f"{format_labels([threshold['class']])} from a {threshold['of']} of "
        f"{threshold['value']:.6g} on"
    }


def format_kernel(description: dict[str, Any]) -> str:
    """Return the kernel as a formula."""
    name = str(description["kernel"])
    if name == "rbf":
        return f"rbf exp(-{description['gamma']:g} |x - z|²)"
    if name not in ("polynomial", "sigmoid"):
        return "linear ⟨x, z⟩" if name == "linear" else name
    product = f"{description['gamma']:g} ⟨x, z⟩ + {description['coef0']:g}"
    return (
        f"polynomial ({product})^{description['degree']}"
        if name == "polynomial"
        else f"sigmoid tanh({product})"
    )


def format_exactness(exact: bool) -> str:
    """Return a word that states whether an engine gives the exact scores of its model."""
    return "exact" if exact else "APPROXIMATE"


def format_trie(trie: dict[str, int]) -> str:
    """Return a text with the size of the prefix trie."""
    return f"{format_count(trie['nodes'], 'node')} of at most {trie['limit']:,}, {format_size(trie['bytes'])}"
