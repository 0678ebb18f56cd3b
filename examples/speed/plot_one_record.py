"""
One record at a time: from a dict to an answer in microseconds
==============================================================

A service gets one record per request. scikit-learn's pipelines are made for tables: for one row, validation
and data frames take nearly all of the time. :func:`unkernel.compile` turns the fitted pipeline into a
classifier that takes a dict.
"""

# %%
# A pipeline of scikit-learn
# --------------------------
#
# The records are generated: two categories and three numbers.

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import unkernel
from unkernel import PolySVC, RecordEncoder

rng = np.random.default_rng(0)
people = pd.DataFrame(
    {
        "age": rng.integers(18, 80, 5000),
        "job": rng.choice(["clerk", "pilot", "smith", "nurse"], 5000),
        "region": rng.choice(["north", "south", "east", "west"], 5000),
        "hours": rng.integers(10, 60, 5000),
        "gain": rng.exponential(1000, 5000).round(2),
    }
)
income = np.where((people.job == "pilot") & (people.age > 35) | (people.gain > 2500), "high", "low")

columns = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["job", "region"]),
    (StandardScaler(), ["age", "hours", "gain"]),
)
linear = make_pipeline(columns, LogisticRegression()).fit(people, income)

# %%
# Compile it
# ----------
#
# Before it returns, ``compile`` compares its predictions with those of the pipeline. The compiled classifier
# can be saved; loading it and predicting with it needs only numpy and nanobind-backend.

fast = unkernel.compile(linear)
record = people.iloc[0].to_dict()
print(record)
print(fast.predict_one(record), fast.predict_proba_one(record))

# %%
# A pipeline with :class:`~unkernel.RecordEncoder` and :class:`~unkernel.PolySVC` is compiled in the same way.
# It sees pairs of columns, which this income depends on, and answers about as fast.

pairs = make_pipeline(RecordEncoder(), PolySVC(degree=2, C=0.1)).fit(people[:4000], income[:4000])
fast_pairs = unkernel.compile(pairs)
for name, model in (("logistic regression", linear), ("PolySVC", pairs)):
    print(f"{name}: {model.score(people[4000:], income[4000:]):.1%}")

# %%
# Latency
# -------
#
# Each call is timed by itself, in CPU time: a frame of one row for scikit-learn, a dict for the compiled
# classifiers. Reading the clock is part of the time, and takes some tenths of a microsecond.

records = people.to_dict("records")
frames = [people.iloc[[place]] for place in range(200)]


def latencies(predict, questions):
    """Return the CPU time of each call, in microseconds."""
    microseconds = []
    for question in questions:
        start = time.thread_time_ns()
        predict(question)
        microseconds.append((time.thread_time_ns() - start) / 1000)
    return np.array(microseconds)


measured = {
    "scikit-learn, frame of one row": latencies(linear.predict, frames),
    "the same, compiled": latencies(fast.predict_one, records),
    "PolySVC, degree 2, compiled": latencies(fast_pairs.predict_one, records),
}
for name, times in measured.items():
    print(f"{name:32} median {np.median(times):8.1f} µs, 99 % within {np.percentile(times, 99):8.1f} µs")

# %%
# For each time, the figure shows the share of calls that took at most this time, up to 99 %.

fig, axis = plt.subplots(figsize=(8, 4), layout="constrained")
for (name, times), color in zip(measured.items(), ("#8a8a8a", "#0072b2", "#d55e00"), strict=True):
    shares = np.arange(1, 100) / 100
    label = f"{name}: median {np.median(times):,.1f} µs"
    axis.plot(np.quantile(times, shares), shares, color=color, label=label, linewidth=2)
axis.set(xscale="log", xlabel="CPU microseconds per record", ylabel="share of calls")
axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), frameon=False)
axis.grid(alpha=0.3)
axis.spines[["top", "right"]].set_visible(False)
plt.show()
