"""``unkernel compile``: compile a model of any program for speed."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unkernel.cli.inputs.model_kinds import is_records
from unkernel.cli.inputs.models import (
    Opened,
    OpenedTrees,
    candidates_to_json,
    describe,
    describe_threshold,
    describe_trees,
    describe_trie,
    open_model,
)
from unkernel.cli.inputs.prediction_rows import expect_rows
from unkernel.cli.learners.decision_thresholds import read_threshold, set_threshold
from unkernel.cli.options import shared_options, train_options
from unkernel.cli.options.error_wording import name_options_in_errors
from unkernel.cli.output_files import check_different, check_model_output, check_output, require_output
from unkernel.cli.records.compilation import adapt_plan, encode_file
from unkernel.cli.records.explanation import open_as_rows
from unkernel.cli.render.compilation import print_compiled
from unkernel.cli.terminal.console import print_json, warn
from unkernel.cli.terminal.progress import Display
from unkernel.data.memory import parse_bytes
from unkernel.engines import CompiledClassifier, RecordClassifier, TreeClassifier
from unkernel.engines import compile as compile_model
from unkernel.engines.search.options import check_trie
from unkernel.report import search_plot

# Defaults of ``unkernel.engines.compile``; the options use the same ones.
_DEFAULT: dict[str, Any] = {
    name: parameter.default for name, parameter in inspect.signature(compile_model).parameters.items()
}


def compile(
    source: shared_options.SourceFile,
    *,
    output: train_options.ModelOutput = None,
    engine: shared_options.Engine = _DEFAULT["engine"],
    memory: shared_options.Memory = _DEFAULT["memory"],
    sample: shared_options.Sample = _DEFAULT["sample"],
    rare: shared_options.Rare = _DEFAULT["rare"],
    threshold: shared_options.Threshold = _DEFAULT["threshold"],
    trie: shared_options.Trie = _DEFAULT["trie"],
    trie_nodes: shared_options.TrieNodes = _DEFAULT["trie_nodes"],
    measure: shared_options.Measure = _DEFAULT["measure"],
    decision_threshold: train_options.StoredThreshold = None,
    costs: train_options.CostsOfErrors = None,
    unknown_keys: shared_options.UnknownKeysOption = None,
    plot: shared_options.Plot = None,
    jobs: shared_options.Jobs = None,
    json: shared_options.Json = False,
    quiet: shared_options.Quiet = False,
    force: shared_options.Force = False,
) -> None:
    """Compile a model, of unkernel or another program, for speed.

    The command builds the engines that suit the model, measures each of them
    on typical rows, and saves the fastest together with the model in one
    file, which loads in milliseconds. All engines except pruned give the same
    scores as the model. Models of trees have only one engine.

    For models of records, --sample and --trie are files of records. With
    --unknown-keys error, the compiled model rejects records with unknown
    columns.

    With --decision-threshold or --costs, the compiled model of two classes
    with probabilities predicts by this threshold from then on.

    With --trie, the sums of frequent row prefixes are stored and looked up, if
    that is faster. The scores are the same.

    \b
    [dim]$[/dim] unkernel compile libsvm.model -o model.uk
    [dim]$[/dim] unkernel compile libsvm.model.xz -o model.uk --sample typical.svm --memory 200M
    [dim]$[/dim] unkernel compile svmlight.model -o model.uk --engine pruned --threshold 0.001
    [dim]$[/dim] unkernel compile libsvm.model -o model.uk --plot tried.svg
    [dim]$[/dim] unkernel compile model.uk -o fast.uk --trie corpus.svm --trie-nodes 1M --plot trade-off.png
    [dim]$[/dim] unkernel compile svm-light-tk.model -o model.uk
    [dim]$[/dim] unkernel compile income.uk -o strict.uk --unknown-keys error
    [dim]$[/dim] unkernel compile income.uk -o careful.uk --decision-threshold 0.31
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    model = require_output(output, "compile", source)
    (path, *more_models) = source
    if more_models:
        raise ValueError(f"{more_models[0]}: a second model; compile one at a time")
    _check_options(engine, memory, threshold)
    decision = {"threshold": decision_threshold, "costs": costs}
    with _name_decision_threshold():
        read_threshold(decision)
    nodes = _parse_nodes(engine, trie, trie_nodes)
    _check_outputs(model, plot, [path, sample, trie], force=force)
    with Display(quiet=quiet or json) as display:
        start = time.perf_counter()
        with display.show_work(f"reading {path.name}"):
            records, opened = open_as_rows(path) if is_records(path) else (None, open_model(path, "compile"))
        given_rows: dict[str, Any] = {"sample": sample, "trie": trie}
        if records is not None:
            threads = shared_options.count_threads(jobs)
            given_rows = {
                name: encode_file(records, file, threads, display) for name, file in given_rows.items()
            }
        elif unknown_keys is not None:
            raise ValueError(f"{path}: --unknown-keys is for models of records, and this is another model")
        read_end = time.perf_counter()
        if isinstance(opened, OpenedTrees):
            engine_options = {"--memory": memory, "--sample": sample, "--trie": trie, "--plot": plot}
            _check_for_trees(opened, engine, engine_options)
        elif records is None:
            for rows in (sample, trie):
                if rows is not None:
                    expect_rows(opened, rows)
        with _name_decision_threshold():
            model_to_compile = set_threshold(opened.model, decision)
        with display.show_attempts("compiling") as on_progress, name_options_in_errors():
            classifier = compile_model(
                model_to_compile,
                engine.value,
                memory=memory,
                rare=rare,
                threshold=threshold,
                **given_rows,
                trie_nodes=nodes,
                measure=measure,
                n_jobs=shared_options.count_threads(jobs),
                on_progress=on_progress,
            )
        assert isinstance(classifier, CompiledClassifier | TreeClassifier)  # no file contains a pipeline
        compile_end = time.perf_counter()
        with display.show_work("writing"):
            if records is None:
                classifier.save(model)
            else:
                assert isinstance(classifier, CompiledClassifier)  # the model is a model of rows
                RecordClassifier(adapt_plan(records, unknown_keys), classifier).save(model)
    result = _describe(opened, classifier, model)
    result["seconds"] = {"reading": read_end - start, "compiling": compile_end - read_end}
    result["trie_asked_for"] = trie is not None
    result["plot"] = _draw(plot, classifier, path)
    if json:
        print_json(result)
    elif not quiet:
        print_compiled(result)


