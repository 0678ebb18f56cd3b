"""``unkernel inspect``: the content of a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unkernel.cli.inputs.feature_names import name_columns, read_names
from unkernel.cli.inputs.model_kinds import (
    RECORDS_ONLY,
    ROWS_NOT_RECORDS,
    ROWS_NOT_TREES,
    is_parser,
    is_records,
    refuse_options,
)
from unkernel.cli.inputs.models import (
    Opened,
    OpenedTrees,
    candidates_to_json,
    count_zones,
    describe,
    describe_trees,
    describe_trie,
    find_strongest,
    first_index,
    open_model,
    read_stored_feature_names,
)
from unkernel.cli.options import shared_options
from unkernel.cli.render.inspection import print_model
from unkernel.cli.terminal.console import print_json
from unkernel.cli.terminal.progress import Display
from unkernel.engines import CompiledClassifier, compile
from unkernel.engines.tables.builders import LARGEST_EXPANDED_DEGREE
from unkernel.engines.tables.compiled_tables import CONJUNCTIONS
from unkernel.models import KernelModel, container


def inspect(
    model: shared_options.AnyModelFile,
    top: shared_options.Top = 0,
    features: shared_options.Features = None,
    data: shared_options.RecordsOfImportances = None,
    json: shared_options.Json = False,
) -> None:
    """Show what is in a model file, of unkernel or of another program.

    Features are shown by name (--features) or by number. Numbers start at 0, or at 1 if they do so in the
    training file or in the file of another program. The weight of a conjunction is its contribution to the
    score of a row in which all of its features have the value 1. The weight of a tree fragment is its
    contribution to the score of a tree that contains it once, before normalisation.

    \b
    [dim]$[/dim] unkernel inspect model.uk
    [dim]$[/dim] unkernel inspect model.uk --top 20 --features names.txt
    [dim]$[/dim] unkernel inspect income.uk --data adult.test.csv
    [dim]$[/dim] unkernel inspect libsvm.model
    [dim]$[/dim] unkernel inspect parser.uk --top 20
    [dim]$[/dim] unkernel inspect model.uk --json | jq .conjunctions_by_order
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    if data is not None and not is_records(model):
        if not is_parser(model):
            open_model(model, "inspect")  # a damaged file is reported before an option that does not apply
        refuse_options(model, {"--data": data}, RECORDS_ONLY)
    if is_parser(model):
        from unkernel.cli.inputs.decisions import inspect_parser

        description = inspect_parser(model, top, features, quiet=json)
    elif is_records(model):
        description = _inspect_records(model, top, features, data, quiet=json)
    else:
        opened = open_model(model, "inspect")
        if isinstance(opened, OpenedTrees):
            description = _inspect_trees(opened, top, features, quiet=json)
        else:
            names = read_names(features, first_index(opened.model)) or read_stored_feature_names(opened.model)
            description = _inspect_rows(opened, top, names, quiet=json)
    if json:
        print_json(description)
    else:
        print_model(description)


# --- Trees --------------------------------------------------------------------------------------------


def _inspect_trees(opened: OpenedTrees, top: int, features: str | None, *, quiet: bool) -> dict[str, Any]:
    refuse_options(opened.path, {"--features": features}, ROWS_NOT_TREES)
    description = _describe_file(opened.path) | describe_trees(opened.model)
    description |= {
        "engine": opened.classifier.engine,
        "exact": opened.classifier.exact,
        "compiled_bytes": opened.classifier.nbytes,
        "origin": opened.model.origin,
    }
    return description | ({"top": _list_heaviest_fragments(opened, top, quiet=quiet)} if top else {})


def _describe_file(path: Path) -> dict[str, Any]:
    return {"file": str(path), "file_bytes": path.stat().st_size, "digests": container.has_digests(path)}


def _list_heaviest_fragments(opened: OpenedTrees, top: int, *, quiet: bool) -> list[dict[str, Any]]:
    """List the fragments with the largest weights over all classes."""
    with Display(quiet=quiet) as display, display.show_work("looking for fragments"):
        try:
            fragments = opened.classifier.heaviest(top)
        except ValueError as error:
            raise ValueError(f"{opened.path}: {error}; leave out --top") from error
    return [
        {
            "fragment": fragment.label,
            "tree": fragment.channel,
            "class": fragment.for_class,
            "weight": fragment.weight,
            "speaks_for": str(fragment.for_class) if fragment.weight > 0 else f"not {fragment.for_class}",
        }
        for fragment in fragments
    ]


# --- Records ------------------------------------------------------------------------------------------


