"""Importances of columns and pairs of columns, and the shapes of their contributions."""

import itertools
import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures
from sklearn.svm import SVC
from tests.reference.column_terms import list_terms, raw_scores

import unkernel
from reference.selection import few_examples
from unkernel import PolyLogisticRegression, PolyRegressor, PolySVC, RankSVM, RecordEncoder
from unkernel.engines import RecordClassifier
from unkernel.engines.explain.column_terms import ColumnTerms, list_monomials
from unkernel.records.feature_columns import trace_columns

JOBS, CITIES = ["clerk", "pilot", "nurse"], ["Rome", "Oslo", "Kyoto", "Lima"]


def make_people(count, seed=0):
    generator = np.random.default_rng(seed)
    return [
        {
            "age": int(generator.integers(18, 80)),
            "job": str(generator.choice(JOBS)),
            "city": str(generator.choice(CITIES)),
        }
        for _ in range(count)
    ]


def make_labels(people):
    return ["yes" if (one["age"] > 45) == (one["job"] == "pilot") else "no" for one in people]


def compile_pipeline(people, y, learner, **options):
    encoder = RecordEncoder(min_count=1, **options)
    return unkernel.compile(make_pipeline(encoder, learner).fit(people, y), measure=False)


@pytest.fixture(scope="module")
def jobs():
    people = make_people(600)
    y = make_labels(people)
    return compile_pipeline(people, y, PolySVC()), people, y


LEARNERS = {
    "pairs": PolySVC(),
    "triples": PolySVC(degree=3),
    "linear": PolySVC(degree=1),
    "sparse": PolyLogisticRegression(),
    "support vectors": SVC(kernel="poly", degree=2, coef0=1.0),
}


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", LEARNERS)
@few_examples(2)
@given(seed=st.integers(0, 1000))
def test_terms_equal_the_slow_twin(name, scaled, seed):
    people = make_people(40, seed)
    y = [*make_labels(people)[:-2], "yes", "no"]
    options = {"kinds": {"age": "number"}} if scaled else {"n_bins": (2, 5)}
    fast = compile_pipeline(people, y, LEARNERS[name], **options)
    rows = fast.plan.encode(people[:6])
    columns = trace_columns(fast.plan)
    monomials = list_monomials(fast.classifier.model, are_binary=not scaled)
    terms = ColumnTerms.from_monomials(monomials, columns, rows)
    values = terms.evaluate(rows)
    dense = rows.toarray()
    column_of_feature = np.array([columns.sets[k][0] for k in columns.set_of_feature])
    expected = list_terms(fast, dense, dense, column_of_feature, range(3))
    by_columns = {frozenset(term): values[:, k] for k, term in enumerate(terms.terms)}
    for subset, value in expected.items():
        actual = by_columns.get(subset, 0.0) if subset else terms.intercept
        np.testing.assert_allclose(value, np.broadcast_to(actual, value.shape), rtol=0, atol=1e-12)
    total = values.sum(axis=1) + terms.intercept
    np.testing.assert_allclose(total, raw_scores(fast, dense), rtol=0, atol=1e-12)


def test_shares_add_up_and_name_the_columns(jobs):
    fast, people, y = jobs
    importances = fast.importances(people, y)
    assert importances.columns[0] == ("age", "job")
    assert importances.shares.sum() == pytest.approx(1.0, abs=1e-12)
    assert importances.measure == "accuracy"
    assert importances.losses["age"].shape == (5,)
    assert importances.losses["age"].mean() > 0.2 > abs(importances.losses["city"].mean())
    frame = importances.to_frame()
    assert frame["columns"][0] == "age and job"
    assert math.isnan(frame["loss of accuracy"][0])
    assert "age and job" in str(importances)
    assert "and 5 with less" in importances.table(2) or "and 4 with less" in importances.table(2)
    assert "<table>" in importances._repr_html_()


def test_shares_of_several_classes():
    people = make_people(300)
    fast = compile_pipeline(people, [one["job"] for one in people], PolyLogisticRegression())
    importances = fast.importances(people)
    assert importances.columns[0] == ("job",)
    assert importances.score_names == sorted(JOBS)
    assert importances.score_shares.sum(axis=0) == pytest.approx(1.0, abs=1e-12)
    shape = importances.shape("job")
    for label, scores in zip([cell.label for cell in shape.cells[0]], shape.scores, strict=True):
        assert shape.score_names[int(scores.argmax())] == label
    assert ElementTree.fromstring(shape.to_svg(of="nurse")) is not None
    with pytest.raises(ValueError, match="'boss' is not one of clerk, nurse, pilot"):
        shape.to_svg(of="boss")


def test_a_regression_has_one_score():
    people = make_people(300)
    y = [2.0 * one["age"] for one in people]
    fast = compile_pipeline(people, y, PolyRegressor())
    importances = fast.importances(people, y)
    assert importances.columns[0] == ("age",)
    assert importances.shares[0] > 0.95
    assert importances.score_names == ["score"]
    scores = importances.shape("age").scores[:, 0]
    assert (np.diff(scores) > -5.0).all()
    assert scores[-1] - scores[0] > 80


