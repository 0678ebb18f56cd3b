"""
A rare class: ROC area and F1 as objectives
===========================================

If one class is rare, the error rate says little: a classifier that never predicts this class is nearly always
right. :class:`~unkernel.CuttingPlaneSVC` can optimise measures of all predictions together instead, such as
the F1 score and the area under the ROC curve.
"""

# %%
# Texts, few of them positive
# ---------------------------
#
# We generate bags of words: 1,000 words by Zipf's law, 30 of them in a text on average. One text in twenty is
# positive. In positive texts, 150 of the words are 2.5 times as frequent as in others.

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.preprocessing import normalize

from unkernel import CuttingPlaneSVC

N_TEXTS, N_WORDS = 4000, 1000
frequency = np.arange(1, N_WORDS + 1) ** -0.8
frequency *= 30 / frequency.sum()
telling = np.random.default_rng(0).permutation(np.arange(20, N_WORDS))[:150]


def texts(seed):
    """Return bags of words, and 1 for positive texts."""
    rng = np.random.default_rng(seed)
    positive = rng.random(N_TEXTS) < 0.05
    chances = np.tile(frequency, (N_TEXTS, 1))
    chances[np.ix_(positive, telling)] *= 2.5
    words = sparse.csr_matrix(rng.random(chances.shape) < chances, dtype=float)
    return normalize(words), positive.astype(int)


(X_train, y_train), (X_test, y_test) = texts(seed=1), texts(seed=2)
print(f"{y_train.sum()} of {len(y_train):,} training texts are positive")

# %%
# Three objectives, and class weights
# -----------------------------------
#
# ``path`` trains one model per value of C. ``class_weight="balanced"``, the usual remedy for rare classes, is
# compared, too.

Cs = np.geomspace(0.1, 10, 5)
learners = {
    "error rate": CuttingPlaneSVC(),
    "error rate, balanced classes": CuttingPlaneSVC(class_weight="balanced"),
    "F1": CuttingPlaneSVC(objective="f1"),
    "ROC area": CuttingPlaneSVC(objective="roc_area"),
}
f1, area = {}, {}
for name, learner in learners.items():
    models = learner.path(X_train, y_train, Cs)
    f1[name] = [f1_score(y_test, model.predict(X_test), zero_division=0) for model in models]
    area[name] = [roc_auc_score(y_test, model.decision_function(X_test)) for model in models]
    print(f"{name:30} best F1 {max(f1[name]):.3f}, best ROC area {max(area[name]):.4f}")

# %%
# Results
# -------
#
# The plain SVM finds no text of the rare class unless C is large. The other three do, at every C of the
# figure. With C = 0.03 and 0.01, which are not in the figure, the objective F1 finds no weights on these
# texts either, and warns. Each at its best C, all four have about the same ROC area; the model trained for
# the ROC area, with a small C, also has the best F1. In practice, choose C by cross-validation for each
# objective before you compare them.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for axis, values, title in (
    (axes[0], f1, "F1 score of test texts"),
    (axes[1], area, "ROC area of test texts"),
):
    for (name, values_by_cost), color, marker in zip(
        values.items(), ("#8a8a8a", "#e69f00", "#d55e00", "#0072b2"), "sD^o", strict=True
    ):
        axis.plot(Cs, values_by_cost, color=color, marker=marker, label=name)
    axis.set(xscale="log", xlabel="C", title=title)
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
plt.show()
