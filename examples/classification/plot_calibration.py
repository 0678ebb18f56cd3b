"""
Probabilities that can be trusted
=================================

A support vector machine gives scores, not probabilities. There are two ways to get probabilities:
:class:`~unkernel.PolyLogisticRegression` models them directly, and scikit-learn's ``CalibratedClassifierCV``
fits them to the scores of a :class:`~unkernel.PolySVC` on held-out folds. This example shows how reliable
both are.
"""

# %%
# Generated rows with known probabilities
# ---------------------------------------
#
# Pairs of binary features change the log-odds of the class, so we know the probability of each row.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.metrics import log_loss

import unkernel
from unkernel import PolyLogisticRegression, PolySVC

rng = np.random.default_rng(0)
X = (rng.random((12_000, 40)) < 0.2).astype(float)
log_odds = (X @ np.triu(rng.normal(scale=0.8, size=(40, 40)), 1) * X).sum(axis=1)
probability = 1 / (1 + np.exp(-(log_odds - np.median(log_odds))))
y = (rng.random(len(X)) < probability).astype(int)
X_train, X_test, y_train, y_test = X[:6000], X[6000:], y[:6000], y[6000:]
print(f"log loss of the true probabilities: {log_loss(y_test, probability[6000:]):.3f}")

# %%
# Three sources of probabilities
# ------------------------------
#
# The first one is naive: the sigmoid of the SVM's score. The score of an SVM is not a log-odds, so these
# probabilities are wrong.

svm = PolySVC(degree=2, gamma=1, C=0.01, random_state=0)
naive = 1 / (1 + np.exp(-svm.fit(X_train, y_train).decision_function(X_test)))
calibrated = CalibratedClassifierCV(svm, cv=3).fit(X_train, y_train)
logistic = PolyLogisticRegression(degree=2, gamma=1, penalty="l2", C=0.3).fit(X_train, y_train)
probabilities_of = {
    "PolySVC, sigmoid of score": naive,
    "PolySVC, calibrated": calibrated.predict_proba(X_test)[:, 1],
    "PolyLogisticRegression": logistic.predict_proba(X_test)[:, 1],
}
for name, probabilities in probabilities_of.items():
    print(f"{name:25} log loss {log_loss(y_test, probabilities):.3f}")

# %%
# These losses do not compare the two learners: on other generated rows, C was searched for
# ``PolyLogisticRegression`` and not for ``PolySVC``.
#
# The figure
# ----------
#
# On the diagonal, the probabilities are right: of the rows with a predicted probability of about 0.8, 80 per
# cent are positive.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
colors = ("#8a8a8a", "#d55e00", "#0072b2")
for (name, probabilities), color, marker in zip(probabilities_of.items(), colors, "sDo", strict=True):
    CalibrationDisplay.from_predictions(
        y_test, probabilities, n_bins=10, strategy="quantile", name=name, ax=left, color=color, marker=marker
    )
    right.hist(probabilities, bins=25, range=(0, 1), histtype="step", color=color, linewidth=2)
left.set(xlabel="predicted probability", ylabel="share of positive rows", title="calibration")
left.legend(loc="upper left", frameon=False)
right.set(xlabel="predicted probability", ylabel="test rows", title="how sure they are")
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Compiled models keep their probabilities:

fast = unkernel.compile(logistic)
np.testing.assert_allclose(fast.predict_proba(X_test), logistic.predict_proba(X_test), atol=1e-9)
