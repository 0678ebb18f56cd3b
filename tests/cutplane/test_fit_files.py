"""Training from files gives the same models as training from rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from unkernel import CuttingPlaneSVC, FormatError, RankSVM, read_svmlight, write_svmlight


def make_rows(rows=600, features=60, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random(rows, features, density=0.15, format="csr", random_state=rng)
    assert X.indices.min() == 0 and X.indices.max() == features - 1  # otherwise files have fewer columns
    value = X @ rng.normal(size=features) + 0.2 * rng.normal(size=rows)
    return X, np.digitize(value, np.quantile(value, np.linspace(0, 1, classes + 1)[1:-1]))


def assert_same_model(actual, expected, tolerance=1e-9):
    """Compare models up to rounding: files number the columns from 1, so sums have another order."""
    np.testing.assert_allclose(actual.coef_, expected.coef_, rtol=0, atol=tolerance)
    assert actual.objective_ == pytest.approx(expected.objective_, rel=tolerance)
    assert actual.n_iter_ == expected.n_iter_
    assert actual.n_features_in_ == expected.n_features_in_


@pytest.fixture
def svm(tmp_path):
    X, y = make_rows()
    write_svmlight(tmp_path / "rows.svm", X, y)
    return tmp_path / "rows.svm", X, y


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize(
    "options", [{}, {"loss": "squared_hinge"}, {"fit_intercept": False}, {"objective": "f1"}], ids=str
)
def test_files_give_the_models_of_rows_in_memory(svm, options, tol, n_jobs):
    path, X, y = svm
    tol = max(tol, 1e-3) if "objective" in options else tol
    options = {"C": 0.1, "tol": tol, "solver": "cutting_plane"} | options
    result = CuttingPlaneSVC(n_jobs=n_jobs, **options).fit(path)
    expected = CuttingPlaneSVC(**options).fit(X, y)
    assert_same_model(result, expected)
    np.testing.assert_allclose(result.intercept_, expected.intercept_, atol=1e-9)
    np.testing.assert_allclose(result.decision_function(X), expected.decision_function(X), atol=1e-8)
    refitted = CuttingPlaneSVC(n_jobs=n_jobs, **options).fit(str(path))  # from the packed copy
    assert np.array_equal(refitted.coef_, result.coef_)


def test_files_are_for_cutting_planes(svm):
    path, _, _ = svm
    assert CuttingPlaneSVC().fit(path).solver_ == "cutting_plane"
    with pytest.raises(ValueError, match="rows in memory"):
        CuttingPlaneSVC(solver="dual").fit(path)


@pytest.mark.parametrize("learner", [CuttingPlaneSVC(C=0.1), RankSVM(C=0.1)], ids=["svc", "rank"])
@pytest.mark.parametrize("suffix", ["svm", "svm.gz", "svm.xz"])
def test_many_files_are_one_data_set(learner, suffix, tmp_path):
    X, y = make_rows(classes=3)
    parts = [tmp_path / f"part-{number}.{suffix}" for number in range(3)]
    for number, part in enumerate(parts):
        write_svmlight(part, X[200 * number : 200 * (number + 1)], y[200 * number : 200 * (number + 1)])
    expected = type(learner)(C=0.1).fit(X, y)
    for source in (str(tmp_path / f"part-*.{suffix}"), parts, [str(part) for part in parts]):
        assert_same_model(learner.fit(source), expected)
    for nothing in (str(tmp_path / "nobody-*.svm"), tmp_path / "nobody.svm"):
        with pytest.raises(FileNotFoundError, match="nobody"):
            learner.fit(nothing)


@pytest.mark.parametrize("zero_based", [True, False, "auto"])
def test_columns_count_from_zero_or_one(zero_based, tmp_path):
    X, y = make_rows()
    write_svmlight(tmp_path / "rows.svm", X, y, zero_based=zero_based is not False)
    result = CuttingPlaneSVC(C=0.1)
    result.fit_reporting(tmp_path / "rows.svm", None, None, on_progress=None, zero_based=zero_based)
    assert_same_model(result, CuttingPlaneSVC(C=0.1).fit(X, y))
    ranker = RankSVM(C=0.1)
    ranker.fit_reporting(tmp_path / "rows.svm", None, None, None, on_progress=None, zero_based=zero_based)
    assert_same_model(ranker, RankSVM(C=0.1).fit(X, y))


def test_labels_of_files_are_whole_where_they_can_be(tmp_path):
    X, y = make_rows(classes=3)
    write_svmlight(tmp_path / "whole.svm", X, np.array([-1, 0, 7])[y])
    clf = CuttingPlaneSVC().fit(tmp_path / "whole.svm")
    assert clf.classes_.dtype.kind == "i"
    assert clf.classes_.tolist() == [-1, 0, 7]
    write_svmlight(tmp_path / "halves.svm", X, y / 2)
    with pytest.raises(ValueError, match="continuous"):
        CuttingPlaneSVC().fit(tmp_path / "halves.svm")
    assert RankSVM().fit(tmp_path / "halves.svm").ranks_.tolist() == [0.0, 0.5, 1.0]
    ranker = RankSVM().fit(tmp_path / "whole.svm").fit_thresholds(X, np.array([-1, 0, 7])[y])
    assert ranker.predict(X).dtype.kind == "i"


def test_weights_are_given_with_files(svm):
    path, X, y = svm
    weights = np.random.default_rng(0).choice([0.0, 1.0, 3.0], len(y))
    result = CuttingPlaneSVC(C=0.1, class_weight="balanced").fit(path, sample_weight=weights)
    assert_same_model(result, CuttingPlaneSVC(C=0.1, class_weight="balanced").fit(X, y, weights))
    with pytest.raises(ValueError, match="sample_weight"):
        CuttingPlaneSVC().fit(path, sample_weight=weights[1:])


def test_labels_are_not_given_with_files(svm):
    path, _, y = svm
    with pytest.raises(ValueError, match="files have their own labels"):
        CuttingPlaneSVC().fit(path, y)
    for arguments in ((y,), (None, y)):
        with pytest.raises(ValueError, match="files have their own labels and groups"):
            RankSVM().fit(path, *arguments)


def test_groups_equal_the_queries_of_the_file(tmp_path):
    X, y = make_rows(classes=4)
    qid = np.random.default_rng(1).integers(0, 30, len(y)) * 1000
    write_svmlight(tmp_path / "rows.svm", X, y, qid=qid)
    result = RankSVM(C=0.1).fit(tmp_path / "rows.svm")
    assert_same_model(result, RankSVM(C=0.1).fit(X, y, qid))
    stored = read_svmlight(tmp_path / "rows.svm", n_features=60)
    assert result.score(stored.X, stored.y, stored.qid) == pytest.approx(result.score(X, y, qid))


def test_the_packed_copy_is_written_to_the_given_place(svm, tmp_path):
    path, _, _ = svm
    cache = tmp_path / "elsewhere" / "packed"
    cache.parent.mkdir()
    result = CuttingPlaneSVC(C=0.1, cache=cache).fit(path)
    assert cache.exists()
    assert not path.with_name("rows.svm.rows").exists()
    assert np.array_equal(CuttingPlaneSVC(C=0.1).fit(path).coef_, result.coef_)
    assert path.with_name("rows.svm.rows").exists()


def test_a_changed_file_is_read_again(svm):
    path, X, y = svm
    CuttingPlaneSVC().fit(path)
    write_svmlight(path, X[:300], y[:300])
    assert_same_model(CuttingPlaneSVC(C=0.1).fit(path), CuttingPlaneSVC(C=0.1).fit(X[:300], y[:300]))


def test_a_path_of_costs_on_files(svm):
    path, X, y = svm
    learner = CuttingPlaneSVC(tol=1e-4)
    pairs = zip(learner.path(path, None, [0.1, 0.5]), learner.path(X, y, [0.1, 0.5]), strict=True)
    for from_file, from_memory in pairs:
        assert from_file.objective_ == pytest.approx(from_memory.objective_, rel=1e-4)
        assert from_file.n_features_in_ == 60


def test_warm_starts_on_files(svm):
    path, _, _ = svm
    clf = CuttingPlaneSVC(tol=1e-4, warm_start=True).fit(path)
    rounds, objective = clf.n_iter_, clf.objective_
    clf.fit(path)
    assert clf.n_iter_ < rounds
    assert clf.objective_ <= objective * (1 + 1e-12)


def test_reading_reports_its_progress(svm):
    path, _, y = svm
    message = []
    CuttingPlaneSVC().fit_reporting(
        path, None, None, on_progress=None, on_reading=lambda *news: message.append(news)
    )
    assert message[-1] == (1.0, len(y))


def test_names_of_columns_are_forgotten(svm):
    pandas = pytest.importorskip("pandas")
    path, X, y = svm
    frame = pandas.DataFrame(X.toarray(), columns=[f"c{column}" for column in range(60)])
    clf = CuttingPlaneSVC(C=0.1).fit(frame, y)
    assert clf.feature_names_in_[0] == "c0"
    clf.fit(path)
    assert not hasattr(clf, "feature_names_in_")


@pytest.mark.parametrize("content", ["", "# nothing\n", "1 1:nan\n-1 1:1\n", "1 1:1\n-1 x\n"])
def test_malformed_files_are_named(content, tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(content)
    for learner in (CuttingPlaneSVC(), RankSVM()):
        with pytest.raises((FormatError, ValueError), match=r"rows\.svm"):
            learner.fit(path)
        assert not hasattr(learner, "model_")


def test_files_of_one_class_are_refused(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n1 1:2\n")
    with pytest.raises(ValueError, match="one class"):
        CuttingPlaneSVC().fit(path)
    with pytest.raises(ValueError, match="pair"):
        RankSVM().fit(path)


def test_an_index_that_no_memory_holds_is_named(tmp_path):
    path = tmp_path / "wide.svm"
    path.write_text("1 4000000000:1\n-1 2:1\n")
    with pytest.raises(MemoryError, match="number the features consecutively"):
        CuttingPlaneSVC().fit(path)


def test_files_without_any_feature_are_refused(tmp_path):
    path = tmp_path / "bare.svm"
    path.write_text("1\n-1\n")
    for learner in (CuttingPlaneSVC(), RankSVM()):
        with pytest.raises(ValueError, match="no row has any feature"):
            learner.fit(path)
