"""
From raw text to trees to classes
=================================

"The dog chased the man." and "The man was chased by the dog." mean the same; "The man chased the dog." has
the same words as the first. Who did it, the animal or the person? Single words do not show this. A
:class:`~unkernel.parsing.TextParser` turns raw text into trees, and a :class:`~unkernel.TreeSVC` compares
them.
"""

# %%
# Stories
# -------
#
# Sentences in the active and in the passive voice are generated with their trees, in the CoNLL-U format. The
# parser is trained on some of them; the classifiers are trained on others, as raw text.

import io
import random

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from unkernel import Forest, TreeSVC, read_conllu
from unkernel.parsing import TextParser

ANIMALS = ("dog", "cat", "horse", "fox", "goose")
PEOPLE = ("man", "woman", "child", "teacher", "doctor")
VERBS = {"chased": "chased", "saw": "seen", "bit": "bitten", "found": "found", "followed": "followed"}
ACTIVE = """The DET 2 det
{actor} NOUN 3 nsubj
{verb} VERB 0 root
the DET 5 det
{other} NOUN 3 obj
. PUNCT 3 punct"""
PASSIVE = """The DET 2 det
{other} NOUN 4 nsubj:pass
was AUX 4 aux:pass
{participle} VERB 0 root
by ADP 7 case
the DET 7 det
{actor} NOUN 4 obl:agent
. PUNCT 4 punct"""


def conllu(story):
    """Return a story in CoNLL-U: ten columns per word, and no space before the full stop."""
    words = [line.split() for line in story.splitlines()]
    lines = []
    for number, (form, tag, head, relation) in enumerate(words, start=1):
        glued = "SpaceAfter=No" if number == len(words) - 1 else "_"
        lines.append("\t".join([str(number), form, form.lower(), tag, "_", "_", head, relation, "_", glued]))
    return "\n".join([*lines, "", ""])


def stories(count, seed):
    """Return a treebank of stories, and the agent of each story."""
    choose = random.Random(seed).choice
    lines, actors = [], []
    for _ in range(count):
        animal, person, verb = choose(ANIMALS), choose(PEOPLE), choose(list(VERBS))
        actor, undergoer = choose([(animal, person), (person, animal)])
        story = choose([ACTIVE, PASSIVE])
        lines.append(conllu(story.format(actor=actor, other=undergoer, verb=verb, participle=VERBS[verb])))
        actors.append("animal" if actor == animal else "person")
    return read_conllu(io.StringIO("".join(lines))), actors


# %%
# Raw text to trees
# -----------------

nlp = TextParser(folds=2).fit(stories(300, seed=0)[0])
print(nlp.parse("The man was chased by the dog.")[0].draw())

# %%
# Words, pairs of words, and trees
# --------------------------------
#
# The trees have a node for each grammatical relation, above the words (GRCT). The kernel compares all of
# their fragments. C = 10 was chosen after a look at this figure: with C = 1, the default, trees need 200
# texts. Pairs of words also suffice for these short sentences, but need more training texts.


def trees(texts):
    return Forest.from_sentences([document[0] for document in nlp.parse_many(texts)], "grct")


test_bank, test_actors = stories(400, seed=2)
test_texts = [sentence.text for sentence in test_bank]
sizes = (25, 50, 100, 200, 400)
accuracy = {"single words": [], "words and pairs of words": [], "trees": []}
for size in sizes:
    bank, actors = stories(size, seed=1)
    texts = [sentence.text for sentence in bank]
    for name, longest in (("single words", 1), ("words and pairs of words", 2)):
        bag = make_pipeline(CountVectorizer(ngram_range=(1, longest)), LinearSVC()).fit(texts, actors)
        accuracy[name].append(bag.score(test_texts, test_actors))
    accuracy["trees"].append(
        TreeSVC("sst", C=10).fit(trees(texts), actors).score(trees(test_texts), test_actors)
    )

fig, axis = plt.subplots(figsize=(8, 4), layout="constrained")
for (name, accuracies), color, marker in zip(
    accuracy.items(), ("#8a8a8a", "#e69f00", "#0072b2"), "sDo", strict=True
):
    axis.plot(sizes, accuracies, color=color, marker=marker, label=name)
axis.set(xscale="log", xlabel="training texts", title="test texts whose actor is found", xticks=sizes)
axis.set_xticklabels(sizes)
axis.minorticks_off()
axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
axis.legend(frameon=False)
axis.grid(alpha=0.3)
axis.spines[["top", "right"]].set_visible(False)
plt.show()
