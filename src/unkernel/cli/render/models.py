"""Descriptions of models, as text."""

from __future__ import annotations

from typing import Any

from unkernel.cli.terminal.console import format_size
from unkernel.measures.number_format import labels as label_words
from unkernel.measures.number_format import many

_FORMATS = {
    "libsvm": "LIBSVM",
    "liblinear": "LIBLINEAR",
    "svmlight": "SVMlight",
    "svmlight-tk": "SVM-light-TK",
    "tinysvm": "TinySVM",
}
_SCHEMES = {
    "binary": "one score",
    "one_vs_rest": "one score per class, the largest wins",
    "one_vs_one": "one vote per pair of classes",
    "one_class": "one class",
    "regression": "the score is the prediction",
    "ordinal": "the number of thresholds below the score",
    "calibrated": "the most probable class",
}


def model_facts(about: dict[str, Any]) -> dict[str, str]:
    """Return the facts of a model from its :func:`~unkernel.cli.inputs.models.describe`."""
    if "support_trees" in about:
        return _tree_facts(about)
    facts = {"kind": format_kind(about)}
    if "support_vectors" in about:
        values = "all values are 1" if about["binary"] else "real values"
        facts["kernel"] = format_kernel(about)
        facts["support vectors"] = f"{about['support_vectors']:,}, {values}"
    if about["scheme"] == "regression" and about["ranking"]:
        return facts | {"answers": "scores that order rows (ranking)"}
    return facts | _decision_facts(about)


def _tree_facts(about: dict[str, Any]) -> dict[str, str]:
    facts = {
        "kind": format_kind(about),
        "kernel": about["kernel_words"],
        "normalised": _format_normalisation(about),
        "support trees": f"{about['support_trees']:,}, with {many(about['subtrees'], 'subtree')}, "
        f"{many(about['productions'], 'production')} and {many(about['labels'], 'label')}",
    }
    if len(about["tree_channels"]) > 1 and about["combine"] != "vectors":
        paired = "all with all" if about["tree_pairing"] == "all" else "place by place"
        facts["trees per example"] = f"at most {len(about['tree_channels'])}, compared {paired}"
    return facts | _decision_facts(about)


def _format_normalisation(about: dict[str, Any]) -> str:
    parts = {"trees": about["normalize"], "vectors": about["normalize_vectors"]}
    return ", ".join(f"{part}: {'yes' if on else 'no'}" for part, on in parts.items() if on is not None)


def format_kind(about: dict[str, Any]) -> str:
    """Return the kind of a model, and the program that it comes from."""
    if "basis" in about:
        return f"{about['kind']} ({'sets of features' if about['basis'] == 'sets' else 'monomials'})"
    whose = f", read from {_FORMATS[about['format']]}" if about["format"] in _FORMATS else ""
    return f"{about['kind']}{whose}"


def _decision_facts(about: dict[str, Any]) -> dict[str, str]:
    scheme, classes = about["scheme"], about["classes"]
    if scheme == "regression":
        return {"answers": "numbers (regression)"}
    facts = {"classes": f"{len(classes):,}: {label_words(classes)}"}
    if len(classes) > 2 or scheme in ("one_class", "ordinal"):
        facts["decision"] = _SCHEMES[scheme]
    if scheme == "ordinal":
        return facts | {"thresholds": label_words([f"{threshold:.6g}" for threshold in about["thresholds"]])}
    return facts | {"probabilities": "yes" if about["probability"] else "no"}


def format_kernel(about: dict[str, Any]) -> str:
    """Return the kernel as a formula."""
    name = str(about["kernel"])
    if name == "rbf":
        return f"rbf exp(-{about['gamma']:g} |x - z|²)"
    if name not in ("polynomial", "sigmoid"):
        return "linear ⟨x, z⟩" if name == "linear" else name
    product = f"{about['gamma']:g} ⟨x, z⟩ + {about['coef0']:g}"
    return f"polynomial ({product})^{about['degree']}" if name == "polynomial" else f"sigmoid tanh({product})"


def format_exactness(exact: bool) -> str:
    """Return whether an engine gives the exact scores of its model, in words."""
    return "exact" if exact else "APPROXIMATE"


def format_trie(trie: dict[str, int]) -> str:
    """Return the size of the prefix trie, in words."""
    return f"{many(trie['nodes'], 'node')} of at most {trie['limit']:,}, {format_size(trie['bytes'])}"