def _inspect_records(
    path: Path, top: int, features: str | None, data: str | None, *, quiet: bool
) -> dict[str, Any]:
    from unkernel.cli.records.explanation import open_as_rows
    from unkernel.cli.records.importances import describe_data

    refuse_options(path, {"--features": features}, ROWS_NOT_RECORDS)
    records, opened = open_as_rows(path)
    names = dict(enumerate(records.classifier.plan.feature_names)) if top else {}
    description = _inspect_rows(opened, top, names, quiet=quiet)
    # Leave out the names of features: there may be millions, and the columns show where features come from.
    description["origin"] = {
        key: value for key, value in description["origin"].items() if key != "feature_names"
    }
    description |= {"records": True, "target": records.target, "columns": records.columns()}
    return description | ({} if data is None else describe_data(records, data, quiet=quiet))


# --- Rows ---------------------------------------------------------------------------------------------


def _inspect_rows(opened: Opened, top: int, names: dict[int, str], *, quiet: bool) -> dict[str, Any]:
    description = _describe_file(opened.path) | describe(opened.model)
    if opened.classifier is not None:
        description |= _describe_tables(opened, opened.classifier)
    description |= {"origin": opened.model.origin}
    return description | (_list_heaviest(opened, top, names, quiet) if top else {})


def _describe_tables(opened: Opened, classifier: CompiledClassifier) -> dict[str, Any]:
    """Describe the tables of a classifier, for JSON; the engine only if the file contains its tables."""
    description: dict[str, Any] = {"compiled": opened.stored_tables, "compiled_bytes": classifier.nbytes}
    if opened.stored_tables:
        description |= {
            "engine": classifier.engine,
            "exact": classifier.exact,
            "zones": count_zones(classifier.tables or classifier._tables),
            "trie": describe_trie(classifier),
            "candidates": candidates_to_json(classifier.candidates),
        }
    if classifier._tables.layout != CONJUNCTIONS:
        return description
    # Element k of "counts" is the number of conjunctions of k features.
    counts = classifier.heaviest_conjunctions(0)["counts"][1 : classifier._tables.parameters["degree"] + 1]
    return description | {"conjunctions": sum(counts), "conjunctions_by_order": counts}


def _list_heaviest(opened: Opened, top: int, names: dict[int, str], quiet: bool) -> dict[str, Any]:
    """List the `top` conjunctions with the largest weights, for JSON; `names` has the names of columns."""
    classifier, note = _expand_conjunctions(opened, quiet)
    listing = classifier.heaviest_conjunctions(top)
    index_base, decision = first_index(opened.model), opened.model.decision
    entries = []
    for padded_columns, weights in zip(listing["columns"].tolist(), listing["weights"].tolist(), strict=True):
        columns = sorted(column for column in padded_columns if column >= 0)  # -1 fills short conjunctions
        weight, supported_class = find_strongest(decision, weights)
        entry = {"features": [column + index_base for column in columns], "weights": weights}
        entry |= {"weight": weight, "speaks_for": supported_class}
        entries.append(entry | ({"names": name_columns(columns, names, index_base)} if names else {}))
    basis = "sets" if classifier._tables.parameters["sets"] else "monomials"
    return {"top": entries, "top_basis": basis, "top_note": note}


def _expand_conjunctions(opened: Opened, quiet: bool) -> tuple[CompiledClassifier, str | None]:
    """Return a classifier that has a table of conjunctions, and a note if the table is incomplete."""
    classifier = opened.classifier
    if classifier is not None and classifier._tables.layout == CONJUNCTIONS:
        return classifier, _describe_missing(classifier)
    assert isinstance(opened.model, KernelModel)
    kernel = opened.model.kernel
    can_expand = kernel.name == "linear" or (
        kernel.name == "polynomial" and kernel.degree <= LARGEST_EXPANDED_DEGREE
    )
    if not can_expand:
        degree = f" of degree {kernel.degree}" if kernel.name == "polynomial" else ""
        raise ValueError(
            f"{opened.path}: a model with the {kernel.name} kernel{degree} has no conjunctions to list; "
            f"linear ones and polynomial kernels up to degree {LARGEST_EXPANDED_DEGREE} have; leave out --top"
        )
    with Display(quiet=quiet) as display, display.show_attempts("expanding") as on_attempt:
        expanded = compile(opened.model, "expanded", on_progress=on_attempt)
    assert isinstance(expanded, CompiledClassifier)  # the model is not a model of trees
    return expanded, None


def _describe_missing(classifier: CompiledClassifier) -> str | None:
    if classifier.engine == "split":
        return "conjunctions of rare features are missing: the tables of engine split do not contain them"
    return None if classifier.exact else "conjunctions of small weight were dropped (engine pruned)"
