"""The estimators of scikit-learn that may be the last step of a compiled pipeline.

Only parameters that affect predictions are listed. Parameters that matter only in ``fit`` are left out.
"""

from __future__ import annotations

from unkernel.records.sklearn.supported_parameters import (
    Parameter,
    Supported,
    any_of,
    one_of,
    used_in_fit,
    without_effect,
)

_SVM, _LINEAR = "sklearn.svm", "sklearn.linear_model"
_KERNEL = one_of(
    "linear",
    "poly",
    "rbf",
    "sigmoid",
    refused=["<function>", "precomputed"],
    why="the kernel cannot be stored in a model",
)
_SVC_PARAMETERS = {
    "kernel": _KERNEL,
    "decision_function_shape": one_of("ovr", "ovo"),
    "break_ties": one_of(True, False),
}
_LABELS = "labels and scores"
_PROBABILITIES = "labels, scores and probabilities"
_VALUES = "values"
_SEVERAL_VALUES = "values of several targets"
_ENSEMBLE = "sklearn.ensemble"
_SELECTION, _THRESHOLD = (
    "sklearn.model_selection",
    "those of the classifier inside, with labels by its threshold",
)
_DECIDED = any_of(
    "classifiers listed here, and those of unkernel; whole pipelines, too", "<LogisticRegression>"
)
_BAYES, _CHANCES = "sklearn.naive_bayes", "labels and probabilities"
_INNER_CLASSIFIERS = any_of(
    "linear classifiers, support vector machines, and the classifiers of unkernel",
    "<LogisticRegression>",
    "<LinearSVC>",
    "<SVC>",
)
_CLASSIFIERS_OF_OUTPUTS = any_of(
    "classifiers listed here, and those of unkernel",
    "<LogisticRegression>",
    "<LinearSVC>",
    "<SVC>",
)
_PAIRED_CLASSIFIERS = Parameter(
    "linear classifiers, and support vector machines whose `gamma` is a number",
    ["<LogisticRegression>", "<LinearSVC>", "<SVC with gamma>"],
    refused=["<SVC>"],
    why="`gamma='scale'` is another number for each pair",
)