def _check_options(engine: shared_options.EngineName, memory: str | None, threshold: float | None) -> None:
    """Raise ``ValueError`` for contradictory options, before any file is read."""
    if engine == shared_options.EngineName.pruned and threshold is None:
        raise ValueError("--engine pruned needs a --threshold: conjunctions of smaller weight are dropped")
    if engine != shared_options.EngineName.pruned and threshold is not None:
        raise ValueError(f"--threshold is for --engine pruned; {engine} is exact and drops nothing")
    if memory is not None:
        with name_options_in_errors():
            parse_bytes(memory)


@contextlib.contextmanager
def _name_decision_threshold() -> Iterator[None]:
    """Write --decision-threshold for --threshold in errors: here, --threshold is for the engine pruned."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        if message.startswith("--threshold"):
            message = message.replace("--threshold", "--decision-threshold", 1)
        raise ValueError(message) from error


def _parse_nodes(engine: shared_options.EngineName, trie: str | None, nodes: str | None) -> int | None:
    """Return the size limit of the trie, after checking that the engine can have a trie."""
    if trie is None and nodes is not None:
        raise ValueError("--trie-nodes needs rows to grow a trie from: give them with --trie")
    count = shared_options.parse_nodes(nodes)
    with name_options_in_errors():
        check_trie(engine.value, trie, count)
    return count


def _check_for_trees(opened: OpenedTrees, engine: shared_options.EngineName, options: dict[str, Any]) -> None:
    """Raise an error for options that choose or measure engines: models of trees have only one."""
    refused = [name for name, value in options.items() if value is not None]
    if engine != shared_options.EngineName.auto:
        refused.append("--engine")
    if refused:
        raise ValueError(f"{opened.path}: models of trees have one engine; leave out {' and '.join(refused)}")


def _check_outputs(
    model: Path, plot: Path | None, inputs: Sequence[str | Path | None], *, force: bool
) -> None:
    check_different(model, plot)
    check_model_output(model, *inputs, force=force)
    if plot is not None:
        search_plot.check_format(plot)
        check_output(plot, *inputs, force=force)
        search_plot.check_matplotlib()


def _describe(
    opened: Opened | OpenedTrees, classifier: CompiledClassifier | TreeClassifier, model: Path
) -> dict[str, Any]:
    source_description = (
        describe_trees(opened.model) if isinstance(opened, OpenedTrees) else describe(opened.model)
    )
    return {
        "source": str(opened.path),
        "model": str(model),
        "read": source_description | {"file_bytes": opened.path.stat().st_size},
        "threshold": describe_threshold(classifier.decision),
        "engine": classifier.engine,
        "exact": classifier.exact,
        "model_bytes": model.stat().st_size,
        "compiled_bytes": classifier.nbytes,
        "trie": describe_trie(classifier) if isinstance(classifier, CompiledClassifier) else None,
        "candidates": candidates_to_json(classifier.candidates)
        if isinstance(classifier, CompiledClassifier)
        else [],
    }


def _draw(plot: Path | None, classifier: CompiledClassifier | TreeClassifier, source: Path) -> str | None:
    """Draw the engines that were measured; return the name of the picture, or None if there is none."""
    if plot is None or isinstance(classifier, TreeClassifier):
        return None
    if not search_plot.select_measured(classifier.candidates):
        warn(f"{plot}: not drawn, because nothing was measured: give rows to measure on with --sample")
        return None
    search_plot.draw(plot, classifier.candidates, source.name)
    return str(plot)
