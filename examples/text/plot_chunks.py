"""
Finding names in text
=====================

A :class:`~unkernel.parsing.Chunker` finds phrases that do not overlap: names of people and places, noun
phrases, verb groups. It decides word by word, from the words around, their endings and capitals, and the tags
that it gave just before. Pairs of these features matter: who works *for* Jackson works for a company, who
waits *for* Jackson waits for a person.
"""

# %%
# Sentences with marked names
# ---------------------------
#
# If the environment variable ``UNKERNEL_DATA`` names a folder with the data sets of the benchmarks, the
# chunks are the phrases of CoNLL-2000 (newspaper text). Otherwise sentences with names of people (PER),
# places (LOC) and companies (ORG) are generated. Every name can be any of the three: only the verb and the
# preposition before it together decide. Half of the names in the test sentences do not occur in training.

import os
import random

import matplotlib.pyplot as plt
import numpy as np

from unkernel import datasets
from unkernel.data import ChunkCorpus, read_chunks
from unkernel.parsing import Chunker

FIRST = ("Anna", "Peter", "Mary", "John", "Victoria", "Olga", "Hiro", "Ines", "Paul", "Emma")
NAMES = (
    *(
        "Jackson",
        "Lincoln",
        "Houston",
        "Austin",
        "Florence",
        "Chester",
        "Carson",
        "Madison",
        "Orlando",
        "Salem",
    ),
    *("Kent", "Chelsea", "Sydney", "Dallas", "Preston", "Clayton", "Logan", "Georgia", "Denver", "Devon"),
)
KINDS = {  # of the name behind a verb and a preposition
    "works": {"for": "ORG", "in": "LOC", "with": "PER"},
    "waits": {"for": "PER", "in": "LOC", "with": "PER"},
    "flies": {"from": "LOC", "to": "LOC", "with": "ORG"},
    "hears": {"from": "PER", "of": "LOC", "about": "ORG"},
    "buys": {"from": "ORG", "in": "LOC", "for": "PER"},
}


def sentences(count, names, seed):
    """Return words and tags: B- begins a name, I- continues it, O is outside of names."""
    choose = random.Random(seed).choice
    words, tags = [], []
    for _ in range(count):
        verb = choose(list(KINDS))
        preposition = choose(list(KINDS[verb]))
        kind = KINDS[verb][preposition]
        words.append([choose(FIRST), choose(names), verb, preposition, choose(names), "."])
        tags.append(["B-PER", "I-PER", "O", "O", f"B-{kind}", "O"])
    return ChunkCorpus.from_words(words, tags=tags)


if "UNKERNEL_DATA" in os.environ:
    train, test = (read_chunks(datasets.path("conll2000", part)) for part in ("train", "test"))
    train, test, sizes = train[:800], test[:500], (100, 200, 400, 800)
    print("The sentences are those of CoNLL-2000.")
else:
    train, test, sizes = (
        sentences(400, NAMES[:10], seed=0),
        sentences(300, NAMES, seed=1),
        (20, 50, 100, 200, 400),
    )
    print("UNKERNEL_DATA is not set: the sentences are generated.")

# %%
# Train and mark
# --------------

chunker = Chunker(degree=2).fit(train)
for sentence in chunker.parse(test)[:4]:
    print(sentence.draw(), end="")
print(chunker.evaluate(test))

# %%
# Single features and pairs
# -------------------------
#
# A chunk is right if its first word, its last word and its type are. F1 is measured as in the CoNLL-2000
# task, on test sentences, for chunkers that see single features (``degree=1``) and pairs of them
# (``degree=2``).

results = {degree: [Chunker(degree).fit(train[:size]).evaluate(test) for size in sizes] for degree in (1, 2)}
kinds = sorted(results[2][-1].per_type)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for shift, (degree, color, marker) in zip(
    (-0.2, 0.2), ((1, "#8a8a8a", "s"), (2, "#0072b2", "o")), strict=True
):
    curve = [result.f1 for result in results[degree]]
    left.plot(sizes, curve, color=color, marker=marker, label=f"degree {degree}")
    by_kind = results[degree][-1].per_type
    right.bar(np.arange(len(kinds)) + shift, [by_kind[kind].f1 for kind in kinds], 0.4, color=color)
left.set(xscale="log", xlabel="training sentences", ylabel="F1 of chunks, %", xticks=sizes)
left.set_xticklabels(sizes)
left.minorticks_off()
left.legend(frameon=False)
left.grid(alpha=0.3)
right.set_xticks(range(len(kinds)), kinds)
right.set_title(f"by type, {sizes[-1]} sentences")
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Why this tag?
# -------------
#
# ``explain`` lists, for each word, the contributions to the scores of its tag and of the runner-up.

decisions = [
    explanation for explanation in chunker.explain(test[:1], top=5) if explanation.chosen.startswith("B-")
]
print(decisions[-1])
