"""Try the candidates of ``compile``: the engines to build and measure for a model, in a suitable order.

A *border* is the number of support vectors that a feature needs in order not to be rare. A *head* is the part
of a table of conjunctions that contains the most frequent features (``tables.builders.Head``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from unkernel.engines.search.candidates import Bench, Candidate, Trial, describe
from unkernel.engines.search.layouts import (
    GROUPED_RANKS,
    LayoutSearch,
    MakeTables,
    compute_dense_bytes,
    get_largest_head,
    is_large,
    list_fused_counts,
    list_grouped_heads,
    list_heads_beside_groups,
    list_rare_borders,
)
from unkernel.engines.tables import builders
from unkernel.engines.tables.builders import Head, Machine
from unkernel.engines.tables.compiled_tables import Tables
from unkernel.engines.tables.int16 import build_int16, find_int16_obstacle
from unkernel.engines.tables.prefix_trie import export_trie, grow, remove_trie
from unkernel.models import ConjunctionModel, KernelModel, LinearModel

Weights = LinearModel | ConjunctionModel

_SMALL_TABLE_BYTES, _LARGE_TABLE_BYTES = 4e6, 32e6  # sizes of the dense table if only one size is tried
_MAX_BYTES_BELOW_TRIE = 64e6  # largest size of a dense table that is combined with a trie
_MANY_WEIGHTS = 1_000_000  # for models with more weights, groups of features are tried first
# If (conjunctions per row) / (support vectors) exceeds this number, support-vector engines are faster.
_MAX_CONJUNCTIONS_PER_VECTOR = 10
_TRIE_SIZES = (3_000_000, 1_000_000, 300_000, 100_000, 30_000, 10_000)
_WITH_TRIE = ("expanded", "split", "pruned")


def try_candidates(model: KernelModel | Weights, bench: Bench, trie_rows: Any) -> Iterator[Trial]:
    """Build and measure the candidates one by one: the engines, then prefix tries with the fastest engine.

    If engines are not measured, the search ends at the first engine that fits into the memory.
    """
    subject = Machine(model) if isinstance(model, KernelModel) else model
    fastest: Candidate | None = None
    for trial in _try_engines(subject, bench):
        yield trial
        if trial.tables is None:
            continue
        if fastest is None or trial.candidate.microseconds < fastest.microseconds:
            fastest = trial.candidate
        if not bench.is_timed:
            break
    if trie_rows is not None:
        yield from _try_prefix_tries(subject, fastest, trie_rows, bench)


def _try_engines(subject: Machine | Weights, bench: Bench) -> Iterable[Trial]:
    """Try the engines requested by the options."""
    if isinstance(subject, Machine):
        return _try_vector_engines(subject, bench)
    return _try_weight_engines(subject, bench)


# --- Models of support vectors -----------------------------------------------------------------------


def _try_vector_engines(machine: Machine, bench: Bench) -> Iterable[Trial]:
    """Try the engines for a model of support vectors that the options request."""
    engine = bench.options.engine
    if engine in ("auto", "expanded") and builders.is_linear_of_pairs(machine.model):
        return [bench.try_candidate(Candidate("expanded"), lambda: builders.build_pairs(machine.model))]
    if engine == "auto":
        return _measure_engines(machine, bench) if bench.is_timed else _try_engines_by_rule(machine, bench)
    if engine == "inverted":
        return [_try_inverted(machine, bench)]
    if engine == "bitsliced":
        return [_try_bitsliced(machine, bench)]
    if engine == "int16":
        return [_try_int16(machine.model, bench)]  # raises a ValueError with the reason
    return [_try_expansion(machine, bench)]


def _try_inverted(machine: Machine, bench: Bench) -> Trial:
    return bench.try_candidate(Candidate("inverted"), lambda: builders.build_inverted(machine))


def _try_bitsliced(machine: Machine, bench: Bench) -> Trial:
    return bench.try_candidate(Candidate("bitsliced"), lambda: builders.build_bitsliced(machine))


def _try_engines_by_rule(machine: Machine, bench: Bench) -> Iterator[Trial]:
    """Build engines without measuring, the most promising first; the first that fits is chosen."""
    is_hopeless = (
        machine.count_conjunctions(bench.sample) > _MAX_CONJUNCTIONS_PER_VECTOR * machine.model.n_support
    )
    if machine.expandable and not is_hopeless:
        search = LayoutSearch(bench, _make_expander(machine, bench))
        if is_large(machine):
            yield from _try_groups(machine, bench, search)
        for border in list_rare_borders(machine, bench.options.rare):
            yield from search.try_layout(border, get_largest_head(bench.memory))
    if machine.binary:
        yield _try_bitsliced(machine, bench)
    yield _try_inverted(machine, bench)


def _measure_engines(machine: Machine, bench: Bench) -> Iterator[Trial]:
    """Build and measure engines; the first measured times decide which further layouts to try."""
    yield _try_inverted(machine, bench)
    if machine.binary:
        yield _try_bitsliced(machine, bench)
    if not machine.expandable:
        return
    per_row = machine.count_conjunctions(bench.sample)
    if per_row > _MAX_CONJUNCTIONS_PER_VECTOR * machine.model.n_support:
        note = (
            f"not tried: a row has {per_row:,.0f} conjunctions, the model {machine.model.n_support:,} vectors"
        )
        yield Trial(Candidate("expanded", note=note), None)
    else:
        yield from _try_expansions(machine, bench)


def _make_expander(machine: Machine, bench: Bench) -> MakeTables:
    def make(border: int, head: Head) -> Tables:
        memory, threads = bench.memory, bench.options.threads
        return builders.build_expanded(
            machine, head=head, rare_below=border, most_bytes=memory, threads=threads
        )

    return make


def _try_expansions(machine: Machine, bench: Bench) -> Iterator[Trial]:
    """Try borders of rare features, and then fused and grouped features with the fastest borders."""
    search = LayoutSearch(bench, _make_expander(machine, bench))
    degree = machine.model.kernel.degree
    fusable = machine.sets and degree > 1
    borders = list_rare_borders(machine, bench.options.rare)
    if is_large(machine):
        yield from _try_groups(machine, bench, search)
        # Stop here: at higher degrees each layout takes seconds to build, and groups were never slower.
        if degree > 2 and search.is_late():
            borders = borders[-1:]
        yield from search.try_layouts(borders, [])
        return
    yield from search.try_layouts(borders, list_fused_counts(fusable, len(machine.used_columns)))
    if fusable and not search.is_late():
        border = search.find_fastest_borders(1)[0]
        dense = search.find_fastest_head(border).nbytes
        yield from search.try_several(border, list_grouped_heads(degree, dense, bench.memory))


def _try_groups(machine: Machine, bench: Bench, search: LayoutSearch) -> Iterator[Trial]:
    """Try groups for a large model; only a fixed number of the most frequent features are not rare."""
    ordered = np.sort(machine.frequencies)[::-1]
    for ranks in GROUPED_RANKS:
        if ranks < len(ordered) and not search.is_late():
            border = int(ordered[ranks - 1]) + 1
            yield from search.try_several(border, list_heads_beside_groups(machine, border, bench.memory))


def _try_expansion(machine: Machine, bench: Bench) -> Trial:
    """Try the expansion that the option ``engine`` names."""
    engine, options = bench.options.engine, bench.options
    _check_expansion(machine, engine)
    border = machine.find_rare_border(options.rare) if engine == "split" else 0
    has_many_weights = 8 * machine.count_occurrences() > _LARGE_TABLE_BYTES
    head = Head(min(_LARGE_TABLE_BYTES if has_many_weights else _SMALL_TABLE_BYTES, bench.memory))
    if engine == "split" and is_large(machine):
        head = list_heads_beside_groups(machine, border, bench.memory)[0]
    candidate = Candidate(engine, border, float(head.nbytes), grouped=head.grouped, exact=engine != "pruned")
    trial = bench.try_candidate(
        candidate,
        lambda: builders.build_expanded(
            machine,
            head=head,
            rare_below=border,
            threshold=options.threshold or 0.0,
            most_bytes=bench.memory,
            threads=options.threads,
        ),
    )
    return trial if candidate.exact else _note_agreement(trial, machine, bench.sample)


def _check_expansion(machine: Machine, engine: str) -> None:
    if not machine.expandable:
        raise ValueError(
            f"engine={engine!r} needs a polynomial kernel of degree 1 to {builders.LARGEST_EXPANDED_DEGREE}, "
            f"and this one is {machine.model.kernel.words()}; use engine='inverted' or 'bitsliced'"
        )
    if engine in ("split", "pruned") and not machine.sets:
        raise ValueError(
            f"engine={engine!r} needs support vectors whose values are all 1, and a kernel whose gamma and "
            "coef0 are not negative; use engine='expanded' or 'inverted'"
        )


def _note_agreement(trial: Trial, machine: Machine, sample: Any) -> Trial:
    """Return a trial with a note that compares its predictions on the sample with the exact model's."""
    if trial.tables is None:
        return trial
    if sample.shape[0] == 0:
        return Trial(replace(trial.candidate, note="there are no rows to compare on"), trial.tables)
    decision = machine.model.decision
    pruned_scores, exact_scores = (
        np.asarray(engine.score(sample, 1))
        for engine in (trial.tables.engine(), builders.build_inverted(machine).engine())
    )
    if decision.scheme == "regression":
        differences = np.abs(decision.choose(pruned_scores) - decision.choose(exact_scores))
        note = f"values of the sample are off by at most {differences.max():.3g}"
    else:
        agreement = float(np.mean(decision.choose(pruned_scores) == decision.choose(exact_scores)))
        note = f"{100 * agreement:.2f} % of {sample.shape[0]:,} sample labels are the exact model's"
    return Trial(replace(trial.candidate, note=note), trial.tables)


