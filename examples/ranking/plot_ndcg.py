"""
Ranking documents: NDCG by the number of results
================================================

A search engine orders the documents of a query. The top of the list matters most, and NDCG@k measures it: it
is 1 if the first k documents are in the best order. This example compares rankings by single features with
rankings that weigh pairs of documents by NDCG, or use conjunctions of two features.
"""

# %%
# Queries and documents
# ---------------------
#
# If the environment variable ``UNKERNEL_DATA`` names a folder with the data sets of the benchmarks, the
# queries are those of MQ2008 (LETOR). Otherwise they are generated: 20 documents per query, each with eight
# features and a relevance from 0 to 4 that depends on single features and on two products of features.

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

import unkernel
from unkernel import RankSVM
from unkernel.cutplane import ndcg_score


def generate(n_queries, seed):
    """Return documents, their relevance and their queries."""
    rng = np.random.default_rng(seed)
    X = rng.random((20 * n_queries, 8))
    use = X[:, 0] + X[:, 1] + 4 * (X[:, 2] - 0.5) * (X[:, 3] - 0.5) - 4 * (X[:, 4] - 0.5) * (X[:, 5] - 0.5)
    use += rng.normal(scale=0.3, size=len(X))
    relevance = np.digitize(use, np.quantile(use, [0.5, 0.75, 0.9, 0.97]))
    return X, relevance, np.repeat(np.arange(n_queries), 20)


if "UNKERNEL_DATA" in os.environ:
    parts = [unkernel.datasets.load("mq2008.fold1", part) for part in ("train", "test")]
    (X, y, qid), (X_test, y_test, qid_test) = ((part.X.toarray(), part.y, part.qid) for part in parts)
    print("The queries are those of MQ2008.")
else:
    (X, y, qid), (X_test, y_test, qid_test) = generate(200, seed=0), generate(200, seed=1)
    print("UNKERNEL_DATA is not set: the queries are generated.")
print(f"{len(np.unique(qid))} training queries with {len(y):,} documents")

# %%
# Four rankings
# -------------
#
# Ridge regression predicts the relevance and ignores queries. ``RankSVM`` compares documents of the same
# query. With ``pair_weight="ndcg"``, a wrong pair costs as much as it would lower NDCG. With ``degree=2``,
# all products of two features have weights, too.

scores = {
    "ridge regression": Ridge(alpha=1).fit(X, y).predict(X_test),
    "RankSVM": RankSVM(C=1).fit(X, y, qid=qid).decision_function(X_test),
    "RankSVM, pairs weighed by NDCG": RankSVM(C=1, pair_weight="ndcg")
    .fit(X, y, qid=qid)
    .decision_function(X_test),
    "RankSVM, degree 2": RankSVM(C=1, degree=2, gamma=1.0).fit(X, y, qid=qid).decision_function(X_test),
}
for name, scores_of_method in scores.items():
    print(f"{name:31} NDCG@10 {ndcg_score(y_test, scores_of_method, qid_test, k=10):.3f}")

# %%
# NDCG at every depth
# -------------------
#
# In the generated queries, products of features decide, and ``degree=2`` finds them. This is not always so:
# on MQ2008, rankings by single features are better. Compare both by cross-validation.

depths = range(1, 11)
fig, axis = plt.subplots(figsize=(8, 4), layout="constrained")
for (name, scores_of_method), color, marker in zip(
    scores.items(), ("#8a8a8a", "#56b4e9", "#009e73", "#0072b2"), "sD^o", strict=True
):
    curve = [ndcg_score(y_test, scores_of_method, qid_test, k=k) for k in depths]
    axis.plot(depths, curve, color=color, marker=marker, label=name)
axis.set(xlabel="k", ylabel="NDCG@k of the test queries", xticks=depths)
axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, frameon=False)
axis.grid(alpha=0.3)
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What the ranking has learned
# ----------------------------

ranker = RankSVM(C=1, degree=2, gamma=1.0).fit(X, y, qid=qid)
for conjunction in ranker.heaviest(4):
    print(conjunction)