def test_a_ranking_measures_losses_within_groups():
    people = make_people(200)
    y, qid = [one["age"] for one in people], np.repeat(np.arange(20), 10)
    encoder = RecordEncoder(min_count=1).fit(people)
    ranker = RankSVM().fit(encoder.transform(people), y, qid=qid)
    fast = RecordClassifier(encoder.plan_, unkernel.compile(ranker, measure=False))
    importances = fast.importances(people, y, qid=qid)
    assert importances.columns[0] == ("age",)
    assert importances.losses["age"].mean() > 0.1


def test_a_shape_has_the_intervals_of_all_divisions(jobs):
    fast, people, _ = jobs
    shape = fast.importances(people).shape("age")
    cells = [cell for cell in shape.cells[0] if cell.is_interval]
    assert sum(cell.count for cell in shape.cells[0]) == len(people)
    for one, following in itertools.pairwise(cells):
        assert one.high <= following.low
    frame = shape.to_frame()
    assert list(frame.columns) == ["value", "records", "low", "high", "for yes"]
    assert ElementTree.fromstring(shape.to_svg()).tag.endswith("svg")
    assert "and" in str(shape)
    assert repr(shape) == "Shape('age')"


def test_a_pair_has_a_heat_map(jobs):
    fast, people, _ = jobs
    shape = fast.importances(people).shape("job", "age")
    assert shape.scores.shape == (3, len(shape.cells[1]), 1)
    pilots = [cell.label for cell in shape.cells[0]].index("pilot")
    old = [k for k, cell in enumerate(shape.cells[1]) if cell.low > 45]
    young = [k for k, cell in enumerate(shape.cells[1]) if cell.high < 45]
    assert shape.scores[pilots, old].mean() > 0 > shape.scores[pilots, young].mean()
    assert list(shape.to_frame().columns) == ["job", "age", "for yes"]
    assert shape.to_svg().count("<rect") > 20


def test_shapes_of_numbers_and_missing_values():
    people = make_people(200)
    y = make_labels(people)
    for one in people[:20]:
        one["age"] = None
    fast = compile_pipeline(people, y, PolySVC(), kinds={"age": "number"})
    shape = fast.importances(people).shape("age")
    ages = sorted({one["age"] for one in people if one["age"] is not None})
    assert [cell.low for cell in shape.cells[0] if cell.is_interval] == ages
    assert [cell.label for cell in shape.cells[0] if not cell.is_interval] == ["(missing)"]
    assert "(missing)" in shape.to_svg()


def test_products_in_a_pipeline_belong_to_their_columns():
    people = [{"job": one["job"], "city": one["city"]} for one in make_people(200)]
    pandas = pytest.importorskip("pandas")
    y = [one["job"] == "pilot" and one["city"] == "Oslo" for one in people]
    products = PolynomialFeatures(degree=2, interaction_only=True)
    pipeline = make_pipeline(OneHotEncoder(), products, SVC(kernel="linear"))
    fast = unkernel.compile(pipeline.fit(pandas.DataFrame(people), y), measure=False)
    importances = fast.importances(pandas.DataFrame(people), y)
    assert ("job", "city") in importances.columns
    assert importances.shares.sum() == pytest.approx(1.0, abs=1e-12)


def test_a_sample_is_drawn_from_many_records(jobs):
    fast, people, y = jobs
    importances = fast.importances(people, y, max_records=100, n_repeats=2)
    assert importances.n_records == 100
    assert importances.losses["job"].shape == (2,)
    assert repr(importances).endswith("terms, 100 records)")


def test_what_has_no_importances_is_refused_in_one_line(jobs):
    fast, people, y = jobs
    importances = fast.importances(people)
    with pytest.raises(ValueError, match="no column 'wage'; they have age, job, city"):
        importances.shape("wage")
    with pytest.raises(ValueError, match="one column or two different columns"):
        importances.shape("age", "age")
    with pytest.raises(ValueError, match="max_records must be a whole number from 1 on, got 0"):
        fast.importances(people, max_records=0)
    with pytest.raises(ValueError, match="X is empty"):
        fast.importances([])
    with pytest.raises(ValueError, match="inconsistent numbers of samples: 600 and 3"):
        fast.importances(people, y[:3])
    rbf = make_pipeline(RecordEncoder(), SVC()).fit(people, y)
    with pytest.raises(ValueError, match="cannot be divided among columns"):
        unkernel.compile(rbf, measure=False).importances(people)


def test_words_and_dates_have_importances_but_no_shape():
    people = [
        {"note": f"a {one['job']} from {one['city']} is {one['age']}", "born": f"{2026 - one['age']}-05-17"}
        for one in make_people(300)
    ]
    y = ["pilot" in one["note"] for one in people]
    fast = compile_pipeline(people, y, PolySVC(degree=1), kinds={"note": "text", "born": "date"})
    importances = fast.importances(people)
    assert importances.columns[0] == ("note",)
    for column in ("note", "born"):
        with pytest.raises(ValueError, match=f"column '{column}' has features of words or of parts of dates"):
            importances.shape(column)


def test_a_constant_score_has_shares_of_zero(jobs):
    fast, people, _ = jobs
    importances = fast.importances(people[:1])
    assert (importances.shares == 0).all()
    assert ElementTree.fromstring(importances.shape("age").to_svg()) is not None
