"""
Training on a Dask cluster
==========================

:class:`~unkernel.distributed.DaskCuttingPlaneSVC` is :class:`~unkernel.CuttingPlaneSVC` for rows that are
spread over the workers of a Dask cluster. The rows stay on the workers; only weights and gradients are sent.
The result has the same certified gap as on one machine.
"""

# %%
# A cluster in this process
# -------------------------
#
# In this example the workers are threads of one process. To use a real cluster, pass the address of its
# scheduler to ``Client``.

import dask
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client
from scipy import sparse

from unkernel import CuttingPlaneSVC
from unkernel.distributed import DaskCuttingPlaneSVC

client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)

# %%
# Rows made on the workers
# ------------------------
#
# Each block is a delayed object: a worker makes it, or reads it, when it is needed. If a worker is lost, its
# blocks are made again on another one.

N_ROWS, N_FEATURES, N_BLOCKS = 2000, 2000, 8
weights = np.random.default_rng(0).normal(size=N_FEATURES)


def block(seed):
    """Return random rows, and their classes: the sign of the sum of their weights."""
    X = sparse.random(N_ROWS, N_FEATURES, 0.01, format="csr", random_state=seed)
    return X, np.where(X @ weights > 0, 1, -1)


blocks = [dask.delayed(block)(seed) for seed in range(N_BLOCKS)]
on_cluster = DaskCuttingPlaneSVC(C=0.1).fit(blocks)
print(f"{on_cluster.n_iter_} passes, gap {on_cluster.gap_:.1e}, objective {on_cluster.objective_:.2f}")

# %%
# The same on one machine
# -----------------------

parts = [block(seed) for seed in range(N_BLOCKS)]
X, y = sparse.vstack([X for X, _ in parts]).tocsr(), np.concatenate([y for _, y in parts])
on_one_machine = CuttingPlaneSVC(C=0.1, solver="cutting_plane").fit(X, y)
print(
    f"{on_one_machine.n_iter_} passes, gap {on_one_machine.gap_:.1e}, "
    f"objective {on_one_machine.objective_:.2f}"
)

X_test, y_test = block(seed=N_BLOCKS)
for name, model in (("cluster", on_cluster), ("one machine", on_one_machine)):
    print(f"{name:12} {model.score(X_test, y_test):.1%} of the test rows correct")

# %%
# What was sent
# -------------
#
# ``traffic_`` counts the bytes of the whole run, by purpose: the new weights, the losses along the line to
# these weights, and the gradients. None of these numbers depends on the number of rows.

client.close()
print(on_cluster.traffic_)

# %%
# The figure
# ----------
#
# Both models have an objective within 0.1 % of the optimum, so their weights are nearly the same.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
left.plot(on_one_machine.coef_.ravel(), on_cluster.coef_.ravel(), ".", color="#0072b2", alpha=0.4)
left.axline((0, 0), slope=1, color="#8a8a8a", linewidth=0.8)
left.set(xlabel="one machine", ylabel="cluster", title="weights of the two models", aspect="equal")
kilobytes = {name: count / 1e3 / on_cluster.n_iter_ for name, count in on_cluster.traffic_.items()}
bars = right.bar(list(kilobytes), list(kilobytes.values()), color="#0072b2")
right.bar_label(bars, fmt="%.0f")
right.set(ylabel="kB per pass, both workers", title="what was sent")
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
