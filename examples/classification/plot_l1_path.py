"""
From one conjunction to hundreds: a path of C with an l1 penalty
================================================================

With an l1 penalty most weights are exactly 0. A small C gives a model of a few conjunctions, which you can
read; a larger C adds more. ``path`` fits one model per value of C and prepares the rows only once.

The data are scikit-learn's breast cancer measurements. Each of the ten mean values becomes four binary
features by its quartiles.
"""

# %%
# The path
# --------
#
# The optimum is over *all* pairs of features, not over pairs that were selected in advance. Each model has a
# certified gap: the objective is within 0.1 % of the optimum.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import unkernel
from unkernel import PolySVC, RecordEncoder

data = load_breast_cancer()
records = [dict(zip(data.feature_names[:10], row[:10].tolist(), strict=True)) for row in data.data]
labels = data.target_names[data.target]
train, test, train_labels, test_labels = train_test_split(records, labels, random_state=0)

encoder = RecordEncoder(n_bins=4).fit(train)
X_train, X_test = encoder.transform(train), encoder.transform(test)

Cs = np.geomspace(0.005, 1, 16)
learner = PolySVC(degree=2, gamma=0.5, penalty="l1", loss="squared_hinge")
models = learner.path(X_train, train_labels, Cs)
assert all(model.gap_ <= model.tol for model in models)

sizes = [model.to_model().n_conjunctions for model in models]
accuracies = [model.score(X_test, test_labels) for model in models]
for C, size, accuracy in list(zip(Cs, sizes, accuracies, strict=True))[::3]:
    print(f"C = {C:.3f}: {size:3} conjunctions, {accuracy:.1%} of the test rows correct")

# %%
# Which conjunctions come first
# -----------------------------
#
# ``heaviest`` returns the weights of each model with names. The figure shows the paths of those weights that
# are largest at the end.


def weights(model):
    """Return the nonzero weights of a model; negative weights favour the first class."""
    compiled = unkernel.compile(make_pipeline(encoder, model))  # knows the names of the columns
    return {
        conjunction.label: conjunction.weight
        if conjunction.for_class == model.classes_[1]
        else -conjunction.weight
        for conjunction in compiled.heaviest(1000)
    }


weights_along_path = [weights(model) for model in models]
followed = sorted(weights_along_path[-1], key=lambda label: -abs(weights_along_path[-1][label]))[:6]

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=(3, 2))
palette = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
for label, color in zip(followed, palette, strict=True):
    left.plot(
        Cs,
        [weights_of_model.get(label, 0.0) for weights_of_model in weights_along_path],
        color=color,
        label=label,
        linewidth=2,
    )
left.axhline(0, color="#8a8a8a", linewidth=0.8)
left.set(xscale="log", xlabel="C", title=f"weights (below 0: speaks for “{models[0].classes_[0]}”)")
fig.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=8)

right.plot(Cs, sizes, color="#0072b2", marker="o", markersize=4)
right.set(xscale="log", xlabel="C", title="size and accuracy")
right.set_ylabel("conjunctions with a weight", color="#0072b2")
shares = right.twinx()
shares.plot(Cs, accuracies, color="#d55e00", marker="s", markersize=4)
shares.set_ylim(0.5, 1.0)
shares.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
right.tick_params(axis="y", colors="#0072b2")
shares.tick_params(axis="y", colors="#d55e00")
shares.set_ylabel("test accuracy", color="#d55e00")
for axis in (left, right, shares):
    axis.spines["top"].set_visible(False)
plt.show()
