"""
Which conjunctions a model has found
====================================

A kernel SVM of degree 2 uses all pairs of features, but it does not show which of them matter: its model is a
list of support vectors. :class:`~unkernel.PolySVC` has one weight per conjunction of features, so you can
read what it has learned, in the names of your own columns.

The data are generated, so that we know which conjunctions it should find.
"""

# %%
# Customers who leave
# -------------------
#
# A customer is a dict. Two rules decide, and each needs two columns: monthly contracts with four or more
# complaints, and optical fibre in the first year. One label in twenty is flipped at random.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import unkernel
from unkernel import PolySVC, RecordEncoder

rng = np.random.default_rng(0)


def customer():
    """Return a random customer."""
    return {
        "contract": str(rng.choice(["monthly", "yearly"])),
        "internet": str(rng.choice(["fibre", "cable", "none"])),
        "payment": str(rng.choice(["card", "transfer", "cheque"])),
        "months": int(rng.integers(1, 60)),
        "complaints": int(rng.poisson(2)),
    }


def leaves(record):
    """Return the label of a customer."""
    by_rule = (record["contract"] == "monthly" and record["complaints"] >= 4) or (
        record["internet"] == "fibre" and record["months"] <= 12
    )
    return "leaves" if by_rule != (rng.random() < 0.05) else "stays"


customers = [customer() for _ in range(4000)]
labels = [leaves(one) for one in customers]
train, test, train_labels, test_labels = train_test_split(customers, labels, random_state=0)

# %%
# Train and compile
# -----------------
#
# :class:`~unkernel.RecordEncoder` turns columns into features with names: one per category, and one per
# interval of numbers. The compiled pipeline takes dicts. ``penalty="l1"`` sets most weights to exactly 0.

learner = PolySVC(degree=2, gamma=1, penalty="l1", loss="squared_hinge", C=0.1, random_state=0)
pipeline = make_pipeline(RecordEncoder(n_bins=6), learner).fit(train, train_labels)
model = unkernel.compile(pipeline)
print(f"{np.mean(model.predict(test) == test_labels):.1%} of the test customers are classified correctly")
print(f"{learner.to_model().n_conjunctions} conjunctions have a weight")

# %%
# The largest weights
# -------------------
#
# ``heaviest`` lists them, each with the class that it supports. Both rules appear, divided by the intervals
# of the encoder.

heaviest = model.heaviest(12)
for conjunction in heaviest[:5]:
    print(conjunction)

# %%
# A pair of features, not a single feature, has the largest weight:

assert " and " in heaviest[0].label

color = {"leaves": "#d55e00", "stays": "#0072b2"}
fig, axis = plt.subplots(figsize=(8.5, 4), layout="constrained")
axis.barh(
    [conjunction.label for conjunction in heaviest],
    [conjunction.weight for conjunction in heaviest],
    color=[color[conjunction.for_class] for conjunction in heaviest],
)
axis.invert_yaxis()
axis.set_xlabel("weight")
keys = [Patch(color=shade, label=f"speaks for “{name}”") for name, shade in color.items()]
axis.legend(handles=keys, loc="lower right", frameon=False)
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Why this customer?
# ------------------
#
# ``explain_one`` lists the contributions to the score of one record. They add up to the score.

print(
    model.explain_one(
        {"contract": "monthly", "internet": "fibre", "payment": "card", "months": 3, "complaints": 5}
    )
)
