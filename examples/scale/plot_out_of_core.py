"""
Training on files, and resuming after a stop
============================================

:class:`~unkernel.CuttingPlaneSVC` and :class:`~unkernel.RankSVM` train on files that do not fit into memory.
Give ``fit`` a path, a pattern or a list of paths. The files are read once, in bounded memory, into a packed
copy, and each pass streams that copy. With ``checkpoint=``, a stopped run resumes after its last pass.
"""

# %%
# Three files of texts
# --------------------
#
# We generate bags of words, 10,000 in each file, in the svmlight format. Real files may be larger than
# memory, and compressed.

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from unkernel import CuttingPlaneSVC, write_svmlight

N_ROWS, N_WORDS, LENGTH = 10_000, 5000, 40
weights = np.random.default_rng(0).normal(size=N_WORDS)


def texts(seed):
    """Return bags of words by Zipf's law, and the sign of the sum of their weights."""
    rng = np.random.default_rng(seed)
    words = np.minimum(rng.zipf(1.3, (N_ROWS, LENGTH)) - 1, N_WORDS - 1)
    X = sparse.csr_matrix(
        (np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, LENGTH)), (N_ROWS, N_WORDS)
    )
    X.sum_duplicates()
    X.data[:] = 1  # packed rows of ones need no values
    return X, np.where(X @ weights > 0, 1, -1)


folder = tempfile.TemporaryDirectory()
for part in range(3):
    write_svmlight(Path(folder.name) / f"part-{part}.svm", *texts(seed=part))
files = str(Path(folder.name) / "part-*.svm")

# %%
# Train from the files
# --------------------
#
# The packed copy stays beside the first file, so the next ``fit`` on the same files need not read them again.

clf = CuttingPlaneSVC(C=0.01).fit(files)
print(f"{clf.n_iter_} passes, certified gap {clf.gap_:.1e}")
X_test, y_test = texts(seed=3)
print(f"{clf.score(X_test, y_test):.1%} of the test rows are classified correctly")

sizes = {path.name: path.stat().st_size / 1e6 for path in sorted(Path(folder.name).iterdir())}
for name, megabytes in sizes.items():
    print(f"{name:18} {megabytes:5.1f} MB")

# %%
# Stop and resume
# ---------------
#
# Here ``max_iter`` simulates a machine that fails: the first run ends after three passes and warns that it
# has not converged, the next run resumes where the first one stopped, and so on. When the gap is reached, the
# checkpoint is removed.

checkpoint = Path(folder.name) / "kept"
gaps = {}
with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
    for passes in range(3, 100, 3):
        run = CuttingPlaneSVC(C=0.01, checkpoint=checkpoint, max_iter=passes).fit(files)
        gaps[run.n_iter_] = run.gap_
        if run.gap_ <= run.tol:
            break
print(f"{len(gaps)} runs, {run.n_iter_} passes in all")
assert not checkpoint.exists()

# %%
# Passes do not grow with the rows
# --------------------------------
#
# If C times the number of rows is constant, the number of passes does not grow with the rows: the training
# time is linear in the size of the files.

passes = {}
for count in (1, 2, 3):
    part = [str(Path(folder.name) / f"part-{number}.svm") for number in range(count)]
    own_copy = Path(folder.name) / f"{count}.rows"
    passes[count * N_ROWS] = CuttingPlaneSVC(C=0.03 / count, cache=own_copy).fit(part).n_iter_
folder.cleanup()

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.plot(gaps.keys(), gaps.values(), color="#0072b2", marker="o")
left.axhline(clf.tol, color="#8a8a8a", linestyle="--", label=f"tol = {clf.tol:g}")
left.set(yscale="log", xlabel="passes", title="certified gap at the end of each run", xticks=list(gaps))
left.legend(frameon=False)
bars = right.bar([f"{rows:,}" for rows in passes], passes.values(), color="#0072b2")
right.bar_label(bars)
right.set(xlabel="rows", title="passes to a gap of 0.001")
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
