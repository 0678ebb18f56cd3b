"""Oracles compared with sums over all pairs or labelings, and cuts compared with their definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from reference import cutting_planes as reference
from reference.selection import few_examples, parametrize_pairs, slow_after
from unkernel import _core

KINDS = ["hinge", "squared_hinge", "ordinal", "f1", "precision", "break_even"]


@dataclass
class Case:
    """An oracle, the risk by the slow twin, and a check that a cut is one of the cuts of the twin."""

    oracle: Any
    rows: int
    risk: Callable
    check_cut: Callable


def margin_case(signed_costs, *, squared):
    def check_cut(offset, c, scores):
        expected_offset, expected = reference.margin_cut(signed_costs, scores, squared=squared)
        np.testing.assert_allclose(c, expected, rtol=1e-12)
        assert offset == pytest.approx(expected_offset, rel=1e-12)

    return Case(
        _core.margin_oracle(signed_costs, squared=squared),
        len(signed_costs),
        lambda s: reference.margin_risk(signed_costs, s, squared=squared),
        check_cut,
    )


def core_arguments(ranks, groups=(), weights=(), pair_weights=()):
    """Return the arguments of the core for a ranking."""
    ranks = np.asarray(ranks, dtype=np.int32)
    count = max(int(ranks.max(initial=-1)) + 1, len(pair_weights))
    return {
        "ranks": ranks,
        "rank_count": count,
        "groups": np.asarray(groups, dtype=np.int32),
        "weights": np.asarray(weights, dtype=float),
        "pair_weights": np.asarray(pair_weights, dtype=float).ravel(),
        "gains": np.zeros(0),
        "discounts": np.zeros(0),
    }


def ranking(ranks, groups=(), weights=(), pair_weights=()):
    """Return the arguments of the core, and the list of pairs."""
    pairs = list(reference.ordered_pairs(np.asarray(ranks), groups, weights, pair_weights))
    return core_arguments(ranks, groups, weights, pair_weights), pairs


def ordinal_case(*args):
    core, pairs = ranking(*args)
    total = core["weights"].sum() if len(core["weights"]) else float(len(core["ranks"]))

    def check_cut(offset, c, scores):
        expected_offset, expected = reference.ordinal_cut(pairs, total, scores)
        np.testing.assert_allclose(c, expected, rtol=1e-9, atol=1e-12 * total)
        assert offset == pytest.approx(expected_offset, rel=1e-12, abs=1e-12 * total)

    return Case(
        _core.ordinal_oracle(**core, accuracy=0.0),
        len(core["ranks"]),
        lambda s: reference.ordinal_risk(pairs, total, s),
        check_cut,
    )


def measure_case(positive, k):
    positive = np.asarray(positive, dtype=bool)
    cuts = reference.measure_cuts(positive, k=k)

    def check_cut(offset, c, scores):
        """Check a cut. If several labelings have the largest loss, the cut of any of them is correct."""
        assert any(
            np.allclose(c, other, atol=1e-15) and offset == pytest.approx(o, abs=1e-12) for o, other in cuts
        )
        size = abs(offset) + np.abs(scores).sum()  # labelings are compared by sums over all rows
        assert offset - c @ scores >= reference.largest_cut(cuts, scores) - 1e-13 * size

    return Case(
        _core.f1_oracle(positive) if k is None else _core.precision_oracle(positive, k),
        len(positive),
        lambda s: reference.largest_cut(cuts, s),
        check_cut,
    )


@st.composite
def cases(draw, kind):
    if kind in ("hinge", "squared_hinge"):
        costs = st.lists(st.sampled_from([-2.5, -1.0, -0.1, 0.0, 0.3, 1.0, 7.0]), min_size=1, max_size=12)
        return margin_case(np.array(draw(costs)), squared=kind == "squared_hinge")
    if kind == "ordinal":
        return draw(ordinal_cases())
    positive = draw(st.lists(st.booleans(), min_size=1, max_size=7).filter(any))
    if kind == "precision":
        return measure_case(positive, draw(st.integers(1, len(positive))))
    return measure_case(positive, None if kind == "f1" else sum(positive))


@st.composite
def rankings(draw):
    rows, count = draw(st.integers(2, 14)), draw(st.integers(2, 6))

    def draw_list(values):
        return draw(st.one_of(st.just([]), st.lists(values, min_size=rows, max_size=rows)))

    ranks = draw(st.lists(st.integers(0, count - 1), min_size=rows, max_size=rows))
    weight = st.sampled_from([0.0, 0.25, 1.0, 1.0 / 3.0, 12.0])
    table = st.lists(st.lists(weight, min_size=count, max_size=count), min_size=count, max_size=count)
    return (
        ranks,
        draw_list(st.integers(-2, 2)),
        draw_list(weight),
        draw(st.one_of(st.just([]), table)),
    )


@st.composite
def ordinal_cases(draw):
    drawn_ranking = draw(rankings())
    assume(sum(v for _, _, v in reference.ordered_pairs(*drawn_ranking)) > 0)
    return ordinal_case(*drawn_ranking)


# Quarters tie with each other and with the margin exactly, and on a line of steps in eighths, too.
QUARTERS = st.integers(-12, 12).map(lambda k: k / 4)
STEPS = st.sampled_from([-2.0, -0.125, 0.0, 0.125, 0.5, 0.75, 1.0, 1.5, 8.0])
EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e-310, 1.0, -1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0)]
LARGE = [1e16, -1e16, 1e150, -1e150]
HUGE = [1e300, -1e300]


def draw_scores(case, values):
    return st.lists(values, min_size=case.rows, max_size=case.rows).map(np.array)


def at(start, target, step):
    return start + step * (target - start)


@pytest.mark.parametrize("kind", KINDS)
@few_examples(10, print_blob=True)
@given(st.data())
def test_cuts_equal_cuts_of_the_twin(kind, data):
    case = data.draw(cases(kind))
    start, target = (data.draw(draw_scores(case, QUARTERS)) for _ in range(2))
    step = data.draw(STEPS)
    offset, c = case.oracle.cut(start, target, step, 1)
    scores = at(start, target, step)
    case.check_cut(offset, c, scores)
    assert offset - c @ scores == pytest.approx(case.risk(scores), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@few_examples(10, print_blob=True)
@given(st.data())
def test_cuts_at_extreme_scores_equal_cuts_of_the_twin(kind, data):
    """Huge and tiny scores, and scores next to the margin: risks lose digits by cancellation, cuts do not."""
    values = EXTREMES + LARGE + (HUGE if kind != "squared_hinge" else [])
    case = data.draw(cases(kind))
    scores = data.draw(draw_scores(case, st.sampled_from(values) | st.floats(-3, 3)))
    offset, c = case.oracle.cut(scores, scores, 0.0, 1)
    case.check_cut(offset, c, scores)


@pytest.mark.parametrize("kind", KINDS)
@few_examples(10, print_blob=True)
@given(st.data())
def test_cuts_hold_everywhere(kind, data):
    case = data.draw(cases(kind))
    values = st.floats(-4, 4) | QUARTERS | st.sampled_from(EXTREMES + LARGE[:2])
    scores, other_scores = (data.draw(draw_scores(case, values)) for _ in range(2))
    offset, c = case.oracle.cut(scores, scores, 0.0, 1)
    for elsewhere in (
        other_scores,
        -other_scores,
        100 * other_scores,
        scores + other_scores,
        scores - 1e-9 * other_scores,
        np.zeros(case.rows),
    ):
        size = abs(offset) + np.abs(c) @ np.abs(elsewhere)
        assert case.risk(elsewhere) >= offset - c @ elsewhere - 1e-11 * size
    # Compared with a score of 1e16, a margin of 1 is a rounding error.
    size = abs(offset) + np.abs(c) @ np.abs(scores) + np.abs(scores).max()
    assert abs(case.risk(scores) - (offset - c @ scores)) <= 1e-11 * size


@pytest.mark.parametrize("kind", KINDS)
@few_examples(10, print_blob=True)
@given(st.data())
def test_values_and_slopes_along_a_line(kind, data):
    case = data.draw(cases(kind))
    values = QUARTERS | st.floats(-20, 20)
    start, target = (data.draw(draw_scores(case, values)) for _ in range(2))
    step = data.draw(STEPS | st.floats(-1, 2))
    value, slope = case.oracle.along(start, target, step, 1)
    size = 1.0 + case.risk(start) + case.risk(target) + case.risk(at(start, target, step))
    assert value == pytest.approx(case.risk(at(start, target, step)), abs=1e-11 * size)
    # The function is convex, so the line with this slope is nowhere above the function.
    for other_step in (-3.0, 0.0, 0.2, step - 0.01, step + 0.01, 1.0, 2.0, 10.0):
        below = value + slope * (other_step - step)
        assert case.risk(at(start, target, other_step)) >= below - 1e-10 * (size + abs(slope) * 10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", slow_after(2, [-0.7, 0.31, 0.0, 1.0, 1.9]))
def test_slopes_equal_finite_differences(kind, step):
    """Random scores have no kink within 1e-6 of the step."""
    rng = np.random.default_rng(5)
    for case in (example(kind, rng, rows=8) for _ in range(20)):
        start, target = rng.normal(size=(2, case.rows))
        h = 1e-6
        difference = (case.risk(at(start, target, step + h)) - case.risk(at(start, target, step - h))) / (
            2 * h
        )
        assert case.oracle.along(start, target, step, 1)[1] == pytest.approx(difference, rel=1e-6, abs=1e-6)


def example(kind, rng, rows):
    if kind in ("hinge", "squared_hinge"):
        return margin_case(rng.normal(size=rows), squared=kind == "squared_hinge")
    if kind == "ordinal":
        ranks = np.append(rng.integers(0, 4, rows - 2), [0, 1])
        groups = np.append(rng.integers(0, 2, rows - 2), [0, 0])
        return ordinal_case(ranks, groups, rng.random(rows), rng.random((4, 4)))
    positive = np.append(rng.random(rows - 1) < 0.5, True)
    return measure_case(positive, {"f1": None, "precision": 3, "break_even": int(positive.sum())}[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_values_along_a_line_do_not_depend_on_earlier_calls(kind):
    """The margin oracle caches its order of rows; a new line must not use the old order."""
    rng = np.random.default_rng(6)
    case = example(kind, rng, rows=8)
    for _ in range(20):
        start, target = 3 * rng.normal(size=(2, case.rows))
        for step in (0.5, 3.0, 0.0, 1.0):
            expected = case.risk(at(start, target, step))
            assert case.oracle.along(start, target, step, 1)[0] == pytest.approx(
                expected, rel=1e-12, abs=1e-12
            )
            case.check_cut(*case.oracle.cut(start, target, step, 1), at(start, target, step))


def test_a_margin_of_exactly_one_has_no_loss_and_is_not_in_the_cut():
    oracle = _core.margin_oracle(np.array([1.0, -1.0, 2.0]), squared=False)
    scores = np.array([1.0, -1.0, np.nextafter(1.0, 0.0)])
    offset, c = oracle.cut(scores, scores, 0.0, 1)
    assert offset == 2.0
    assert c.tolist() == [0.0, 0.0, 2.0]


def test_a_pair_apart_by_exactly_one_is_in_order():
    core, _ = ranking([0, 1, 2])
    offset, c = _core.ordinal_oracle(**core, accuracy=0.0).cut(np.array([0.0, 1.0, 2.0]), np.zeros(3), 0.0, 1)
    assert offset == 0.0
    assert not c.any()
    offset, c = _core.ordinal_oracle(**core, accuracy=0.0).cut(
        np.array([0.0, 1.0, 1.75]), np.zeros(3), 0.0, 1
    )
    assert offset == 1.0
    assert c.tolist() == [0.0, -1.0, 1.0]


@pytest.mark.parametrize("squared", [False, True])
def test_one_row(squared):
    oracle = _core.margin_oracle(np.array([-2.0]), squared=squared)
    assert oracle.along(np.zeros(1), np.array([-0.5]), 1.0, 1)[0] == (0.5 if squared else 1.0)
    assert _core.f1_oracle(np.array([True])).along(np.zeros(1), np.zeros(1), 0.0, 1)[0] == 1.0


@pytest.mark.parametrize(
    "drawn_ranking",
    [
        ([0],),
        ([3, 3, 3],),
        ([0, 1], [0, 1]),
        ([0, 1], [], [1.0, 0.0]),
        ([0, 1], [], [], [[1.0, 1.0], [0.0, 1.0]]),
        ([],),
    ],
)
def test_rankings_without_pairs_are_refused(drawn_ranking):
    with pytest.raises(ValueError, match="no pair to order"):
        _core.ordinal_oracle(**ranking(*drawn_ranking)[0], accuracy=0.0)


@pytest.mark.parametrize(
    "change",
    [
        {"ranks": [0, 2]},
        {"ranks": [0, -1]},
        {"groups": [1]},
        {"weights": [1.0]},
        {"gains": [1.0, 2.0]},
        {"gains": [1.0, 2.0], "discounts": [0.5, 1.0], "pair_weights": [1.0] * 4},
    ],
)
def test_rankings_with_wrong_lengths_are_refused(change):
    core, _ = ranking([0, 1])
    for name, values in change.items():
        core[name] = np.asarray(values, dtype=core[name].dtype)
    with pytest.raises(ValueError, match=r"per row|outside of its range"):
        _core.ordinal_oracle(**core, accuracy=0.0)
    with pytest.raises(ValueError, match=r"per row|outside of its range"):
        _core.count_pairs(**core, scores=np.zeros(2))


@pytest.mark.parametrize("k", [-1, 0, 4])
def test_precision_at_more_rows_than_exist_is_refused(k):
    with pytest.raises(ValueError, match="between 1 and the number of rows"):
        _core.precision_oracle(np.array([True, False, True]), k)


def test_scores_of_the_wrong_length_are_refused():
    oracle = _core.margin_oracle(np.ones(3), squared=False)
    for start, target in ((np.zeros(3), np.zeros(2)), (np.zeros(4), np.zeros(3))):
        with pytest.raises(ValueError, match="wrong length"):
            oracle.along(start, target, 0.5, 1)
        with pytest.raises(ValueError, match="wrong length"):
            oracle.cut(start, target, 0.5, 1)


def large_oracle(kind, rng, rows):
    """Return an oracle with enough rows for several threads, and for sorting scores by digits."""
    if kind in ("hinge", "squared_hinge"):
        return _core.margin_oracle(rng.normal(size=rows), squared=kind == "squared_hinge")
    if kind == "ordinal":
        return _core.ordinal_oracle(**ordinal_arguments(rng, rows), accuracy=0.0)
    positive = rng.random(rows) < 0.1
    return (
        _core.f1_oracle(positive) if kind == "f1" else _core.precision_oracle(positive, int(positive.sum()))
    )


def ordinal_arguments(rng, rows):
    return {
        "ranks": rng.integers(0, 50, rows).astype(np.int32),
        "rank_count": 50,
        "groups": (rng.integers(0, 30, rows) ** 2).astype(np.int32),
        "weights": rng.random(rows),
        "pair_weights": np.zeros(0),
        "gains": np.zeros(0),
        "discounts": np.zeros(0),
    }


@pytest.mark.parametrize("kind", KINDS[:5])
def test_threads_do_not_change_a_bit(kind):
    rng = np.random.default_rng(8)
    oracle = large_oracle(kind, rng, 50_000)
    start, target = 2 * rng.normal(size=(2, 50_000))
    for step in (0.0, 0.4, 1.7):
        expected = oracle.along(start, target, step, 1)
        offset, c = oracle.cut(start, target, step, 1)
        for threads in (2, 3, 7):
            assert oracle.along(start, target, step, threads) == expected
            offset_together, c_together = oracle.cut(start, target, step, threads)
            assert offset_together == offset
            assert np.array_equal(c_together, c)


def test_margins_of_many_rows_equal_the_twin():
    """There are more rows than one partial sum holds."""
    rng = np.random.default_rng(9)
    case = margin_case(rng.normal(size=40_000), squared=True)
    start, target = 2 * rng.normal(size=(2, 40_000))
    for step in (0.0, 0.3, 1.0, 2.0):
        case.check_cut(*case.oracle.cut(start, target, step, 2), at(start, target, step))
        assert case.oracle.along(start, target, step, 2)[0] == pytest.approx(
            case.risk(at(start, target, step)), rel=1e-12
        )


@pytest.mark.parametrize("ties", [False, True])
def test_many_rows_of_two_ranks(ties):
    """The core sorts these scores by digits; numpy compares all pairs."""
    rng = np.random.default_rng(10)
    ranks, scores = (rng.random(1500) < 0.3).astype(np.int32), rng.normal(size=1500)
    scores = scores.round(1) if ties else scores
    core, _ = ranking(np.zeros(2))
    oracle = _core.ordinal_oracle(**{**core, "ranks": ranks, "rank_count": 2}, accuracy=0.0)
    offset, c = oracle.cut(scores, scores, 0.0, 1)
    high, low = scores[ranks == 1], scores[ranks == 0]
    violated = ~(low[None, :] <= high[:, None] - 1.0)
    scale = len(ranks) / violated.size
    assert offset == pytest.approx(scale * violated.sum(), rel=1e-12)
    np.testing.assert_allclose(c[ranks == 1], scale * violated.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(c[ranks == 0], -scale * violated.sum(axis=0), rtol=1e-12)
    pairs, ordered = _core.count_pairs(**{**core, "ranks": ranks, "rank_count": 2}, scores=scores)
    assert pairs == violated.size
    assert ordered / pairs == pytest.approx(roc_auc_score(ranks, scores), rel=1e-12)


@pytest.mark.parametrize("ranks", [2, 5, 400])
@pytest.mark.parametrize("spread", [0.3, 3.0, 1e6])
def test_cuts_from_bins_are_within_the_allowed_distance(ranks, spread):
    """Cuts are below the risk, values above it, and both within the allowed distance."""
    rng = np.random.default_rng(12)
    rows, accuracy = 6000, 1e-2
    core, _ = ranking(np.zeros(2))
    core |= {
        "ranks": rng.integers(0, ranks, rows).astype(np.int32),
        "rank_count": ranks,
        "weights": rng.random(rows),
    }
    exact, binned = (_core.ordinal_oracle(**core, accuracy=allowed) for allowed in (0.0, accuracy))
    start, target = spread * rng.normal(size=(2, rows)) + 0.5 * core["ranks"]
    for step in (0.0, 0.3, 1.0):
        risk = exact.along(start, target, step, 1)[0]
        value, slope = binned.along(start, target, step, 1)
        assert risk * (1 - 1e-12) <= value <= risk * (1 + 2 * accuracy)
        assert binned.along(start, target, step, 3) == (value, slope)
        offset, c = binned.cut(start, target, step, 1)
        assert -slope == pytest.approx(c @ (target - start), rel=1e-9)
        assert offset - c @ at(start, target, step) >= risk * (1 - 2 * accuracy)
        for elsewhere in (start, target, at(start, target, step), -start, np.zeros(rows), 0.01 * target):
            size = abs(offset) + np.abs(c) @ np.abs(elsewhere)
            assert exact.along(elsewhere, elsewhere, 0.0, 1)[0] >= offset - c @ elsewhere - 1e-12 * size


@few_examples(10, print_blob=True)
@given(st.data())
def test_counted_pairs_equal_pairs_of_the_twin(data):
    drawn_ranking = data.draw(rankings())
    core, pairs = ranking(*drawn_ranking)
    values = QUARTERS | st.sampled_from(EXTREMES + LARGE + HUGE)
    scores = np.array(
        data.draw(st.lists(values, min_size=len(drawn_ranking[0]), max_size=len(drawn_ranking[0])))
    )
    assert _core.count_pairs(**core, scores=scores) == pytest.approx(
        reference.count_pairs(pairs, scores), rel=1e-12
    )


@few_examples(10, print_blob=True)
@given(
    st.lists(st.tuples(st.booleans(), QUARTERS, st.sampled_from([0.5, 1.0, 3.0])), min_size=2, max_size=40)
)
def test_pairs_of_two_ranks_are_the_area_under_the_curve(rows):
    labels, scores, weights = (np.array(column) for column in zip(*rows, strict=True))
    assume(labels.any() and not labels.all())
    core, _ = ranking(labels.astype(int), (), weights)
    pairs, ordered = _core.count_pairs(**core, scores=scores)
    assert ordered / pairs == pytest.approx(roc_auc_score(labels, scores, sample_weight=weights), rel=1e-12)


def test_weights_stand_for_repeated_rows():
    rng = np.random.default_rng(11)
    ranks, weights = rng.integers(0, 3, 12), rng.integers(0, 4, 12)
    scores = rng.normal(size=12)
    repetitions = np.repeat(np.arange(12), weights)
    weighted, repeated = ordinal_case(ranks, (), weights.astype(float)), ordinal_case(ranks[repetitions])
    expected = repeated.oracle.along(scores[repetitions], scores[repetitions], 0.0, 1)[0]
    assert weighted.oracle.along(scores, scores, 0.0, 1)[0] == pytest.approx(expected)


@parametrize_pairs(count=[2, 13, 600, 5000], width=[1.0, 3.0, 65.0, 300.0, 1e6], accuracy=[1e-2, 1e-5, 1e-9])
def test_cuts_from_bins_agree_with_sorting_and_fall_back_to_it(width, accuracy, count):
    """Bins that are too coarse are refined; if too many would be needed, scores are sorted."""
    rng = np.random.default_rng(count)
    rows = 5000
    ranks = rng.permutation(np.arange(rows) * count // rows)
    scores = width * (rng.standard_normal(rows) + ranks / count)
    core = core_arguments(ranks)
    exact = _core.ordinal_oracle(**core, accuracy=0.0)
    binned = _core.ordinal_oracle(**core, accuracy=accuracy)
    risk, _ = exact.along(scores, scores, 0.0, 1)
    upper, _ = binned.along(scores, scores, 0.0, 1)
    offset, c = binned.cut(scores, scores, 0.0, 1)
    assert risk * (1 - 1e-9) <= upper <= risk * (1 + accuracy + 1e-9)
    assert offset - c @ scores == pytest.approx(risk, rel=accuracy + 1e-9)
    for other_scores in (0.5 * scores, scores[::-1].copy(), np.zeros(rows)):
        assert exact.along(other_scores, other_scores, 0.0, 1)[0] >= offset - c @ other_scores - 1e-9 * risk
