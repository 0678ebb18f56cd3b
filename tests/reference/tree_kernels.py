"""Tree kernels the slow, obvious way: by their recursions, and by counting every fragment.

A tree is a pair (label, children); a leaf has no children. The kernels are defined as in SVM-light-TK 1.5, in
double precision; `decay` is its -L (lambda), `width_decay` its -M (mu, which it keeps as a float32).

    st        whole subtrees                   -F 0
    sst       subset trees: whole productions  -F 1
    sst_bow   subset trees, and single leaves  -F 2
    ptk       partial trees                    -F 3

    K(a, b) = sum over the nodes x of a and z of b of Delta(x, z)
            = sum over fragments f of feature_f(a) feature_f(b)

`kernel` computes the first line, `kernel_by_fragments` the second, which is for tiny trees.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from functools import cache, lru_cache
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np

KINDS = ("st", "sst", "sst_bow", "ptk")
LONGEST_SUBSEQUENCE = 5  # MAX_CHILDREN of SVM-light-TK


# --- Trees ------------------------------------------------------------------------------------------


def parse(text):
    """Return the tree of a bracket string; words are leaves, `(NN dog)` and `(NN (dog))` are the same."""
    tokens = iter(re.findall(r"\(\s*[^\s()]*|\)|[^\s()]+", text))

    def children():
        for token in tokens:
            if token == ")":
                return
            yield node(token) if token.startswith("(") else (token, ())

    def node(opening):
        return opening[1:].strip(), tuple(children())

    return node(next(tokens))


def write(tree):
    """Return the bracket string of a tree, with a leaf as a bare word."""
    label, children = tree
    return f"({' '.join([label, *map(write, children)])})" if children else label


def nodes(tree):
    """Return all nodes, including leaves."""
    yield tree
    for child in tree[1]:
        yield from nodes(child)


def is_leaf(node):
    return not node[1]


def is_preterminal(node):
    return bool(node[1]) and all(map(is_leaf, node[1]))


def production(node):
    """Return the label and the children's labels, whether leaves or not; a leaf has no production."""
    return None if is_leaf(node) else (node[0], *(child[0] for child in node[1]))


# --- By the recursions ------------------------------------------------------------------------------


@lru_cache(maxsize=8)  # generated decays occur only once, so few entries are useful
def make_delta(kind, decay, width_decay):
    """Return Delta(x, z) for nodes that `matching_pairs` yields, with a cache."""
    if kind == "ptk":
        return _partial_tree_delta(decay, width_decay)
    return _subset_tree_delta(decay, sigma=0.0 if kind == "st" else 1.0)


def _subset_tree_delta(decay, sigma):
    """Return Delta(x, z) = lambda prod_k (sigma + Delta(x_k, z_k)): sigma is 1 for subset trees, or 0.

    A child that is a leaf in x or in z has the factor 1, because its label is part of the production. As in
    SVM-light-TK, this also holds for subtrees: a leaf in x equals any subtree in z with the same label.
    """

    @cache
    def delta(x, z):
        if is_leaf(x) or is_preterminal(x) or is_preterminal(z):
            return decay
        return decay * math.prod(factor(*pair) for pair in zip(x[1], z[1], strict=True))

    def factor(x, z):
        if is_leaf(x) or is_leaf(z):
            return 1.0
        return sigma + (delta(x, z) if production(x) == production(z) else 0.0)

    return delta


def _partial_tree_delta(decay, width_decay):
    """Return Delta of partial trees: mu (lambda^2 + sum of lambda^gaps prod_k Delta(x_k, z_k)).

    The sum is over all pairs of equally long subsequences of children.
    """

    @cache
    def delta(x, z):
        return width_decay * (decay**2 + subsequences(x[1], z[1]))

    def subsequences(xs, zs):
        single = {(i, j): delta(x, z) for i, x in enumerate(xs) for j, z in enumerate(zs) if x[0] == z[0]}
        total, ending = 0.0, single  # ending: sum over the subsequences of one length that end in x_i and z_j
        for _ in range(LONGEST_SUBSEQUENCE):
            total += sum(ending.values())
            ending = {
                (i, j): value
                * sum(ending[k, m] * decay ** (i - k + j - m - 2) for k, m in ending if k < i and m < j)
                for (i, j), value in single.items()
            }
        return total

    return delta


@lru_cache(maxsize=1024)
def group_nodes(tree, kind):
    """Group the nodes of a tree by the key that two nodes must share for a nonzero Delta."""
    groups = defaultdict(list)
    for node in nodes(tree):
        single = kind == "ptk" or (kind == "sst_bow" and is_leaf(node))
        groups[node[0] if single else production(node)].append(node)
    groups.pop(None, None)  # leaves match nothing
    return groups


def matching_pairs(a, b, kind):
    """Yield the pairs of nodes whose Delta is not 0 by definition."""
    left, right = group_nodes(a, kind), group_nodes(b, kind)
    return ((x, z) for group in left.keys() & right.keys() for x in left[group] for z in right[group])