# --- Models of weights -------------------------------------------------------------------------------


def _try_weight_engines(model: Weights, bench: Bench) -> Iterable[Trial]:
    """Try engines for a model of weights. They differ in the layout of the weights."""
    engine = bench.options.engine
    if engine not in ("auto", "expanded", "int16"):
        raise ValueError(
            f"engine={engine!r} needs support vectors, and this model has weights; use engine='auto'"
        )
    if engine == "int16":
        return [_try_int16(model, bench)]
    if isinstance(model, LinearModel):
        return [bench.try_candidate(Candidate("expanded"), lambda: builders.build_linear(model))]
    return _try_weight_layouts(model, bench)


def _try_int16(model: KernelModel | Weights, bench: Bench) -> Trial:
    return bench.try_candidate(Candidate("int16"), lambda: build_int16(model))


def _try_weight_layouts(model: ConjunctionModel, bench: Bench) -> Iterator[Trial]:
    """Try layouts of weights. Without a sample to measure on, the first layout that fits is chosen."""

    def make(_: int, head: Head) -> Tables:
        return builders.build_conjunctions(
            model, head=head, sample=bench.sample, threads=bench.options.threads
        )

    if bench.options.engine == "auto" and find_int16_obstacle(model) is None:
        trial = _try_int16(model, bench)
        yield trial
        if bench.sample is None and trial.tables is not None:
            return
    search = LayoutSearch(bench, make)
    default = Head(min(builders.choose_default_head(model).nbytes, bench.memory))
    fusable = model.sets and model.degree > 1
    groups: list[Head] = []
    if fusable and len(model.keys) > _MANY_WEIGHTS and bench.sample is not None:
        dense = compute_dense_bytes(len(model.columns), model.degree, len(model.intercept))
        groups = list_grouped_heads(model.degree, dense, bench.memory)
    if not bench.is_timed:  # try groups first, because they are usually the fastest
        yield from search.try_several(0, [*groups, default])
        return
    yield from search.try_layout(0, default)
    if bench.sample is not None:
        yield from search.try_several(0, groups)
        yield from search.try_layouts([0], list_fused_counts(fusable, len(model.columns)))
        if fusable and not search.is_late():
            dense = search.find_fastest_head(0).nbytes
            yield from search.try_several(0, list_grouped_heads(model.degree, dense, bench.memory))


