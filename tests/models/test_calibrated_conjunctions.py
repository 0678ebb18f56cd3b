"""CalibratedClassifierCV of PolySVC compiles: scikit-learn's probabilities, saved and loaded."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

import unkernel
from reference.selection import parametrize_pairs
from unkernel import CuttingPlaneSVC, FormatError, PolyLogisticRegression, PolySVC, RecordEncoder, TreeSVC
from unkernel.models import ConjunctionModel, LinearModel, container

ROWS, COLUMNS = 72, 5


def make_rows(kind: str, count: int = ROWS) -> np.ndarray:
    generator = np.random.default_rng(3)
    numbers = generator.normal(size=(count, COLUMNS))
    return (numbers > 0).astype(float) if kind == "binary" else numbers


def labels(n_classes: int) -> np.ndarray:
    rows = make_rows("numbers")
    places = np.argmax(rows[:, :n_classes] + 0.3 * np.random.default_rng(4).normal(size=(ROWS, n_classes)), 1)
    return np.array(["a", "b", "c"])[places]


def check_scores(fast, calibrated, X) -> None:
    """Check that the columns of scores are the scores of the calibrated members, in their order."""
    members = [part.estimator.decision_function(X) for part in calibrated.calibrated_classifiers_]
    np.testing.assert_allclose(fast._raw_scores(X, None), np.column_stack(members), rtol=1e-9, atol=1e-12)


def assert_same_predictions(fast, calibrated, X) -> None:
    np.testing.assert_allclose(fast.predict_proba(X), calibrated.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert (fast.predict(X) == calibrated.predict(X)).all()


@parametrize_pairs(
    kind=["binary", "numbers"], n_classes=[2, 3], method=["sigmoid", "isotonic"], ensemble=[True, False]
)
def test_probabilities_equal_scikit_learn(tmp_path, kind, n_classes, method, ensemble):
    X, y = make_rows(kind), labels(n_classes)
    calibrated = CalibratedClassifierCV(PolySVC(), cv=3, method=method, ensemble=ensemble).fit(X, y)
    fast = unkernel.compile(calibrated, measure=False)
    assert isinstance(fast.to_model(), ConjunctionModel)
    fast.save(tmp_path / "fast.uk")
    loaded = unkernel.load(tmp_path / "fast.uk")
    for inputs in (X, make_rows("numbers", 40)):  # including rows that are not binary
        check_scores(fast, calibrated, inputs)
        if method == "sigmoid" or inputs is not X:  # steps of isotonic curves are at the scores of these rows
            assert_same_predictions(fast, calibrated, inputs)
        np.testing.assert_array_equal(loaded.predict_proba(inputs), fast.predict_proba(inputs))
        assert (loaded.predict(inputs) == fast.predict(inputs)).all()


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("options", [{"gamma": 0.5}, {"feature_map": "plain"}, {"coef0": 0.0}])
def test_degrees_and_maps(degree, options):
    X, y = make_rows("binary"), labels(2)
    calibrated = CalibratedClassifierCV(PolySVC(degree=degree, **options), cv=2).fit(X, y)
    fast = unkernel.compile(calibrated, measure=False)
    assert fast.to_model().sets == ("coef0" not in options)  # the folds have the same map
    for inputs in (X, make_rows("numbers", 40)):
        assert_same_predictions(fast, calibrated, inputs)


def test_folds_can_lack_features():
    """Each fold lacks a feature, so the same feature has different numbers in the models of the folds."""
    X, y = make_rows("binary"), labels(2)
    X[: ROWS // 2, 0] = X[ROWS // 2 :, 1] = 0
    calibrated = CalibratedClassifierCV(PolySVC(degree=3), cv=[(np.arange(36), np.arange(36, 72))] * 2)
    calibrated.cv += [(np.arange(36, 72), np.arange(36))]
    assert_same_predictions(unkernel.compile(calibrated.fit(X, y), measure=False), calibrated, X)


@pytest.mark.parametrize(
    ("inside", "kind"), [(PolyLogisticRegression(), ConjunctionModel), (CuttingPlaneSVC(), LinearModel)]
)
def test_other_classifiers_of_rows(inside, kind):
    X, y = make_rows("numbers"), labels(2)
    calibrated = CalibratedClassifierCV(inside, cv=2).fit(X, y)
    fast = unkernel.compile(calibrated, measure=False)
    assert isinstance(fast.to_model(), kind)
    assert_same_predictions(fast, calibrated, X)


def test_a_frozen_classifier_is_compiled():
    X, y = make_rows("numbers"), labels(3)
    calibrated = CalibratedClassifierCV(FrozenEstimator(PolySVC().fit(X, y))).fit(X, y)
    assert_same_predictions(unkernel.compile(calibrated, measure=False), calibrated, X)


def test_one_classifier_is_explained():
    X, y = make_rows("binary"), labels(2)
    calibrated = CalibratedClassifierCV(PolySVC(), cv=2, ensemble=False).fit(X, y)
    explained = unkernel.compile(calibrated, measure=False).explain(X[0])
    score = calibrated.calibrated_classifiers_[0].estimator.decision_function(X[:1])[0]
    assert explained.score == pytest.approx(score, rel=1e-9)


def test_classifiers_of_trees_are_refused():
    trees = ["(A (B x))", "(A (C y))"] * 6
    calibrated = CalibratedClassifierCV(TreeSVC(), cv=2).fit(trees, [0, 1] * 6)
    with pytest.raises(ValueError, match="of TreeSVC is not supported; calibrate a classifier of rows"):
        unkernel.compile(calibrated)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_records(tmp_path, n_classes):
    frame = pd.DataFrame({"size": make_rows("numbers")[:, 0], "kind": ["u", "v", "w"] * (ROWS // 3)})
    calibrated = make_pipeline(RecordEncoder(), CalibratedClassifierCV(PolySVC(), cv=2)).fit(
        frame, labels(n_classes)
    )
    fast = unkernel.compile(calibrated, sample=frame, measure=False)
    fast.save(tmp_path / "fast.uk")
    for classifier in (fast, unkernel.load(tmp_path / "fast.uk")):
        assert_same_predictions(classifier, calibrated, frame)
        record = frame.iloc[5].to_dict()
        assert classifier.predict_one(record) == calibrated.predict(frame.iloc[5:6])[0]


@pytest.mark.parametrize("change", [{"calibrated": 1}, {"calibrated": True, "probability": "softmax"}])
def test_damaged_files_are_refused(tmp_path, change):
    X, y = make_rows("binary"), labels(2)
    calibrated = CalibratedClassifierCV(PolySVC(), cv=2, ensemble=False).fit(X, y)
    unkernel.compile(calibrated, measure=False).save(tmp_path / "fast.uk")
    kind, arrays, settings = container.read(tmp_path / "fast.uk")[:3]
    changed_settings = _change_settings(settings, change)
    container.write(tmp_path / "damaged.uk", kind, arrays, changed_settings)
    with pytest.raises(FormatError, match=r"damaged\.uk"):
        unkernel.load(tmp_path / "damaged.uk").to_model()


def _change_settings(settings, change):
    """Return settings with a change in the settings of the model, which may be nested."""
    if "calibrated" in settings:
        return settings | change
    return {k: _change_settings(v, change) if isinstance(v, dict) else v for k, v in settings.items()}
