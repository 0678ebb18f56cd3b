"""
Parse, draw, and explain a decision
===================================

"She saw the man with a telescope": does "with a telescope" belong to "saw" or to "man"? The verb and the tool
together decide; neither does alone. This example trains two dependency parsers on such sentences, draws a
tree, and explains a decision.
"""

# %%
# Sentences with their trees
# --------------------------
#
# The sentences are generated. A phrase belongs to the verb in four cases, such as "cut ... with a knife", and
# to the noun otherwise. Instead, you can read a treebank in the CoNLL-U format with ``read_conllu``.

import random

import matplotlib.pyplot as plt
import numpy as np

from unkernel.data import Treebank
from unkernel.parsing import ArcEagerParser

SUBJECTS = ("she", "he", "they", "we")
VERBS = ("saw", "cut", "found", "painted", "wanted", "opened")
NOUNS = ("bread", "man", "door", "picture", "box", "letter")
TOOLS = ("knife", "telescope", "key", "brush", "beard", "ribbon")
TAGS = ["PRON", "VERB", "DET", "NOUN", "ADP", "DET", "NOUN"]
WITH_THE_VERB = {("saw", "telescope"), ("cut", "knife"), ("opened", "key"), ("painted", "brush")}


def treebank(count, seed):
    """Return sentences with their trees."""
    choose = random.Random(seed).choice
    words, heads, relations = [], [], []
    for _ in range(count):
        verb, tool = choose(VERBS), choose(TOOLS)
        of_verb = (verb, tool) in WITH_THE_VERB
        words.append([choose(SUBJECTS), verb, "the", choose(NOUNS), "with", "a", tool])
        heads.append([2, 0, 4, 2, 7, 7, 2 if of_verb else 4])
        relations.append(["nsubj", "root", "det", "obj", "case", "det", "obl" if of_verb else "nmod"])
    return Treebank.from_words(words, [TAGS] * count, heads=heads, deprels=relations)


# %%
# Single features and pairs
# -------------------------
#
# With ``degree=1``, each feature of a decision has a weight; with ``degree=2``, each pair of features, too.
# With enough sentences, the parser that sees pairs makes no mistake; the other one cannot learn the rule.

test = treebank(300, seed=1)
sizes = (100, 200, 400, 800, 1600)


def attachment_accuracy(parser):
    """Return the share of test sentences whose last word has the gold head."""
    return np.mean(
        [
            predicted.heads[-1] == gold.heads[-1]
            for predicted, gold in zip(parser.parse(test), test, strict=True)
        ]
    )


accuracy = {}
for degree in (1, 2):
    parsers = [ArcEagerParser(degree).fit(treebank(size, seed=0)) for size in sizes]
    accuracy[degree] = [attachment_accuracy(parser) for parser in parsers]
    print(f"degree {degree}: {accuracy[degree][-1]:.1%} of the phrases are attached correctly")
parser = parsers[-1]

# %%
# Draw a tree
# -----------
#
# ``draw`` is for the terminal; notebooks show arcs.

sentence = [["she", "saw", "the", "man", "with", "a", "telescope"]]
parsed = parser.parse(sentence, tags=[TAGS])[0]
print(parsed.draw())

# %%

parsed

# %%
# Explain a decision
# ------------------
#
# ``explain`` lists every decision on a sentence with what each conjunction of features added to the scores of
# the winner and of the runner-up. This is the decision about "man" and "with ... telescope": the word on top
# of the stack takes no further dependents (REDUCE), so that the phrase can be attached to the verb.

decisions = parser.explain(sentence, [TAGS], top=8)
decision = next(
    decision for decision in decisions if decision.kind == "move" and decision.forms == ("man", "telescope")
)
print(decision)

# %%
# The figure
# ----------

fig, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4), layout="constrained", width_ratios=(2, 3))
for degree, color, marker in ((1, "#8a8a8a", "s"), (2, "#0072b2", "o")):
    left.plot(sizes, accuracy[degree], color=color, marker=marker, label=f"degree {degree}")
left.set(xscale="log", xlabel="training sentences", title="phrases with the right head", xticks=sizes)
left.set_xticklabels(sizes)
left.minorticks_off()
left.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
left.legend(frameon=False)
left.grid(alpha=0.3)

names = [" and ".join(conjunction.features) for conjunction in decision.evidence]
places = np.arange(len(names))
right.barh(
    places - 0.2,
    [conjunction.chosen for conjunction in decision.evidence],
    0.4,
    color="#0072b2",
    label=decision.chosen,
)
right.barh(
    places + 0.2,
    [conjunction.runner_up for conjunction in decision.evidence],
    0.4,
    color="#d55e00",
    label=decision.runner_up,
)
right.set_yticks(places, names, fontsize=8)
right.invert_yaxis()
right.axvline(0, color="#222222", linewidth=0.8)
right.set_title("what spoke for the winner and for the runner-up")
right.legend(frameon=False)
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
