"""Every step and value in the table of supported pipelines is compiled or refused, as the table says."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import unkernel
from reference import supported_steps
from unkernel.records.sklearn import pipelines
from unkernel.records.sklearn.estimators import ESTIMATORS
from unkernel.records.sklearn.supported_steps import TRANSFORMERS

SUPPORTED = supported_steps.make_trials(TRANSFORMERS) + supported_steps.make_trials(ESTIMATORS)
REFUSED = supported_steps.make_trials(TRANSFORMERS, refused=True)
REFUSED_LAST = supported_steps.make_trials(ESTIMATORS, refused=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("trial", SUPPORTED, ids=str)
def test_supported(trial):
    X = copy.deepcopy(trial.X)  # copy=False changes it
    pipeline = trial.pipeline.fit(copy.deepcopy(X), trial.y)
    fast = unkernel.compile(pipeline, sample=X, measure=False)
    actual = fast.predict(X)
    expected = np.asarray(pipeline.predict(X))
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("trial", REFUSED, ids=str)
def test_refused(trial):
    pipeline = trial.pipeline
    try:
        pipeline.fit(trial.X, trial.y)
    except (ValueError, TypeError, AttributeError):  # such as missing files
        parameters = pipeline.named_steps["my step"].get_params(deep=False)
        pipeline.set_params(**{f"my step__{trial.parameter}": _default(trial)}).fit(trial.X, trial.y)
        pipeline.named_steps["my step"].__dict__[trial.parameter] = parameters[trial.parameter]
    with pytest.raises(
        ValueError, match=rf"'my step' \({trial.name}\).*{trial.parameter}=.*leave it out, or"
    ):
        unkernel.compile(pipeline)


def _default(trial):
    return TRANSFORMERS[trial.name].parameters[trial.parameter].examples[0]


@pytest.mark.parametrize("trial", REFUSED_LAST, ids=str)
def test_refused_last_steps(trial):
    X = trial.X @ trial.X.T if trial.value == "precomputed" else trial.X
    if trial.parameter == "kernel" and trial.value == "<function>":
        trial.pipeline.set_params(last__kernel=lambda a, b: a @ b.T)
    estimator = trial.pipeline.named_steps["last"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = Pipeline([("scale", StandardScaler()), ("last", estimator)]).fit(X, trial.y)
    with pytest.raises(ValueError, match=r"not supported|supported with|kernel|'sigmoid' or"):
        unkernel.compile(pipeline)


def test_a_parameter_of_a_later_scikit_learn():
    class Later(StandardScaler):
        def __init__(self, *, copy=True, with_mean=True, with_std=True, twice=False):
            super().__init__(copy=copy, with_mean=with_mean, with_std=with_std)
            self.twice = twice

    Later.__module__, Later.__name__ = "sklearn.preprocessing", "StandardScaler"
    X = supported_steps.numbers()
    for twice in (False, True):
        pipeline = Pipeline([("my step", Later(twice=twice)), ("last", LogisticRegression())])
        pipeline.fit(X, supported_steps.LABELS)
        if not twice:
            unkernel.compile(pipeline, measure=False)
            continue
        with pytest.raises(ValueError, match=r"'my step' .*twice=True, an unsupported parameter"):
            unkernel.compile(pipeline)


def test_every_translator_is_listed():
    assert set(pipelines.TRANSLATORS) <= set(TRANSFORMERS)
    untranslated = set(TRANSFORMERS) - set(pipelines.TRANSLATORS)
    for name in untranslated - {
        "Pipeline",
        "ColumnTransformer",
        "FeatureUnion",
        "PCA",
        "TruncatedSVD",
    }:
        assert TRANSFORMERS[name].module == "sklearn.feature_selection"


@pytest.mark.parametrize("entry", [*TRANSFORMERS.items()], ids=lambda entry: entry[0])
def test_every_parameter_of_this_scikit_learn_is_listed(entry):
    name, about = entry
    trial = next(trial for trial in SUPPORTED if trial.name == name)
    step = trial.pipeline.named_steps["my step"]
    assert set(step.get_params(deep=False)) <= set(about.parameters)
