"""Functions, power and quantile transforms, and splines: rows, refusals, bits and damaged files."""

from __future__ import annotations

import itertools
import pickle
import warnings
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy import sparse
from scipy.special import ndtri
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

import unkernel
from reference.function_pipelines import function_pipelines
from reference.function_plans import X, Y, make_model, make_plan
from reference.pipelines import Case
from reference.selection import few_examples
from unkernel.records import Plan, PlanStep, steps
from unkernel.records.record_generator import generate_records
from unkernel.records.sklearn import make_plan_of_steps
from unkernel.records.steps import KEEPS_ZERO

RNG = np.random.default_rng(4)


def encode(plan: Plan, data: Any) -> Any:
    return plan.encode(data).to_scipy().toarray()


def make_function_plan(*functions: str) -> Plan:
    """Return a plan that applies each function to one number."""
    plan_steps = [steps.numbers([0], ["x"])]
    plan_steps += [PlanStep("function", {"input": 0, "function": name}, [name]) for name in functions]
    inputs = range(1, len(plan_steps))
    return Plan(["x"], [*plan_steps, steps.concatenate(inputs, list(functions))])


# --- Equal to scikit-learn ------------------------------------------------------------------------------


def check_rows(case: Case) -> None:
    """Check that a plan encodes records as the pipeline's transformers do, alone and in batches."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case.pipeline.fit(case.X, case.y)
        except (ValueError, TypeError, IndexError):  # missing numbers or sparse matrices where none are taken
            assume(False)
        plan = _translate(case.pipeline)
        for data in (case.X, case.X_test):
            try:
                expected = case.pipeline[:-1].transform(data)
            except ValueError:
                with pytest.raises(ValueError):
                    plan.encode(data)
                continue
            expected = expected.toarray() if sparse.issparse(expected) else np.asarray(expected, dtype=float)
            if not np.isfinite(expected).all():
                with pytest.raises(ValueError, match=r"is infinite|is missing"):
                    plan.encode(data)
                continue
            actual = encode(plan, data)
            np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)
            records = data.to_dict("records") if hasattr(data, "columns") else data.tolist()
            for record, row in zip(records, actual, strict=True):
                ids, values = plan.encode_one(record)
                np.testing.assert_array_equal(values, row[ids])
                assert np.count_nonzero(row) == len(ids)


def _translate(pipeline: Any) -> Plan:
    try:
        return make_plan_of_steps(pipeline.steps[:-1])
    except ValueError as error:
        refusals = ("gets a sparse matrix", "has lines that cross", "divides whole numbers", "do not ascend")
        assert any(reason in str(error) for reason in refusals), error
        assume(False)
        raise


@few_examples(20, derandomize=True)
@given(function_pipelines())
def test_rows_equal_those_of_scikit_learn(case):
    check_rows(case)


@pytest.mark.slow
def test_many_rows_equal_those_of_scikit_learn():
    settings(max_examples=600, derandomize=True, deadline=None)(given(function_pipelines())(check_rows))()


@pytest.mark.parametrize("name", KEEPS_ZERO)
def test_functions_equal_those_of_numpy(name):
    """NumPy's own functions are within 4 units in the last place."""
    plan = make_function_plan(name)
    values = np.concatenate([RNG.normal(size=300) * scale for scale in (1e-300, 1e-9, 0.1, 1.0, 20.0, 600.0)])
    if name in ("cbrt", "arctan", "tanh", "arcsinh", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos"):
        values = np.concatenate([values, RNG.normal(size=300) * 1e15, RNG.normal(size=300) * 1e300])
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(values)
    usual = np.isfinite(expected)
    assert usual.sum() > 400
    np.testing.assert_allclose(encode(plan, values[usual, None])[:, 0], expected[usual], rtol=1e-15, atol=0)
    unusual = values[~usual][:5].tolist()
    for value in [*unusual, float("nan")]:
        with pytest.raises(ValueError, match=r"is infinite|NaN"):
            plan.encode_one([value])


def test_normal_quantiles_equal_those_of_scipy():
    table = {"input": 0, "quantiles": np.array([0.0, 1.0]), "ranks": np.array([0.0, 1.0]), "normal": True}
    plan = Plan(["x"], [steps.numbers([0], ["x"]), PlanStep("quantiles", table, ["x"])])
    ends = 2.0 ** -RNG.uniform(1, 23, 400)
    shares = np.concatenate([RNG.random(400), ends, 1 - ends, [1.001e-7, 0.5, np.nextafter(0.5, 1)]])
    ranks = 0.5 * (shares - ((1 - shares) - 1))  # the mean of two interpolations, with their rounding errors
    np.testing.assert_allclose(encode(plan, shares[:, None])[:, 0], ndtri(ranks), rtol=2e-15, atol=0)


def test_results_have_the_same_bits_on_every_machine():
    """These are checksums of 2,000 results of each function."""
    negative = ("exp", "exp2", "expm1", "cbrt", "tanh", "arcsinh", "arctan", "sin", "cos")
    numbers = np.arange(1, 2001) * 0.0137 * np.where(np.arange(2000) % 7, 1.0, 977.0)
    found = {
        name: zlib.crc32(encode(make_function_plan(name), numbers[:, None]).tobytes())
        for name in ("log", "log2", "log10", "log1p")
    }
    shifted = numbers % 33.0 - 14.0
    found |= {
        name: zlib.crc32(encode(make_function_plan(name), shifted[:, None]).tobytes()) for name in negative
    }
    table = {"input": 0, "quantiles": np.array([0.0, 1.0]), "ranks": np.array([0.0, 1.0]), "normal": True}
    plan = Plan(["x"], [steps.numbers([0], ["x"]), PlanStep("quantiles", table, ["x"])])
    shares = (np.arange(2000) + 0.5) / 2000
    found["normal quantile"] = zlib.crc32(encode(plan, shares[:, None]).tobytes())
    assert found == CHECKSUMS


CHECKSUMS = {
    "log": 1670330613,
    "log2": 3532512494,
    "log10": 734309599,
    "log1p": 3204449398,
    "exp": 3536701609,
    "exp2": 2795457255,
    "expm1": 2617998075,
    "cbrt": 2595286219,
    "tanh": 523690103,
    "arcsinh": 424488581,
    "arctan": 2863014821,
    "sin": 2053719549,
    "cos": 1597125399,
    "normal quantile": 2689274376,
}


# --- Corners --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("extrapolation", ["constant", "linear", "continue", "error", "periodic"])
def test_numbers_at_and_beyond_the_bounds_of_splines(is_sparse, extrapolation):
    # scikit-learn cannot add up sparse periodic steps
    degrees = [1, 2, 4] if is_sparse and extrapolation == "periodic" else [0, 1, 2, 4]
    for degree, knots in itertools.product(degrees, ["uniform", "quantile"]):
        transformer = SplineTransformer(
            n_knots=6, degree=degree, knots=knots, extrapolation=extrapolation, sparse_output=is_sparse
        )
        plan = make_plan(transformer)
        for data in make_numbers_around(transformer):
            try:
                expected = transformer.transform(data)
            except ValueError:
                with pytest.raises(ValueError, match=r"column 'x[01]': the number is outside"):
                    plan.encode(data)
                continue
            expected = expected.toarray() if is_sparse else expected
            np.testing.assert_array_equal(encode(plan, data), expected)


def make_numbers_around(transformer):
    """Return rows of numbers at the bounds of splines and at a knot, and inside and outside of the bounds."""
    bounds = np.array([X.min(axis=0), X.max(axis=0)])
    lengths = bounds[1] - bounds[0]
    knot = [spline.t[transformer.degree + 2] for spline in transformer.bsplines_]
    outside = np.array([bounds[0] - 1.0, bounds[1] + 1.0])
    rows = [*bounds, *np.nextafter(bounds, bounds[::-1]), knot, *np.nextafter(bounds, outside), *outside]
    rows += [bounds[0] - lengths, bounds[1] + 1.7 * lengths, bounds[1] + 1e6 * lengths]
    return [np.array([row]) for row in rows]


def test_columns_with_one_value():
    data = np.column_stack([np.full(40, 3.0), X[:, 0]])
    for transformer in (
        QuantileTransformer(n_quantiles=5),
        QuantileTransformer(n_quantiles=5, output_distribution="normal"),
        PowerTransformer(),
        SplineTransformer(),
        SplineTransformer(extrapolation="periodic"),
        SplineTransformer(extrapolation="linear"),
    ):
        plan = make_plan(transformer, data=data)
        tested = np.array([[3.0, 0.7], [2.0, 1.0], [4.0, 0.5]])
        np.testing.assert_allclose(encode(plan, tested), transformer.transform(tested.copy()), rtol=1e-12)


@pytest.mark.parametrize("output", ["uniform", "normal"])
def test_missing_numbers_stay_missing(output):
    data = X.copy()
    data[::3, 0] = np.nan
    quantiles = QuantileTransformer(n_quantiles=6, output_distribution=output)
    for first in (quantiles, PowerTransformer(), FunctionTransformer(np.log1p)):
        transformers = (first, SimpleImputer(strategy="constant", fill_value=-7.0))
        plan = make_plan(*transformers, data=data)
        expected = make_pipeline(*transformers).fit_transform(data)
        np.testing.assert_allclose(encode(plan, data), expected, rtol=1e-12)
        assert (encode(plan, data)[::3, 0] == -7.0).all()


def test_functions_of_counts_keep_their_zeros():
    texts = np.array(["a cat a cat", "a mat", "the mat"] * 4, dtype=object)
    first, second = CountVectorizer(token_pattern=r"(?u)\b\w+\b"), FunctionTransformer(np.log1p)
    plan = make_plan(first, second, MaxAbsScaler(), data=texts)
    expected = make_pipeline(first, second, MaxAbsScaler()).fit_transform(texts).toarray()
    np.testing.assert_allclose(encode(plan, texts.tolist()), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "then",
    [
        StandardScaler(),
        Binarizer(),
        MinMaxScaler(clip=True),
        KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"),
        QuantileTransformer(n_quantiles=5),
        SimpleImputer(),
        SplineTransformer(),
        PowerTransformer(),
        FeatureUnion([("flags", Binarizer()), ("numbers", StandardScaler())]),
    ],
)
def test_infinite_results_are_refused_where_scikit_learn_refuses_them(then):
    pipeline = make_pipeline(FunctionTransformer(np.log), then, LogisticRegression()).fit(X, Y)
    fast = unkernel.compile(pipeline, measure=False)
    records = np.array([[1.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in (pipeline, fast):
            with pytest.raises(ValueError, match="infinit"):
                model.predict(records)


def test_functions_of_infinite_results():
    """scikit-learn does not check numbers between two functions."""
    plan = make_plan(FunctionTransformer(np.log), FunctionTransformer(np.arctan))
    np.testing.assert_array_equal(encode(plan, [[0.0, 1.0]]), [[-np.pi / 2, 0.0]])


def test_validated_functions_refuse_missing_numbers():
    plan = make_plan(FunctionTransformer(np.log1p, validate=True), SimpleImputer())
    with pytest.raises(ValueError, match="a number is missing"):
        plan.encode_one([1.0, None])
    plan = make_plan(StandardScaler(), FunctionTransformer(validate=True), SimpleImputer())
    with pytest.raises(ValueError, match="a number is missing"):
        plan.encode_one([1.0, None])


def test_box_cox_of_numbers_that_are_not_positive():
    fast = unkernel.compile(make_pipeline(PowerTransformer(method="box-cox"), LogisticRegression()).fit(X, Y))
    with pytest.raises(ValueError, match="column 'x1': the Box-Cox transform takes positive numbers"):
        fast.predict_one([1.0, 0.0])


def test_splines_of_missing_numbers():
    plan = make_plan(SplineTransformer())
    with pytest.raises(ValueError, match="column 'x0': the value is missing, and has no splines"):
        plan.encode_one([None, 1.0])
    data = X.copy()
    data[::4, 1] = np.nan
    transformer = SplineTransformer(handle_missing="zeros")
    np.testing.assert_array_equal(
        encode(make_plan(transformer, data=data), data), transformer.transform(data)
    )


@pytest.mark.parametrize("function", [np.log, np.exp, np.cbrt, np.log1p, np.tanh, np.arcsinh, np.log10])
@pytest.mark.parametrize("scaler", [None, StandardScaler(), RobustScaler()])
def test_repeated_numbers_stay_on_their_side_of_jumps(function, scaler):
    """NumPy and the core differ in the last digits, and edges and quantiles are numbers of the data."""
    data = np.linspace(0.1, 7.9, 40)[RNG.integers(0, 40, (300, 4))]
    for last in (
        KBinsDiscretizer(7, strategy="quantile", quantile_method="averaged_inverted_cdf"),
        QuantileTransformer(n_quantiles=60),
        SplineTransformer(extrapolation="error"),
        SplineTransformer(degree=0, knots="quantile"),
    ):
        transformers = [FunctionTransformer(function), *([] if scaler is None else [scaler]), last]
        expected = make_pipeline(*transformers).fit_transform(data)
        expected = expected.toarray() if sparse.issparse(expected) else expected
        np.testing.assert_allclose(encode(make_plan(*transformers, data=data), data), expected, atol=1e-9)


def test_numbers_that_differ_by_more_than_rounding_errors_are_not_moved():
    transformers = (FunctionTransformer(np.log), KBinsDiscretizer(2, strategy="quantile"))
    data = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = make_plan(*transformers, data=data)
    snap = next(step for step in plan.steps if step.kind == "snap")
    assert snap.table["points"].tolist() == [np.log(3.0)]
    assert 0 < snap.table["tolerances"][0] < 1e-14
    assert plan.encode_one([3.0])[0].tolist() == [1]
    assert plan.encode_one([3.0 * (1 - 1e-13)])[0].tolist() == [0]
    exact = (StandardScaler(), KBinsDiscretizer(2, quantile_method="averaged_inverted_cdf"))
    assert not any(step.kind == "snap" for step in make_plan(*exact).steps)


@pytest.mark.parametrize("sparse_output", [False, True])
def test_quantiles_behind_categories(sparse_output):
    """A dense array of categories is taken."""
    encoder = OneHotEncoder(sparse_output=sparse_output)
    columns = ColumnTransformer([("one", encoder, [0]), ("two", "passthrough", [1])], sparse_threshold=0)
    transformers = (columns, QuantileTransformer(n_quantiles=9))
    plan = make_plan(*transformers, data=np.round(X))
    expected = make_pipeline(*transformers).fit_transform(np.round(X))
    np.testing.assert_allclose(encode(plan, np.round(X)), expected, rtol=1e-12)


# --- Models ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transformer", "limits"),
    [
        (FunctionTransformer(np.log), (0.0, np.inf)),
        (PowerTransformer(method="box-cox"), (0.0, np.inf)),
        (SplineTransformer(extrapolation="error"), (X.min(), X.max())),
    ],
)
def test_generated_records_are_in_the_domain_of_functions(transformer, limits):
    records = np.array(generate_records(make_plan(transformer), 50))
    assert (limits[0] <= records).all() and (records <= limits[1]).all()
    assert len(np.unique(records)) > 5


@pytest.fixture(scope="module")
def fast():
    return make_model()


def test_explanations_name_columns(fast):
    explanation = fast.explain_one([0.3, 2.0])
    assert abs(explanation.score - fast.score_one([0.3, 2.0])) < 1e-12
    assert "x1" in str(explanation)


def test_part_of_the_record_can_be_bound(fast):
    """The columns of each part have their own quantiles, powers and knots."""
    record = {"x0": 0.3, "x1": 2.0}
    for name, value in record.items():
        rest = {key: other for key, other in record.items() if key != name}
        bound = fast.bind({name: value})
        assert abs(bound.score_one(rest) - fast.score_one(record)) < 1e-12


def test_pickled_and_saved_models_give_the_same_bits(fast, tmp_path):
    fast.save(tmp_path / "m.uk")
    for model in (pickle.loads(pickle.dumps(fast)), unkernel.load(tmp_path / "m.uk")):
        np.testing.assert_array_equal(model.decision_function(X), fast.decision_function(X))
    assert b'"version": "2"' in (tmp_path / "m.uk").read_bytes()[:4096]
