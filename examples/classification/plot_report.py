"""
A report of two models
======================

Every classifier has a method ``report``, and :func:`unkernel.report.report` compares several models on the
same rows. A report is one page of HTML that needs no network: measures with confidence intervals, curves,
thresholds with costs, and explained mistakes.
"""

# %%
# Two models
# ----------
#
# The data are scikit-learn's breast cancer measurements. A feature is 1 if a measurement is above its median.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from unkernel import PolyLogisticRegression, PolySVC
from unkernel.report import report

data = load_breast_cancer(as_frame=True)
X = (data.data > data.data.median()).astype(float).add_suffix(" is large")
y = data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)

models = {
    "log-linear, degree 2": PolyLogisticRegression(degree=2, C=0.3).fit(X_train, y_train),
    "SVM, degree 1": PolySVC(degree=1, C=0.001).fit(X_train, y_train),
}

# %%
# The report
# ----------
#
# ``save`` writes the page, and notebooks display it. ``costs=(1, 5)`` means that a false negative costs five
# times as much as a false positive; the page then also lists the threshold with the lowest cost.

page = report(models, X_test, y_test, costs=(1, 5))
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "report.html"
    page.save(path)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")

# %%
# ``to_frame`` returns the measures as a data frame:

measures = page.to_frame()
print(measures[["model", "measure", "value", "low", "high"]].round(3).to_string(index=False))

# %%
# Intervals
# ---------
#
# The page shows a 95 % confidence interval for each measure. The intervals of the two models overlap: 228
# test rows are too few to tell which model is better.

measure_names = ["accuracy", "precision", "recall", "F1", "ROC area"]
fig, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
for shift, color, marker, name in zip((-0.12, 0.12), ("#0072b2", "#d55e00"), "os", models, strict=True):
    of_model = measures[measures.model == name].set_index("measure").loc[measure_names]
    places = np.arange(len(measure_names)) + shift
    axis.errorbar(
        of_model.value,
        places,
        xerr=[of_model.value - of_model.low, of_model.high - of_model.value],
        fmt=marker,
        color=color,
        capsize=4,
        label=name,
    )
axis.set_yticks(range(len(measure_names)), measure_names)
axis.invert_yaxis()
axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
axis.set_xlabel("on the test rows, with intervals of 95 % confidence")
axis.legend(loc="upper left", frameon=False)
axis.grid(axis="x", alpha=0.3)
axis.spines[["top", "right"]].set_visible(False)
plt.show()
