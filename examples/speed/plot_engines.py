"""
Engines: time against memory
============================

:func:`unkernel.compile` can store a kernel machine in several ways, called engines. All engines but one give
the same scores; they differ in the time per row and in the memory of their tables. ``engine="auto"`` measures
some engines and keeps the fastest that fits into ``memory``. This example builds them one by one.
"""

# %%
# A kernel machine with many support vectors
# ------------------------------------------
#
# We train scikit-learn's ``SVC`` with polynomial kernels of degree 2 and 3 on sparse binary rows.

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.svm import SVC

import unkernel

rng = np.random.default_rng(0)
frequency = np.arange(1, 401) ** -0.8
X = rng.random((4000, 400)) < 20 * frequency / frequency.sum()
votes = (X[:, :40] @ np.triu(rng.normal(size=(40, 40)), 1) * X[:, :40]).sum(axis=1)
y = votes > np.median(votes)
X = sparse.csr_matrix(X, dtype=float)
X_train, X_test, y_train = X[:3000], X[3000:], y[:3000]

machines = {
    degree: SVC(kernel="poly", degree=degree, gamma=1, coef0=1, C=C).fit(X_train, y_train)
    for degree, C in ((2, 0.01), (3, 0.001))
}
for degree, svc in machines.items():
    print(f"degree {degree}: {svc.n_support_.sum():,} support vectors, {svc.support_vectors_.nnz:,} entries")

# %%
# All engines
# -----------
#
# ``inverted`` and ``bitsliced`` sum over support vectors, ``expanded`` has one weight per conjunction, and
# ``split`` has weights only for conjunctions of features that are not rare: rare features occur in a smaller
# share of the support vectors than ``rare``. ``pruned`` drops conjunctions of small weight, and is the only
# approximate engine.

engines = {
    "inverted": {"engine": "inverted"},
    "bitsliced": {"engine": "bitsliced"},
    "expanded": {"engine": "expanded"},
    "split, rare 2 %": {"engine": "split", "rare": 0.02},
    "split, rare 10 %": {"engine": "split", "rare": 0.1},
    "pruned": {"engine": "pruned", "threshold": 0.01},
}


def microseconds_per_row(function, repeats):
    """Return the CPU time per test row, in the fastest of several calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function(X_test)
        times.append(time.process_time() - start)
    return 1e6 * min(times) / X_test.shape[0]


def measure_engines(svc):
    """Return megabytes and microseconds per row of each engine."""
    expected = svc.decision_function(X_test)
    points = {"SVC": (svc.support_vectors_.nnz * 12 / 1e6, microseconds_per_row(svc.decision_function, 1))}
    for name, options in engines.items():
        fast = unkernel.compile(svc, **options)
        if fast.exact:
            np.testing.assert_allclose(fast.decision_function(X_test), expected, atol=1e-9)
        else:
            agreement = np.mean(fast.predict(X_test) == svc.predict(X_test))
            print(f"degree {svc.degree}, {name}: {agreement:.1%} of the labels are those of SVC")
        points[name] = fast.nbytes / 1e6, microseconds_per_row(fast.decision_function, 5)
    return points


points_of_degree = {degree: measure_engines(svc) for degree, svc in machines.items()}
for degree, points in points_of_degree.items():
    for name, (megabytes, microseconds) in points.items():
        print(f"degree {degree}, {name:16} {megabytes:7.3f} MB {microseconds:8.2f} µs per row")

# %%
# The figure
# ----------
#
# A sum over support vectors takes about the same time for both degrees. With degree 2 there are few
# conjunctions: ``expanded`` is the fastest engine, and small. With degree 3 its table is large, and ``split``
# is as fast or faster in a fraction of the memory. For ``SVC``, the figure counts 12 bytes for each entry of
# its support vectors.

fig, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharex=True, sharey=True, layout="constrained")
colors = {"SVC": "#8a8a8a", "pruned": "#d55e00"}
for axis, (degree, points) in zip(axes, points_of_degree.items(), strict=True):
    for name, (megabytes, microseconds) in points.items():
        axis.plot(megabytes, microseconds, "o", color=colors.get(name, "#0072b2"), markersize=9)
        place, side = ((-9, 4), "right") if name == "pruned" else ((9, -4), "left")
        axis.annotate(name, (megabytes, microseconds), xytext=place, ha=side, textcoords="offset points")
    axis.set(title=f"degree {degree}", xscale="log", yscale="log", xlabel="memory of the tables, MB")
    axis.margins(x=0.3, y=0.1)
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("CPU µs per row")
plt.show()