# --- Prefix tries ------------------------------------------------------------------------------------


def _try_prefix_tries(
    subject: Machine | Weights, fastest: Candidate | None, rows: Any, bench: Bench
) -> Iterator[Trial]:
    """Try prefix tries with the fastest engine or, if this cannot have a trie, with an expansion."""
    best = _choose_trie_base(subject, fastest, bench)
    size = min(max(best.head_bytes, _SMALL_TABLE_BYTES), _MAX_BYTES_BELOW_TRIE, bench.memory)
    base = replace(best, head_bytes=size, fused=0, grouped=0, nbytes=-1, microseconds=-1.0, chosen=False)
    bench.options.on_progress(f"{base.engine} by frequency")
    try:
        tables = _build_by_frequency(subject, Head(size, by_frequency=True), base, bench)
    except MemoryError:
        yield Trial(replace(base, note="does not fit into the memory it was given"), None)
        return
    if tables.arrays["columns"].max(initial=0) >= np.iinfo(np.int32).max:
        raise ValueError("a prefix trie needs columns below 2,147,483,647; leave out trie")
    if not bench.options.trie_nodes:
        yield bench.try_candidate(base, lambda: tables)
    yield from _try_trie_sizes(tables, base, rows, bench)


def _choose_trie_base(subject: Machine | Weights, fastest: Candidate | None, bench: Bench) -> Candidate:
    """Return the fastest candidate, or a candidate of the same model that can have a trie."""
    if fastest is None:
        return Candidate("expanded")
    if fastest.engine in _WITH_TRIE:
        return fastest
    if isinstance(subject, Machine):
        return Candidate("split", subject.find_rare_border(bench.options.rare))
    return Candidate("expanded")


