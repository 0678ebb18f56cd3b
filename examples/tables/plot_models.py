"""
A suitable model for a table, chosen automatically
==================================================

:class:`~unkernel.TableEstimator` compares models on records that it holds out, and keeps the best. Here it
predicts how diabetes progresses in a year, from ten columns about 442 patients.
"""

# %%
# Compare
# -------
#
# The target has many values, so it is predicted as a number. There are few records, so models are compared by
# cross-validation with five folds.

import time

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from unkernel import TableEstimator

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

start = time.process_time()
estimator = TableEstimator().fit(X_train, y_train)
print(f"predicts {estimator.task_}; kept {estimator.best_.name!r} after {time.process_time() - start:.1f} s")

losses = {}
for trial in estimator.trials_:
    losses[trial.name] = min(trial.loss, losses.get(trial.name, trial.loss))
for name, loss in losses.items():
    print(f"{name:12} root mean squared error {loss:.1f} on held-out records")

# %%
# Compare with boosting
# ---------------------
#
# Neither model has seen the test records.

boosting = HistGradientBoostingRegressor(random_state=0).fit(X_train, y_train)
for name, model in (("unkernel", estimator), ("boosting", boosting)):
    print(f"{name:12} R squared {model.score(X_test, y_test):.3f} on test records")

# %%
# All paths
# ---------
#
# Each model has a path of ``C``, the weight of the loss: small values give simple models.

for name in list(losses)[1:]:
    path = [trial for trial in estimator.trials_ if trial.name == name]
    plt.plot([trial.C for trial in path], [trial.loss for trial in path], marker="o", label=name)
plt.axhline(losses["mean"], color="gray", linestyle=":")
plt.xscale("log")
plt.xlabel("C")
plt.ylabel("root mean squared error")
plt.legend()
plt.show()
