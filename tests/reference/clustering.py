"""The slow twin of clustering: tries every move, and recomputes the whole likelihood."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise


def likelihood(words, cluster_of):
    """Return the likelihood of a class bigram model, without terms that clusters do not affect."""
    clusters = [cluster_of[word] for word in words]
    pairs, totals = Counter(pairwise(clusters)), Counter(clusters)
    return sum(n * math.log(n) for n in pairs.values()) - 2 * sum(n * math.log(n) for n in totals.values())


class Exchange:
    """Clusters of words given as numbers, frequent ones first; words from `vocabulary` on have their own
    clusters.
    """

    def __init__(self, words, vocabulary, others, clusters):
        self.words, self.vocabulary, self.n_clusters = words, vocabulary, clusters
        self.cluster_of = [min(word, clusters - 1) for word in range(vocabulary)]
        self.cluster_of += [clusters + kind for kind in range(others)]

    def run_epoch(self):
        return sum(self.move(word) for word in range(self.vocabulary))

    def move(self, word):
        before, reached = self.cluster_of[word], []
        for cluster in range(self.n_clusters):
            self.cluster_of[word] = cluster
            reached.append(likelihood(self.words, self.cluster_of))
        moves = max(reached) > reached[before] + 1e-6
        best = next(cluster for cluster, one in enumerate(reached) if one >= max(reached) - 1e-6)
        self.cluster_of[word] = best if moves else before
        return moves
