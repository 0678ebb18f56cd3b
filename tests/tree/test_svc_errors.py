"""Input that TreeSVC refuses, and its messages when it ends early."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from reference.processes import check_interrupt, needs_sigint, run_program
from reference.tree_examples import make_problem
from unkernel import Forest, FormatError, TreeSVC


class EnoughError(Exception):
    """Raised by a test to end a training."""


# --- Trainings that end early -----------------------------------------------------------------------


def test_fits_that_do_not_converge_warn():
    texts, y = make_problem(23, 300)
    with pytest.warns(ConvergenceWarning, match=r"after 1 rounds at a relative gap of") as caught:
        clf = TreeSVC(C=10.0, tol=1e-12, max_iter=1).fit(texts, y)
    assert caught[0].filename == __file__
    assert clf.gap_ > 1e-12
    with pytest.warns(ConvergenceWarning, match="new cuts were still violated") as caught:
        TreeSVC(solver="sampled", tol=1e-6, max_iter=3, random_state=0).fit(texts, y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_an_interrupted_fit_leaves_no_attributes(solver):
    texts, y = make_problem(24, 2000, noise=0.8)

    def on_progress(_progress):
        raise KeyboardInterrupt

    clf = TreeSVC("ptk", C=1e4, tol=1e-12, max_iter=10**6, solver=solver, sample_size=2000)
    with pytest.raises(KeyboardInterrupt):
        clf.fit_reporting(texts, y, None, on_progress=on_progress)
    with pytest.raises(NotFittedError):
        clf.predict(texts)


@pytest.mark.hostile
@needs_sigint
@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_stops_promptly_on_ctrl_c(solver):
    check_interrupt(f"""
        import numpy as np
        from unkernel import TreeSVC
        rng = np.random.default_rng(0)
        def tree():
            return "(S " + " ".join(f"(A{{a}} (B w{{b}}))" for a, b in rng.integers(0, 9, (12, 2))) + ")"
        X, y = [tree() for _ in range(6000)], rng.integers(0, 2, 6000)
        learner = TreeSVC("ptk", C=1e6, tol=1e-13, max_iter=10**6, solver="{solver}", sample_size=6000)
        while True:
            learner.fit_reporting(X, y, None, on_progress=on_progress)
    """)


@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_progress_is_shown(solver):
    texts, y = make_problem(25, 1500, classes=3, noise=0.8)
    reports = []

    def on_progress(progress):
        reports.append(progress)
        if progress.stage:
            raise EnoughError

    clf = TreeSVC("ptk", C=1e4, tol=1e-12, max_iter=10**6, solver=solver, sample_size=1500)
    with pytest.raises(EnoughError):
        clf.fit_reporting(texts, y, None, on_progress=on_progress)
    assert reports[-1].stage in {"exact": ("kernels", "training"), "sampled": ("sampling",)}[solver]
    assert reports[-1].problems == 3
    assert reports[-1].epoch >= reports[0].epoch


# --- Refused inputs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["exact", "sampled"])
@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"kernel": "tree"}, "kernel"),
        ({"decay": 0.0}, "decay"),
        ({"decay": float("nan")}, "decay"),
        ({"width_decay": 0.0}, "width_decay"),
        ({"normalize": "yes"}, "normalize"),
        ({"C": 0}, "C"),
        ({"C": -1.0}, "C"),
        ({"C": float("inf")}, "C"),
        ({"solver": "smo"}, "solver"),
        ({"sample_size": 0}, "sample_size"),
        ({"imbalance": 0.0}, "imbalance"),
        ({"tree_pairing": "none"}, "tree_pairing"),
        ({"combine": "both"}, "combine"),
        ({"tree_weight": -1.0}, "tree_weight"),
        ({"vector_kernel": "precomputed"}, "vector_kernel"),
        ({"degree": 0}, "degree"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"class_weight": "even"}, "class_weight"),
        ({"class_weight": {7: 1.0}}, "class_weight"),
        ({"class_weight": {0: -1.0}}, "class_weight of 0"),
        ({"class_weight": {0: float("nan")}}, "class_weight of 0"),
        ({"class_weight": {0: float("inf")}}, "class_weight of 0"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(solver, parameters, complaint):
    with pytest.raises(ValueError, match=complaint):
        TreeSVC(**{"solver": solver} | parameters).fit(["(A b)", "(C d)"], [0, 1])


@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_classes_of_weight_zero_are_refused(solver):
    with pytest.raises(ValueError, match="weight"):
        TreeSVC(solver=solver, class_weight={0: 0.0, 1: 0.0}, max_iter=5).fit(["(A b)", "(C d)"], [0, 1])


@pytest.mark.parametrize(
    ("X", "y", "error", "complaint"),
    [
        (["(A b)", "(A"], [0, 1], FormatError, r"trees\[1\]:1:1"),
        (["(A b)", 5], [0, 1], TypeError, r"trees\[1\] is of type int"),
        (["(A b)", "(C d)"], [1, 1], ValueError, "one class"),
        (["(A b)", "(C d)"], [0.5, 1.7], ValueError, "continuous"),
        (["(A b)", "(C d)"], [0, 1, 1], ValueError, "inconsistent"),
        (["(A b)", "(C d)"], [[0, 1], [1, 0]], ValueError, "1d"),
        (["(A b)", "(C d)"], [0.0, np.nan], ValueError, "NaN"),
        ([], [], ValueError, "no trees"),
        (Forest, [], ValueError, "no trees|at least"),  # without examples
        ("(A b)", [0], TypeError, "expected a list of trees"),
        (np.eye(2), [0, 1], TypeError, r"trees\[0\] is of type"),
        (None, [0, 1], TypeError, "expected a list of trees"),
    ],
    ids=str,
)
@pytest.mark.parametrize("solver", ["exact", "sampled"])
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # of scikit-learn, for NaN
def test_errors_for_bad_data_name_the_cause(solver, X, y, error, complaint):
    with pytest.raises(error, match=complaint):
        TreeSVC(solver=solver).fit(X() if X is Forest else X, y)


@pytest.mark.parametrize(
    ("weights", "complaint"),
    [([-1.0, 1.0], "[Nn]egative"), ([0.0, 0.0], "[Ww]eight"), ([0.0, 1.0], "one class"), ([1.0], "shape"),
     ([np.nan, 1.0], "NaN"), ([[1.0], [1.0]], "1D")],
)  # fmt: skip
def test_bad_weights_are_named(weights, complaint):
    with pytest.raises(ValueError, match=complaint):
        TreeSVC().fit(["(A b)", "(C d)"], [0, 1], weights)


@pytest.mark.parametrize("solver", ["exact", "sampled"])
def test_kernels_that_overflow_are_refused(solver):
    wide = "(A " + "(B x) " * 3000 + ")"
    with pytest.raises(ValueError, match="finite"):
        TreeSVC(normalize=False, decay=1.0, solver=solver, max_iter=5).fit([wide, "(C d)"], [0, 1])


def test_kernels_that_overflow_while_they_are_normalised():
    wide = "(A " + "(B x) " * 3000 + ")"
    with pytest.raises(ValueError, match="lower it"):
        TreeSVC(decay=1.0).fit([wide, "(C d)"], [0, 1])


@pytest.mark.hostile
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_a_deep_tree_takes_little_memory():
    run_program("""
        import resource
        from pathlib import Path
        from unkernel import TreeSVC
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (300 << 20),) * 2)
        deep = "".join(f"(L{i % 500} " for i in range(8000)) + "x" + ")" * 8000
        TreeSVC(max_iter=3).fit([deep, "(A b)"], [0, 1])
    """)
