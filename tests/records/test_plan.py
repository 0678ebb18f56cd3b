"""Plans: native features equal the features of the slow twin, for single records and for tables."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import records as twin
from reference.selection import few_examples
from unkernel.records import Plan, PlanStep, steps

COLUMNS = ["job", "age", "gain", "note", "tags", "more"]
WORDS = ["a", "ab", "Ab", "été", "naïve", "b c", "x_1", "日本", ""]
NUMBERS = st.one_of(st.none(), st.integers(-5, 5), st.floats(-5, 5), st.just(float("nan")))
ENTRIES = st.one_of(
    st.integers(-3, 3), st.floats(-3, 3), st.sampled_from(WORDS), st.lists(st.sampled_from(WORDS), max_size=3)
)
RECORDS = st.fixed_dictionaries(
    {"more": st.dictionaries(st.sampled_from(WORDS), ENTRIES, max_size=4)},
    optional={
        "job": st.one_of(st.none(), st.sampled_from(WORDS), st.integers(-2, 2), st.just(float("nan"))),
        "age": NUMBERS,
        "gain": NUMBERS,
        "note": st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)),
        "tags": st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=4)),
    },
)


def names(stem: str, count: int) -> list[str]:
    return [f"{stem}{k}" for k in range(count)]


def categories(draw: Any) -> tuple[dict[Any, int], int, int | None]:
    """Draw codes of categories, of unknown categories and of missing values."""
    keys = draw(st.lists(st.one_of(st.sampled_from(WORDS), st.integers(-2, 2)), unique=True, max_size=5))
    codes = {key: place for place, key in enumerate(keys)}
    if draw(st.booleans()):
        codes |= {None: len(codes), float("nan"): len(codes)}
    return codes, draw(st.integers(-1, len(codes))), draw(st.none() | st.just(-1))


@st.composite
def category_steps(draw: Any) -> list[PlanStep]:
    codes, unknown, absent = categories(draw)
    table = steps.categories(codes, unknown=unknown, absent=absent)
    result = [steps.one_hot([0], [table], names("job", len(codes) + 1))]
    tables = []
    for _ in range(2):
        codes, unknown, absent = categories(draw)
        values = np.array(draw(st.permutations(range(len(codes) + 1))), dtype=np.float64)
        tables.append(steps.categories(codes, unknown=unknown, absent=absent, values=values))
    table = {"columns": steps.int32([1, 0]), "categories": tables}
    result.append(PlanStep("ordinal", table, names("o", 2)))
    result.append(PlanStep("densify", {"input": 0}, result[0].names))
    result.append(steps.scale(2, result[0].names, subtract=np.full(len(result[0].names), 0.5)))
    result.append(steps.products(3, draw(factors(len(result[0].names), 4)), names("p", 4)))
    return result


@st.composite
def factors(draw: Any, width: int, count: int) -> list[list[int]]:
    """Draw the columns of some products, one of which may have none."""
    columns = st.lists(st.integers(0, width - 1), max_size=3).map(sorted)
    return sorted(draw(st.lists(columns, min_size=count, max_size=count)))


def draw_hash_table(draw: Any, width: int) -> dict[str, Any]:
    """Draw the part of a table that describes hashed features."""
    return steps.vocabulary([]) | {"hashed": True, "alternate_sign": draw(st.booleans()), "width": width}


@st.composite
def pair_steps(draw: Any) -> list[PlanStep]:
    words = [*WORDS, "a=ab", "ab=été", "x_1=", "日本=日本", "=a", "b c=x_1"]
    ids = draw(st.permutations(range(len(words))))
    by_vocabulary = {"columns": steps.int32([5]), "separator": "="} | steps.vocabulary(words, ids)
    width = draw(st.integers(1, 9))
    by_hash = {"columns": steps.int32([5]), "separator": draw(st.sampled_from(["=", ""]))} | draw_hash_table(
        draw, width
    )
    tags = {"columns": steps.int32([4]), "binary": draw(st.booleans()), "missing": -1} | draw_hash_table(
        draw, width
    )
    return [
        PlanStep("pairs", by_vocabulary, names("d", len(words))),
        PlanStep("pairs", by_hash, names("h", width)),
        PlanStep("strings", tags, names("g", width)),
    ]


@st.composite
def number_steps(draw: Any, first_index: int) -> list[PlanStep]:
    result = [steps.numbers([1, 2], names("n", 2)), steps.impute(first_index, [0.5, -1.0], names("n", 2))]
    scale = {
        part: draw(st.none() | st.just([1.5, 0.25])) for part in ("subtract", "divide", "multiply", "add")
    }
    clip = draw(st.sampled_from([{}, {"least": -1.0, "most": 2.0}]))
    result.append(steps.scale(first_index + 1, names("n", 2), **scale, **clip))
    result.append(steps.indicate(first_index, [1, 0], names("f", 2)))
    edges = [np.unique(draw(st.lists(st.floats(-4, 4), max_size=4))).astype(float) for _ in range(2)]
    missing = [draw(st.sampled_from([-1, 0, len(column_edges) + 1])) for column_edges in edges]
    width = sum(
        max(len(column_edges) + 1, code + 1) for column_edges, code in zip(edges, missing, strict=True)
    )
    result.append(steps.bins(first_index, edges, missing, names("b", width), columns=["age", "gain"]))
    result.append(PlanStep("binarize", {"input": first_index + 2, "threshold": 0.25}, names("z", 2)))
    result.append(steps.products(first_index + 2, draw(factors(2, 5)), names("q", 5)))
    return result


# Functions whose results are finite for all numbers of the records.
FUNCTIONS = [
    "absolute",
    "arcsinh",
    "arctan",
    "cbrt",
    "ceil",
    "cos",
    "degrees",
    "exp",
    "exp2",
    "expm1",
    "floor",
]
FUNCTIONS += ["negative", "radians", "rint", "sign", "sin", "square", "tanh", "trunc"]


@st.composite
def function_steps(draw: Any, first_index: int, source: int) -> list[PlanStep]:
    """Draw steps that read two numbers, neither of them missing."""
    result = [
        PlanStep("function", {"input": source, "function": draw(st.sampled_from(FUNCTIONS))}, names("u", 2)),
        PlanStep("finite", {"input": first_index, "allows_missing": draw(st.booleans())}, names("u", 2)),
    ]
    lambdas = np.array(draw(st.lists(st.sampled_from([-1.5, 0.0, 0.5, 2.0, 3.0]), min_size=2, max_size=2)))
    powers = {"input": source, "method": "yeo-johnson", "lambdas": lambdas, "names": ["age", "gain"]}
    result.append(PlanStep("power", powers, names("w", 2)))
    result.append(PlanStep("function", {"input": source, "function": "exp"}, names("e", 2)))
    powers = {"input": first_index + 3, "method": "box-cox", "lambdas": lambdas, "names": ["age", "gain"]}
    result.append(PlanStep("power", powers, names("c", 2)))
    ranks = np.linspace(0, 1, draw(st.sampled_from([1, 2, 5])))
    quantiles = np.sort([draw(st.integers(-5, 5)) for _ in range(2 * len(ranks))]).astype(float)
    table = {"input": source, "quantiles": quantiles, "ranks": ranks, "normal": draw(st.booleans())}
    result.append(PlanStep("quantiles", table, names("r", 2)))
    result.append(draw(spline_steps(source)))
    points = [np.array([-1.0, 0.5]), np.array([0.0, 1.0, 4.0])]
    tolerances = [np.full(len(column), draw(st.sampled_from([0.0, 1e-12, 0.2]))) for column in points]
    result.append(steps.snap(source, points, tolerances, names("m", 2)))
    return result


@st.composite
def spline_steps(draw: Any, source: int) -> PlanStep:
    degree = draw(st.integers(0, 4))
    n_knots = 3 * degree + 1 + draw(st.integers(1, 3))
    knots = [
        np.cumsum(draw(st.lists(st.sampled_from([0.25, 1.0]), min_size=n_knots, max_size=n_knots)))
        for _ in "ab"
    ]
    is_periodic = draw(st.booleans())
    count = n_knots - degree - 1 - (degree if is_periodic else 0)
    sides = [
        ("polynomials" if is_periodic else draw(st.sampled_from(["polynomials", "lines"]))) for _ in "ab"
    ]
    lines = {
        f"{side}_{part}": np.linspace(-1, 1, 2 * count) if kind == "lines" else np.empty(0)
        for side, kind in zip(("low", "high"), sides, strict=True)
        for part in ("values", "slopes")
    }
    drops_last = draw(st.booleans()) and count > 1
    table = {
        "input": source,
        "degree": degree,
        "knots": np.concatenate(knots) - 3.0,
        "periodic": is_periodic,
        "drops_last": drops_last,
        "allows_missing": draw(st.booleans()),
        "below": sides[0],
        "above": sides[1],
        "low": np.array([column[degree] - 3.0 for column in knots]),
        "high": np.array([column[-degree - 1] - 3.0 for column in knots]),
        "names": ["age", "gain"],
    }
    return PlanStep("splines", table | lines, names("l", 2 * (count - drops_last)))


@st.composite
def text_steps(draw: Any, first_index: int) -> list[PlanStep]:
    analyzer = draw(st.sampled_from(["word", "char", "char_wb"]))
    words = [*WORDS[:-1], "ab été", "a a", " a", "a ", "é", "b"]
    table = steps.text_table(
        3,
        analyzer=analyzer,
        lowercase=draw(st.booleans()),
        strip_accents=draw(st.sampled_from([None, "unicode"])),
        longest=draw(st.integers(1, 3)),
        binary=draw(st.booleans()),
        missing=len(words),
        stop_words=["ab"],
    )
    is_hashed = draw(st.booleans())
    table |= (
        draw_hash_table(draw, len(words) + 1) if is_hashed else steps.vocabulary(words, width=len(words) + 1)
    )
    counts = PlanStep("text", table, names("t", len(words) + 1))
    idf = np.linspace(0.5, 2.0, len(words) + 1) if draw(st.booleans()) else np.empty(0)
    tfidf = {"input": first_index, "sublinear": not is_hashed and draw(st.booleans()), "idf": idf}
    norm = draw(st.sampled_from(["l1", "l2", "max"]))
    return [
        counts,
        PlanStep("tfidf", tfidf, counts.names),
        PlanStep("normalize", {"input": first_index + 1, "norm": norm}, counts.names),
    ]


@st.composite
def plans(draw: Any) -> Plan:
    drawn_steps = draw(category_steps())
    drawn_steps += draw(number_steps(len(drawn_steps)))
    first_number = len(drawn_steps) - 7
    drawn_steps += draw(function_steps(len(drawn_steps), first_number + 1))
    for _ in range(draw(st.integers(1, 2))):  # two of them read one column in different ways
        drawn_steps += draw(text_steps(len(drawn_steps)))
    tags = {"columns": steps.int32([4]), "binary": draw(st.booleans()), "missing": len(WORDS)}
    tags |= steps.vocabulary(WORDS, width=len(WORDS) + 1)
    drawn_steps.append(PlanStep("strings", tags, names("s", len(WORDS) + 1)))
    drawn_steps += draw(pair_steps())
    usable = [place for place, step in enumerate(drawn_steps) if step.kind != "numbers"]
    inputs = [*draw(st.lists(st.sampled_from(usable), min_size=1, unique=True)), 0]
    joined_names = [name for place in inputs for name in drawn_steps[place].names]
    drawn_steps.append(steps.concatenate(inputs, joined_names))
    selection = sorted(draw(st.sets(st.integers(0, len(joined_names) - 1), min_size=1)))
    places = np.full(len(joined_names), -1, np.int32)
    places[draw(st.permutations(selection))] = np.arange(len(selection))
    table = {"input": len(drawn_steps) - 1, "places": places, "width": len(selection)}
    drawn_steps.append(PlanStep("select", table, [joined_names[place] for place in selection]))
    return Plan(COLUMNS, drawn_steps)


def as_dict(ids: Any, values: Any) -> dict[int, float]:
    return dict(zip(ids.tolist(), values.tolist(), strict=True))


@given(plans(), st.lists(RECORDS, min_size=1, max_size=5))
def test_rows_of_a_plan_equal_the_twin(plan: Plan, given_records: list[dict[str, Any]]) -> None:
    expected = [twin.encode(plan, record) for record in given_records]
    for record, row in zip(given_records, expected, strict=True):
        result = as_dict(*plan.encode_one(record))
        assert result == pytest.approx(row, rel=1e-12)
        assert list(result) == sorted(result)
    if any(len(record) < len(COLUMNS) for record in given_records):
        given_records = [dict.fromkeys(COLUMNS) | record for record in given_records]
    one_by_one = [as_dict(*plan.encode_one(record)) for record in given_records]
    for threads in (1, 2):
        rows = plan.encode(given_records, threads).to_scipy()
        assert [as_dict(row.indices, row.data) for row in rows] == one_by_one
    by_position = [as_dict(*plan.encode_one([record[name] for name in COLUMNS])) for record in given_records]
    assert by_position == one_by_one


@few_examples(6)
@given(plans(), RECORDS)
def test_a_plan_survives_pickle_and_files(plan: Plan, record: dict[str, Any]) -> None:
    row = as_dict(*plan.encode_one(record))
    arrays, plan_settings = plan.to_container("plan.")
    for copy in (pickle.loads(pickle.dumps(plan)), Plan.from_container("file", arrays, plan_settings)):
        assert as_dict(*copy.encode_one(record)) == row
        assert copy.feature_names == plan.feature_names


def test_many_rows_and_threads_give_the_same_rows() -> None:
    table = steps.categories({"a": 0, "b": 1}, unknown=2)
    plan = Plan(["job"], [steps.one_hot([0], [table], ["a", "b", "other"])])
    jobs = [("a", "b", "c")[k % 3] for k in range(20_000)]
    single_threaded, multi_threaded = (
        plan.encode({"job": jobs}, 1).to_scipy(),
        plan.encode({"job": jobs}, 2).to_scipy(),
    )
    assert (single_threaded != multi_threaded).nnz == 0
    assert single_threaded.indices.tolist() == [k % 3 for k in range(20_000)]


def test_an_error_in_a_batch_names_row_and_column() -> None:
    plan = Plan(["age"], [steps.numbers([0], ["age"])])
    with pytest.raises(ValueError, match=r"row 5000: column 'age': expected a number, got the string 'x'"):
        plan.encode({"age": [1.0] * 5000 + ["x"]}, 2)


def test_long_strings_in_messages_are_cut_between_characters() -> None:
    plan = Plan(["age"], [steps.numbers([0], ["age"])])
    with pytest.raises(ValueError, match=r"column 'age': expected a number, got the string 'x日+\.\.\.'"):
        plan.encode_one({"age": "x" + "日" * 100})


def test_missing_and_unknown_columns_are_refused() -> None:
    strict = Plan(["age"], [steps.numbers([0], ["age"])], required=True, ignores_unknown_keys=False)
    with pytest.raises(ValueError, match="no column 'age'"):
        strict.encode_one({})
    with pytest.raises(ValueError, match="a column 'more' that the model does not know"):
        strict.encode_one({"age": 1, "more": 2})
    with pytest.raises(ValueError, match="record 1 has no column 'age'"):
        strict.encode([{"age": 1}, {}])
    with pytest.raises(ValueError, match="columns are missing: age"):
        strict.encode({"more": [1]})
    with pytest.raises(ValueError, match="2 values, and the model 1 columns"):
        strict.encode_one([1, 2])
    with pytest.raises(TypeError, match="not a value of type int"):
        strict.encode_one(3)


@pytest.mark.parametrize(
    "step",
    [
        PlanStep("no such", {}, ["a"]),
        PlanStep("numbers", {"columns": steps.int32([1])}, ["a"]),
        PlanStep("numbers", {"columns": steps.int32([-1])}, ["a"]),
        PlanStep("numbers", {"columns": steps.int32([0])}, ["a", "b"]),
        PlanStep("concatenate", {"inputs": steps.int32([0])}, ["a"]),
        PlanStep("select", {"input": 0, "places": steps.int32([0]), "width": 2**31 - 1}, ["a"]),
    ],
)
def test_invalid_plans_are_refused(step: PlanStep) -> None:
    with pytest.raises(ValueError, match="not a sound plan"):
        _ = Plan(["x"], [step]).native


@pytest.mark.parametrize("first_codes", [(0, 0), (1, 0)])
def test_one_hot_columns_that_share_a_feature_are_refused(first_codes: tuple[int, int]) -> None:
    """Such rows would have repeated columns, or columns that do not ascend."""
    tables = [steps.categories({"a": code}, unknown=-1) for code in first_codes]
    step = steps.one_hot([0, 1], tables, ["p", "q"])
    with pytest.raises(ValueError, match="not a sound plan: two columns have the same feature"):
        _ = Plan(["x", "y"], [step]).native
