"""
Where not to use unkernel: few dense rows
=========================================

:class:`~unkernel.PolySVC` is fast on sparse rows. This data set, on which it is not, has images of digits:
1,257 dense rows of 64 pixels. A row has two thousand pairs of pixels, while ``SVC`` compares it with few
other rows.
"""

# %%
# The same kernel, two solvers
# ----------------------------
#
# Both train (x'z + 1)^degree with C = 1. ``PolySVC`` trains one class against the rest, ``SVC`` each pair of
# classes.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from unkernel import PolySVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.3, random_state=0, stratify=y)


def cpu_seconds(function, *arguments):
    """Return the result of a function, and its CPU time."""
    start = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - start


training, prediction = {}, {}
for degree in (2, 3):
    for model in (
        PolySVC(degree, gamma=1, random_state=0),
        SVC(kernel="poly", degree=degree, gamma=1, coef0=1),
    ):
        name = f"{type(model).__name__}, degree {degree}"
        _, training[name] = cpu_seconds(model.fit, X_train, y_train)
        model.predict(X_test[:1])  # prepares tables
        answers, seconds = cpu_seconds(model.predict, X_test)
        prediction[name] = 1e6 * seconds / len(X_test)
        print(f"{name:18} {np.mean(answers == y_test):.1%} correct")

# %%
# Results
# -------
#
# The accuracy is the same, and ``SVC`` trains faster. With more values per row the difference grows, because
# the number of pairs grows with the square of their number. Use another learner than ``PolySVC`` if
#
# - rows are few, or dense with thousands of values each: ``SVC``;
# - single features are enough: ``LinearSVC``, or :class:`~unkernel.CuttingPlaneSVC` for very many rows;
# - thresholds on a few numbers decide: gradient boosted trees;
# - the kernel must be RBF: ``SVC``. :func:`unkernel.compile` makes its predictions a few times faster, not
#   hundreds of times.

names = list(training)[::-1]
colors = ["#0072b2" if name.startswith("Poly") else "#8a8a8a" for name in names]
fig, axes = plt.subplots(1, 2, figsize=(9, 2.6), sharey=True, layout="constrained")
for axis, values, title in (
    (axes[0], training, "training, CPU seconds"),
    (axes[1], prediction, "prediction, CPU µs per row"),
):
    bars = axis.barh(names, [values[name] for name in names], color=colors)
    axis.bar_label(bars, [f"{values[name]:.2g}" for name in names], padding=3)
    axis.set_title(title)
    axis.margins(x=0.2)
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
