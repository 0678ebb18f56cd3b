"""
Tree kernels on Python functions
================================

Which package of Python's standard library does a function come from? Every function is a syntax tree.
:class:`~unkernel.TreeSVC` compares trees by all the fragments that they share, so nobody has to choose
features. We compare it with a bag of names, which is what most people would try first, and repeat both with
all names hidden.
"""

# %%
# The functions
# -------------
#
# The sources come with Python. Whole modules are held out, so that training functions and test functions come
# from different modules.

import ast
import sysconfig
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.svm import LinearSVC

from unkernel import Forest, TreeSVC

PACKAGES = ("asyncio", "email", "importlib", "unittest", "xml")


def functions(path):
    """Return the functions of a file that are neither very short nor very long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd escapes in old sources
        module = ast.parse(path.read_bytes())
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and 20 <= sum(1 for _ in ast.walk(node)) <= 300:
            yield node


nodes, labels, held_out = [], [], []
for package in PACKAGES:
    files = sorted((Path(sysconfig.get_path("stdlib")) / package).rglob("*.py"))
    for number, file in enumerate(file for file in files if "test" not in file.parent.name):
        functions_of_file = list(functions(file))
        nodes += functions_of_file
        labels += [package] * len(functions_of_file)
        held_out += [number % 3 == 1] * len(functions_of_file)
labels, test = np.array(labels), np.array(held_out)
print(f"{(~test).sum():,} functions to train on, {test.sum()} to test on")

# %%
# Hiding names
# ------------
#
# In a copy of each tree, names of variables, functions, attributes and arguments, and strings, are replaced.


class Nameless(ast.NodeTransformer):
    """Replace every name by an underscore."""

    def generic_visit(self, node):
        for field in ("id", "attr", "arg", "name", "module", "value"):
            if isinstance(getattr(node, field, None), str | bytes):
                setattr(node, field, "_")
        return super().generic_visit(node)


hidden = [Nameless().visit(ast.parse(ast.unparse(node)).body[0]) for node in nodes]


def names(node):
    """Return the names in a function."""
    fields = (
        getattr(part, field, None) for part in ast.walk(node) for field in ("id", "attr", "arg", "name")
    )
    return [name for name in fields if isinstance(name, str)]


def kinds(node):
    """Return the kinds of the nodes of a function."""
    return [type(part).__name__ for part in ast.walk(node)]


def bag(analyzer, items):
    """Return one row per item, with a 1 for everything that `analyzer` finds in it."""
    return CountVectorizer(analyzer=analyzer, binary=True).fit_transform(items).astype(float)


# %%
# Bags and trees
# --------------

tree = TreeSVC(kernel="sst", decay=0.1, C=10)
linear = LinearSVC(C=0.1, random_state=0)
bag_of_names = bag(names, nodes)
contenders = {
    "bag of names": (linear, bag_of_names),
    "trees": (tree, Forest(nodes)),
    "trees and bag of names": (tree, Forest(nodes, vectors=bag_of_names)),
    "bag of node kinds, names hidden": (linear, bag(kinds, hidden)),
    "trees, names hidden": (tree, Forest(hidden)),
}
largest = max(PACKAGES, key=lambda package: np.sum(labels[~test] == package))
accuracy = {f"always “{largest}”": np.mean(labels[test] == largest)}
for name, (model, X) in contenders.items():
    accuracy[name] = model.fit(X[~test], labels[~test]).score(X[test], labels[test])
    print(f"{name:32} {accuracy[name]:.1%}")

# %%
# Results
# -------
#
# Names reveal most, and a bag of names is hard to beat; names and trees together are best. With names hidden,
# only the structure is left. Trees see more of it than the bag of node kinds, which is no better than always
# predicting the largest package.

fig, axis = plt.subplots(figsize=(8, 3), layout="constrained")
order = list(accuracy)[::-1]
colors = ["#0072b2" if name.startswith("trees") else "#8a8a8a" for name in order]
bars = axis.barh(order, [accuracy[name] for name in order], color=colors)
axis.bar_label(bars, [f"{accuracy[name]:.1%}" for name in order], padding=3)
axis.set(xlim=(0, 1), xlabel="share of test functions whose package is found")
axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
axis.spines[["top", "right"]].set_visible(False)
plt.show()
