"""Trees for tests: random ones, labelled ones from a seed; and slow kernels of whole examples."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from reference.tree_kernels import kernel, parse, write
from unkernel import Forest
from unkernel.data.trees.forest import Vectors


def trees(inner="ABC", words="xyz", *, max_leaves=10, most_children=3):
    """Draw small trees with few labels, so that many match."""
    leaf = st.tuples(st.sampled_from(words), st.just(()))
    return st.recursive(
        leaf,
        lambda subtrees: st.tuples(
            st.sampled_from(inner), st.lists(subtrees, min_size=1, max_size=most_children).map(tuple)
        ),
        max_leaves=max_leaves,
    )


def text(tree):
    """Return the tree in brackets, including a single leaf."""
    return write(tree) if tree[1] else f"({tree[0]})"


def as_trees(texts):
    return [parse(text) for text in texts]


def gram(a, b, kind, decay=0.4, width_decay=0.4, *, normalize=True, value=kernel):
    """Return all kernels of the trees of a (rows) with those of b, one by one."""
    return np.array(
        [[value(x, z, kind, decay, width_decay, normalize=normalize) for z in b] for x in a]
    ).reshape(len(a), len(b))


# --- Chains: too deep for recursion ----------------------------------------------------------------


def chain(nodes, word="x", label="X"):
    """Return `(X (X (X x)))`, in brackets."""
    return f"({label} " * nodes + word + ")" * nodes


def chain_kernel(n, m, kind, decay, width_decay):
    """Return K(chain(n), chain(m)), not normalised, by one sum over the smaller height of two nodes."""
    heights = np.arange(1, min(n, m) + 1)
    if kind == "st":
        return float(np.sum(decay**heights))
    step = decay if kind == "sst" else width_decay
    single_node = step if kind == "sst" else width_decay * decay**2
    # Nodes of different heights h < k have h - 1 links in common; of the same height, also the word.
    different = np.empty(len(heights) + 1)
    different[0] = 0.0 if kind == "sst" else single_node
    for i in range(1, len(different)):
        different[i] = single_node + step * different[i - 1]
    same = np.empty(len(heights))
    same[0] = decay if kind == "sst" else single_node + width_decay * single_node
    for i in range(1, len(same)):
        same[i] = single_node + step * same[i - 1]
    different_heights = (n - heights) + (m - heights)
    leaves = 0.0 if kind == "sst" else single_node
    return math.fsum(different_heights * different[:-1]) + math.fsum(same) + leaves


# --- Examples: several trees and vectors each -----------------------------------------------------


class Example(NamedTuple):
    """Trees and vectors by channel; None for missing ones."""

    trees: tuple
    vectors: tuple


def make_forest(examples):
    """Return the forest of examples that have the same number of channels."""
    width = max((len(v) for e in examples for v in e.vectors if v is not None), default=0)
    forest = Forest(
        {
            str(k): [None if t is None else text(t) for t in column]
            for k, column in channels(examples, "trees")
        }
    )
    vectors = {
        str(k): Vectors(
            sparse.csr_matrix([np.zeros(width) if v is None else v for v in column]),
            np.array([v is not None for v in column]),
        )
        for k, column in channels(examples, "vectors")
    }
    return Forest._from_table(forest.table, forest.trees, vectors)


def channels(examples, attribute):
    return enumerate(zip(*(getattr(example, attribute) for example in examples), strict=True))


def example_kernel(settings, a, b):
    """Return the kernel of two examples, by SVM-light-TK's manual; `settings` is an ExampleKernel."""

    def list_pairs(left, right, pairing):
        candidates = (
            zip(left, right, strict=False) if pairing == "same" else ((x, z) for x in left for z in right)
        )
        return [(x, z) for x, z in candidates if x is not None and z is not None]

    def tree_kernel(x, z):
        return kernel(x, z, settings.tree, settings.decay, settings.width_decay, normalize=settings.normalize)

    def vector_kernel(x, z):
        value = vector_value(settings.vector, x, z)
        if settings.normalize_vectors:
            norms = (vector_value(settings.vector, v, v) for v in (x, z))
            value /= math.prod(math.sqrt(norm) if norm > 0 else 1.0 for norm in norms)
        return value

    tree_sum = math.fsum(tree_kernel(x, z) for x, z in list_pairs(a.trees, b.trees, settings.tree_pairing))
    vector_sum = math.fsum(
        vector_kernel(x, z) for x, z in list_pairs(a.vectors, b.vectors, settings.vector_pairing)
    )
    return {
        "trees": tree_sum,
        "vectors": vector_sum,
        "sum": settings.tree_weight * tree_sum + vector_sum,
        "product": tree_sum * vector_sum,
    }[settings.combination]


def vector_value(function, x, z):
    product = math.fsum(np.asarray(x) * np.asarray(z))
    inner = function.gamma * product + function.coef0
    return {
        "linear": lambda: product,
        "polynomial": lambda: inner**function.degree,
        "rbf": lambda: math.exp(-function.gamma * math.fsum((np.asarray(x) - np.asarray(z)) ** 2)),
        "sigmoid": lambda: math.tanh(inner),
    }[function.name]()


# --- A learnable problem ---------------------------------------------------------------------------

_SUBJECTS = ("(PRP i)", "(PRP we)", "(D the) (N dog)", "(D a) (N cat)", "(D the) (J old) (N man)")
_VERBS = ("sees", "hears", "finds", "has")
_OBJECTS = (*_SUBJECTS, "(N fish)", "(J old) (N fish)")
_SIGNS = (("PP", "in"), ("PP", "on"), ("ADV", "now"), ("ADV", "here"))  # each class prefers one of them


def make_problem(seed, rows=120, classes=2, *, noise=0.15, share=None):
    """Return bracket strings and labels: the phrase after the verb often, but not always, shows the class.

    `share` of the rows are of class 1; without it, classes are equally frequent.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, rows) if share is None else (rng.random(rows) < share).astype(int)
    labels[:classes] = np.arange(classes)
    signs = np.where(rng.random(rows) < noise, rng.integers(0, len(_SIGNS), rows), labels)
    return [_sentence(rng, *_SIGNS[sign]) for sign in signs], labels


def _sentence(rng, label, word):
    subject, verb, objekt = (rng.choice(choices) for choices in (_SUBJECTS, _VERBS, _OBJECTS))
    tail = f"({label} {word} (NP {rng.choice(_OBJECTS)}))" if label == "PP" else f"({label} {word})"
    return f"(S (NP {subject}) (VP (V {verb}) (NP {objekt}) {tail}))"
