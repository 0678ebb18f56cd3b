"""
Sparse rows where pairs of features decide
==========================================

Text, clicks and forms give sparse binary rows: each feature is present or absent. Often no single feature
decides, but two of them together do. This example compares:

- logistic regression, which sees single features only;
- LightGBM, if it is installed;
- scikit-learn's ``SVC`` with a polynomial kernel of degree 2, which sees all pairs, and the same ``SVC``
  after :func:`unkernel.compile`;
- :class:`~unkernel.PolySVC`, which solves the same problem as ``SVC`` with one weight per pair, and
  ``PolySVC`` with an l1 penalty, which sets most of these weights to 0.
"""

# %%
# Two kinds of rows
# -----------------
#
# We generate rows with about 15 of 100 features each, a few of them frequent and most of them rare. In the
# first task 40 pairs of frequent features vote for the class. In the second task all 4,950 pairs vote, each
# of them with little weight.

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import unkernel
from unkernel import PolySVC

N_TRAIN, N_TEST, N_FEATURES = 4000, 1000, 100


def generate(n_frequent, n_voters, seed):
    """Return rows, and classes decided by votes of pairs of the most frequent features."""
    rng = np.random.default_rng(seed)
    frequency = np.arange(1, N_FEATURES + 1) ** -0.7
    X = rng.random((N_TRAIN + N_TEST, N_FEATURES)) < 15 * frequency / frequency.sum()
    first_feature, second_feature = rng.permutation(np.transpose(np.triu_indices(n_frequent, 1)))[:n_voters].T
    votes = (X[:, first_feature] & X[:, second_feature]) @ rng.normal(size=n_voters)
    return sparse.csr_matrix(X, dtype=float), np.where(votes > np.median(votes), 1, -1)


tasks = {
    "40 pairs vote": generate(30, 40, seed=1),
    "all pairs vote": generate(N_FEATURES, 4950, seed=2),
}

# %%
# The classifiers
# ---------------
#
# C and gamma of ``PolySVC`` were chosen on other generated rows, and ``SVC`` has the same values; LightGBM
# and logistic regression were not tuned. In these rows, pairs matter by construction. In real rows they may
# not: compare the classifiers on your rows.

models = {
    "LogisticRegression": LogisticRegression(C=0.1, max_iter=1000),
    "SVC": SVC(kernel="poly", degree=2, gamma=1, coef0=1, C=0.01),
    "PolySVC": PolySVC(degree=2, gamma=1, C=0.01, random_state=0),
    "PolySVC, l1": PolySVC(degree=2, gamma=1, C=0.1, penalty="l1", loss="squared_hinge", random_state=0),
}
try:
    from lightgbm import LGBMClassifier

    models["LightGBM"] = LGBMClassifier(n_estimators=300, n_jobs=1, verbose=-1)
except ImportError:
    print("LightGBM is not installed and is left out.")


# %%
# Training and prediction
# -----------------------
#
# The times are CPU times of one thread, measured while this page was built. The first call of ``predict`` may
# prepare tables, so the second one is timed.


def cpu_seconds(function, *arguments):
    """Return the result of a function, and its CPU time."""
    start = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - start


def measure(model, X_test, y_test):
    """Return the accuracy, and the microseconds per row of a prediction of many rows."""
    model.predict(X_test)
    answers, seconds = cpu_seconds(model.predict, X_test)
    return (answers == y_test).mean(), 1e6 * seconds / X_test.shape[0]


accuracy, training, prediction = {}, {}, {}
for task, (X, y) in tasks.items():
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=N_TEST, random_state=0)
    for name, model in models.items():
        training[name] = cpu_seconds(model.fit, X_train, y_train)[1]
        accuracy[task, name], prediction[name] = measure(model, X_test, y_test)

fast, compilation = cpu_seconds(lambda: unkernel.compile(models["SVC"], sample=X_train[:1000]))
assert (fast.predict(X_test) == models["SVC"].predict(X_test)).all()
training["SVC, compiled"] = training["SVC"] + compilation
for task in tasks:
    accuracy[task, "SVC, compiled"] = accuracy[task, "SVC"]  # its predictions are those of SVC
_, prediction["SVC, compiled"] = measure(fast, X_test, y_test)

# %%
# Accuracy of both tasks, and the times of the second one:

first, second = tasks
print(f"{'accuracy:':20} {first:>15} {second:>15} {'training':>10} {'a prediction':>14}")
order = ["SVC", "SVC, compiled", "PolySVC", "PolySVC, l1", "LightGBM", "LogisticRegression"]
order = [name for name in order if name in training]
for name in order:
    shares = "".join(f"{accuracy[task, name]:15.1%} " for task in tasks)
    print(f"{name:20} {shares}{training[name]:8.2f} s {prediction[name]:11.2f} µs")

# %%
# Results
# -------
#
# Logistic regression cannot see pairs. If few pairs decide, the l1 penalty finds them; boosted trees come
# next. If all pairs have some influence, the l2 penalty of ``SVC`` and ``PolySVC`` is the better choice.
# ``PolySVC`` reaches the accuracy of ``SVC`` in a fraction of its training time, and the compiled ``SVC``
# gives the predictions of the original without its sum over support vectors.

order.reverse()  # bars are drawn from the bottom up
colors = ["#0072b2" if "Poly" in name or "compiled" in name else "#8a8a8a" for name in order]
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
for task, marker, color in zip(tasks, "os", ("#d55e00", "#009e73"), strict=True):
    left.plot([accuracy[task, name] for name in order], order, marker, color=color, label=task, markersize=8)
left.set_title("test accuracy")
left.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
left.grid(axis="x", alpha=0.3)
left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False)
for axis, values, title in (
    (middle, training, "training, CPU seconds"),
    (right, prediction, "prediction, CPU µs per row"),
):
    bars = axis.barh(order, [values[name] for name in order], color=colors)
    axis.bar_label(bars, [f"{values[name]:.3g}" for name in order], padding=3)
    axis.set(title=f"{title}\n({list(tasks)[1]})", xscale="log")
    axis.margins(x=0.3)
for axis in (left, middle, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
