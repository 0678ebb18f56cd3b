"""Rankings: the gain by depth, and the queries with the lowest quality."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unkernel.measures.intervals import Numbers, compute_central_interval, draw_resamples
from unkernel.measures.number_format import format_count, format_percent
from unkernel.measures.rank_measures import LARGEST_DEPTH, RankMeasures
from unkernel.report.figures import COLOURS, add_legend, make_line_label, open_axes, render_svg
from unkernel.report.markup import Html, figure, join_parts, paragraph, side_by_side, table
from unkernel.report.page import Section

_DEPTH = 10  # k of NDCG@k for single queries
_MAX_WORST_QUERIES = 10


def make_ranking_section(measured_models: Sequence[RankMeasures], records: bool) -> Section:
    """Show NDCG by depth and by query, if labels are grades; name queries only if `records` is true."""
    graded_models = [model for model in measured_models if model.has_grades]
    if not graded_models:
        reason = "Labels are not grades (small whole numbers from 0 on), so there is no NDCG."
        return Section("Ranking", paragraph(reason))
    parts = [_draw_by_depth(graded_models)]
    if len(graded_models[0].queries) > 1:
        parts.append(_draw_by_query(graded_models))
    worst = []
    if records and len(graded_models[0].queries) > 1:
        worst = [_list_worst(model) for model in graded_models]
    return Section(
        "Ranking", join_parts([side_by_side(parts), _describe_omitted_queries(graded_models[0]), *worst])
    )


def _draw_by_depth(measured_models: Sequence[RankMeasures]) -> Html:
    depths = list(range(1, LARGEST_DEPTH + 1))
    with open_axes() as axes:
        for model, colour in zip(measured_models, COLOURS, strict=False):
            ndcg = np.array([model.ndcg[depth] for depth in depths])
            means = np.nanmean(ndcg, axis=1)
            low, high = _compute_band(ndcg)
            axes.fill_between(depths, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(
                depths,
                means,
                marker="o",
                markersize=3,
                color=colour,
                label=make_line_label(model.predictions.name),
            )
        axes.set(xlabel="k", ylabel="NDCG@k, mean over queries", xticks=[1, 5, 10, 15, 20])
        if len(measured_models) > 1:
            add_legend(axes, loc="best")
        ends = "; ".join(
            f"{model.predictions.name} {format_percent(float(np.nanmean(model.ndcg[_DEPTH])))}"
            for model in measured_models
        )
        return figure(
            render_svg(axes, f"NDCG@k by k. At {_DEPTH}: {ends}"),
            "NDCG@k by k, with the 95 % interval of a bootstrap over queries.",
        )


def _compute_band(values: Numbers) -> tuple[list[float], list[float]]:
    """Return the ends of the confidence interval of each row's mean in an array (depths, queries)."""
    is_defined = ~np.isnan(values[0])
    ndcg = values[:, is_defined]
    if ndcg.shape[1] < 2:
        return [float("nan")] * len(values), [float("nan")] * len(values)
    means = np.array([ndcg @ counts / ndcg.shape[1] for counts in draw_resamples(ndcg.shape[1])])
    ends = [compute_central_interval(column) for column in means.T]
    return [low for low, _ in ends], [high for _, high in ends]


def _draw_by_query(measured_models: Sequence[RankMeasures]) -> Html:
    with open_axes() as axes:
        for model, colour in zip(measured_models, COLOURS, strict=False):
            values = model.ndcg[_DEPTH]
            defined = values[~np.isnan(values)]
            axes.hist(
                defined,
                bins=np.linspace(0, 1, 21),
                color=colour,
                alpha=0.55,
                label=make_line_label(model.predictions.name),
            )
        axes.set(xlabel=f"NDCG@{_DEPTH}", ylabel="queries")
        if len(measured_models) > 1:
            add_legend(axes, loc="best")
        description = f"Number of queries by NDCG@{_DEPTH}."
        return figure(render_svg(axes, description), description)


def _describe_omitted_queries(model: RankMeasures) -> Html:
    n_omitted = int(np.isnan(model.ndcg[1]).sum())
    count = format_count(len(model.queries), "query", "queries")
    omission = f"Of {count}, {n_omitted:,} without a relevant row are left out."
    return paragraph(
        f"The gain of a row is 2^label - 1, discounted by log2(1 + place). {omission}", note=True
    )


def _list_worst(model: RankMeasures) -> Html:
    """Return a table of the queries with the lowest NDCG."""
    values = model.ndcg[_DEPTH]
    order = np.argsort(np.where(np.isnan(values), np.inf, values), kind="stable")[:_MAX_WORST_QUERIES]
    rows = []
    for query in order.tolist():
        if np.isnan(values[query]):
            continue
        rows_of_query = np.flatnonzero(model.groups == query)
        top_rows = rows_of_query[np.argsort(-model.scores[rows_of_query], kind="stable")][:_DEPTH]
        labels = ", ".join(f"{label:g}" for label in model.labels[top_rows])
        rows.append(
            [model.queries[query], f"{len(rows_of_query):,}", format_percent(float(values[query])), labels]
        )
    return table(
        ["query", "rows", f"NDCG@{_DEPTH}", f"labels of the first {_DEPTH}, as the model orders them"],
        rows,
        caption=f"{model.predictions.name}: the worst queries",
        texts=[3],
    )