ESTIMATORS: dict[str, Supported] = {
    "LinearSVC": Supported(_SVM, _LABELS, {"multi_class": used_in_fit("ovr", "crammer_singer")}),
    "SVC": Supported(_SVM, _LABELS, _SVC_PARAMETERS),
    "NuSVC": Supported(_SVM, _LABELS, _SVC_PARAMETERS),
    "LogisticRegression": Supported(_LINEAR, _PROBABILITIES, {"solver": used_in_fit("lbfgs", "saga")}),
    "LogisticRegressionCV": Supported(_LINEAR, _PROBABILITIES, {}),
    "SGDClassifier": Supported(
        _LINEAR,
        "labels and scores; probabilities for the losses that have them",
        {"loss": used_in_fit("hinge", "log_loss", "modified_huber", "perceptron", "squared_hinge")},
    ),
    "RidgeClassifier": Supported(_LINEAR, _LABELS, {}),
    "RidgeClassifierCV": Supported(_LINEAR, _LABELS, {}),
    "Perceptron": Supported(_LINEAR, _LABELS, {}),
    "LinearDiscriminantAnalysis": Supported(
        "sklearn.discriminant_analysis", _PROBABILITIES, {"solver": used_in_fit("svd", "lsqr")}
    ),
    "MultinomialNB": Supported(_BAYES, _CHANCES, {}),
    "ComplementNB": Supported(_BAYES, _CHANCES, {"norm": used_in_fit(False, True)}),
    "BernoulliNB": Supported(_BAYES, _CHANCES, {"binarize": any_of("any", 0.0, 1.0)}),
    "GaussianNB": Supported(_BAYES, _CHANCES, {"var_smoothing": used_in_fit(1e-9, 0.1)}),
    "CategoricalNB": Supported(_BAYES, f"{_CHANCES}; behind an `OrdinalEncoder`", {}),
    "OneVsRestClassifier": Supported(
        "sklearn.multiclass",
        "labels and scores; probabilities where the classifiers inside have them; also of several labels per "
        "record",
        {"estimator": _INNER_CLASSIFIERS},
    ),
    "OneVsOneClassifier": Supported("sklearn.multiclass", _LABELS, {"estimator": _PAIRED_CLASSIFIERS}),
    "MultiOutputClassifier": Supported(
        "sklearn.multioutput",
        "the labels of each output; probabilities where the classifiers inside have them",
        {"estimator": _CLASSIFIERS_OF_OUTPUTS},
    ),
    "MultiOutputRegressor": Supported(
        "sklearn.multioutput",
        "the values of each output",
        {
            "estimator": any_of(
                "linear regressions, support vector regressions, and the regressions of unkernel",
                "<Ridge>",
                "<SVR>",
            )
        },
    ),
    "CalibratedClassifierCV": Supported(
        "sklearn.calibration",
        "labels and probabilities",
        {
            "estimator": any_of(
                "classifiers listed here with scores, and those of unkernel; of `SVC` for two classes only; "
                "whole pipelines, too: with linear classifiers, or fitted with `ensemble=False`",
                "<LinearSVC>",
                "<RidgeClassifier>",
            ),
            "method": one_of(
                "sigmoid", "isotonic", refused=["temperature"], why="fit it with 'sigmoid' or 'isotonic'"
            ),
            "ensemble": one_of(True, False),
        },
    ),
    "FixedThresholdClassifier": Supported(
        _SELECTION,
        _THRESHOLD,
        {
            "estimator": _DECIDED,
            "threshold": any_of("any; of probabilities, between 0 and 1", "auto", 0.3),
            "pos_label": any_of("any", None, 0),
            "response_method": one_of("auto", "predict_proba", "decision_function"),
        },
    ),
    "TunedThresholdClassifierCV": Supported(
        _SELECTION,
        _THRESHOLD,
        {
            "estimator": _DECIDED,
            "scoring": used_in_fit("balanced_accuracy", "f1"),
            "response_method": one_of("auto", "predict_proba", "decision_function"),
        },
    ),
    "VotingClassifier": Supported(
        _ENSEMBLE,
        "labels and probabilities of two classes",
        {
            "estimators": any_of("linear classifiers with probabilities", "<classifiers>"),
            "voting": one_of("soft", refused=["hard"], why="a model averages probabilities"),
            "weights": Parameter("`None` or equal ones", [None, [2, 2]], refused=[[1, 2]], why="as above"),
            "flatten_transform": without_effect(True, False),
        },
    ),
    "VotingRegressor": Supported(
        _ENSEMBLE,
        _VALUES,
        {"estimators": any_of("linear regressions", "<regressions>"), "weights": any_of("any", None, [1, 2])},
    ),
    "StackingClassifier": Supported(
        _ENSEMBLE,
        "those of the final estimator",
        {
            "estimators": any_of("linear classifiers", "<classifiers>"),
            "final_estimator": any_of("a linear classifier", None, "<LinearSVC>"),
            "stack_method": one_of(
                "decision_function", refused=["predict_proba"], why="probabilities are not linear"
            ),
            "passthrough": one_of(True, False),
        },
    ),
    "StackingRegressor": Supported(
        _ENSEMBLE,
        _VALUES,
        {
            "estimators": any_of("linear regressions", "<regressions>"),
            "final_estimator": any_of("a linear regression", None),
            "passthrough": one_of(True, False),
        },
    ),
    "OneClassSVM": Supported(_SVM, "1 and -1, and scores", {"kernel": _KERNEL}),
    "SVR": Supported(_SVM, _VALUES, {"kernel": _KERNEL}),
    "NuSVR": Supported(_SVM, _VALUES, {"kernel": _KERNEL}),
    "LinearSVR": Supported(_SVM, _VALUES, {}),
    "LinearRegression": Supported(_LINEAR, _VALUES, {}),
    "Ridge": Supported(_LINEAR, _VALUES, {}),
    "Lasso": Supported(_LINEAR, _VALUES, {}),
    "ElasticNet": Supported(_LINEAR, _VALUES, {}),
    "SGDRegressor": Supported(_LINEAR, _VALUES, {}),
    "RidgeCV": Supported(_LINEAR, _VALUES, {}),
    "LassoCV": Supported(_LINEAR, _VALUES, {}),
    "ElasticNetCV": Supported(_LINEAR, _VALUES, {}),
    "HuberRegressor": Supported(_LINEAR, _VALUES, {}),
    "BayesianRidge": Supported(_LINEAR, _VALUES, {}),
    "MultiTaskLasso": Supported(_LINEAR, _SEVERAL_VALUES, {}),
    "MultiTaskElasticNet": Supported(_LINEAR, _SEVERAL_VALUES, {}),
}
