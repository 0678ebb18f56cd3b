"""The slow twin of clustering: tries every move, and computes the likelihood of all words for each."""

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
    """Words are numbers, the most frequent first. Only words below `vocabulary` are clustered."""

    def __init__(self, words, vocabulary, n_unclustered, clusters):
        self.words, self.vocabulary, self.n_clusters = words, vocabulary, clusters
        self.cluster_of = [min(word, clusters - 1) for word in range(vocabulary)]
        self.cluster_of += [clusters + kind for kind in range(n_unclustered)]

    def run_epoch(self):
        return sum(self.move(word) for word in range(self.vocabulary))

    def move(self, word):
        old_cluster, likelihoods = self.cluster_of[word], []
        for cluster in range(self.n_clusters):
            self.cluster_of[word] = cluster
            likelihoods.append(likelihood(self.words, self.cluster_of))
        moves = max(likelihoods) > likelihoods[old_cluster] + 1e-6
        best = next(cluster for cluster, value in enumerate(likelihoods) if value >= max(likelihoods) - 1e-6)
        self.cluster_of[word] = best if moves else old_cluster
        return moves