def _build_by_frequency(subject: Machine | Weights, head: Head, base: Candidate, bench: Bench) -> Tables:
    """Return tables whose features are sorted by frequency, as prefix tries require."""
    threads = bench.options.threads
    if isinstance(subject, ConjunctionModel) and subject.sets:
        return builders.build_conjunctions(subject, head=head, threads=threads)
    if not isinstance(subject, Machine) or not subject.expandable or not subject.sets:
        raise ValueError(
            "a prefix trie needs conjunctions of binary features: a polynomial kernel of degree 2 to "
            f"{builders.LARGEST_EXPANDED_DEGREE} over support vectors whose values are all 1, or a model "
            "that was trained on binary rows; leave out trie"
        )
    return builders.build_expanded(
        subject,
        head=head,
        rare_below=base.rare,
        threshold=bench.options.threshold or 0.0,
        most_bytes=bench.memory,
        threads=threads,
    )


def _try_trie_sizes(tables: Tables, base: Candidate, rows: Any, bench: Bench) -> Iterator[Trial]:
    """Try a trie of the requested size or, without a request, a large trie and smaller versions of it."""
    engine, options = tables.engine(), bench.options
    limit = options.trie_nodes or _TRIE_SIZES[0]
    options.on_progress(f"{describe(base)}, growing a trie")
    grow(engine, rows, limit, "counted", options.threads)
    sizes = [size for size in _TRIE_SIZES if size <= engine.trie_nodes]
    if options.trie_nodes or not sizes:
        sizes = [limit]
    for size in sizes:  # descending: each trie is pruned from the previous one
        engine.prune_trie(most_nodes=size, saving="counted")
        candidate = replace(base, trie_nodes=int(engine.trie_nodes))
        arrays = remove_trie(tables.arrays) | export_trie(engine, size)
        yield bench.try_candidate(candidate, partial(replace, tables, arrays=arrays))