def kernel(a, b, kind, decay=0.4, width_decay=0.4, *, normalize=False):
    """Return K(a, b) of two trees. A tree whose kernel with itself is 0 is not normalised."""
    delta = make_delta(kind, decay, width_decay)
    value = math.fsum(delta(x, z) for x, z in matching_pairs(a, b, kind))
    if normalize:
        value /= math.sqrt(
            squared_norm(a, kind, decay, width_decay) * squared_norm(b, kind, decay, width_decay)
        )
    return value


@lru_cache(maxsize=1024)
def squared_norm(tree, kind, decay, width_decay):
    return kernel(tree, tree, kind, decay, width_decay) or 1.0


# --- By counting fragments --------------------------------------------------------------------------


def fragments(tree, kind):
    """Count the fragments of a tree. Fragments are bracket strings, such as `(S NP (VP V))`.

    A node of a subset tree has all of its children or none, and a subtree contains all nodes below its root.
    A single leaf is a fragment only of "sst_bow".
    """
    inner = [node for node in nodes(tree) if not is_leaf(node)]
    if kind == "st":
        return Counter(map(write, inner))
    leaves = [node[0] for node in nodes(tree) if is_leaf(node)] if kind == "sst_bow" else []
    return Counter(leaves) + Counter(fragment for node in inner for fragment in _subset_trees(node))


def _subset_trees(node):
    """Return all fragments with their root in this node."""
    choices = [[child[0], *([] if is_leaf(child) else _subset_trees(child))] for child in node[1]]
    return [f"({' '.join([node[0], *children])})" for children in product(*choices)]


def fragment_weight(fragment, decay):
    """Return decay^productions, or decay for a single leaf. Partial trees have other weights."""
    return decay ** max(1, fragment.count("("))


def features(tree, kind, decay, width_decay):
    """Return the tree in the space of its kernel: K(a, b) is the dot product of the features of a and b."""
    result = Counter()
    if kind == "ptk":
        for node in nodes(tree):
            for fragment, value in _partial_trees(node, decay, width_decay):
                result[fragment] += value
        return result
    for fragment, count in fragments(tree, kind).items():
        result[fragment] = count * math.sqrt(fragment_weight(fragment, decay))
    return result


def _partial_trees(node, decay, width_decay):
    """Yield the partial trees whose root is this node, and the amount that each adds to its feature.

    A node of a partial tree has up to five of its children. Its factor is sqrt(mu) lambda if it has none, and
    otherwise sqrt(mu) lambda^gaps, where gaps counts the children left out between the first and the last.
    """
    label, children = node
    child_trees = [list(_partial_trees(child, decay, width_decay)) for child in children]
    yield label, math.sqrt(width_decay) * decay
    for size in range(1, min(len(children), LONGEST_SUBSEQUENCE) + 1):
        for positions in combinations(range(len(children)), size):
            gaps = positions[-1] - positions[0] + 1 - size
            for choice in product(*(child_trees[position] for position in positions)):
                fragment = f"({' '.join([label, *(text for text, _ in choice)])})"
                value = math.sqrt(width_decay) * decay**gaps * math.prod(value for _, value in choice)
                yield fragment, value


def kernel_by_fragments(a, b, kind, decay=0.4, width_decay=0.4):
    """Return K(a, b), not normalised, of two tiny trees."""
    first, second = (features(tree, kind, decay, width_decay) for tree in (a, b))
    return math.fsum(first[fragment] * second[fragment] for fragment in first.keys() & second.keys())


# --- Files of SVM-light-TK --------------------------------------------------------------------------


class TkModel(NamedTuple):
    """A model of one tree per example; its score is sum_i coefficient_i K(tree_i, x) - threshold."""

    kind: str
    decay: float
    width_decay: float
    normalize: bool
    threshold: float
    coefficients: list[float]
    trees: list[tuple]

    def score(self, tree):
        settings = (self.kind, self.decay, self.width_decay)
        values = (kernel(vector, tree, *settings, normalize=self.normalize) for vector in self.trees)
        return math.fsum(a * k for a, k in zip(self.coefficients, values, strict=True)) - self.threshold


def read_tk_model(path):
    head, *lines = re.split(r"(?<=alpha\*y\))\n", Path(path).read_text(encoding="utf-8"))
    result = re.findall(r"^(\S+) # kernel parameter -(\w)", head, re.MULTILINE)
    option = {letter: value for value, letter in result}
    examples = [example(line) for line in lines[0].splitlines()]
    return TkModel(
        kind=KINDS[int(option["F"])],
        decay=float(option["L"]),
        width_decay=float(np.float32(option["M"])),
        normalize=option["N"] in ("1", "3"),
        threshold=float(re.search(r"^(\S+) # threshold b", head, re.MULTILINE)[1]),
        coefficients=[coefficient for coefficient, _ in examples],
        trees=[tree for _, tree in examples],
    )


def read_tk_examples(path):
    """Return the labels and trees of a file with one tree per line."""
    return [example(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def example(line):
    number, text = re.fullmatch(r"(\S+) *\|BT\| (.*?) *\|ET\| *", line).groups()
    return float(number), parse(text)
