"""The slow twin of lifting crossing arcs, and trees for tests."""

from __future__ import annotations

from hypothesis import strategies as st


def path_to_root(heads, word):
    """Return the words from this one up to the root."""
    path = [word]
    while heads[path[-1] - 1]:
        path.append(heads[path[-1] - 1])
    return path


def is_tree(heads):
    """Return whether there is one root, to which every word leads."""
    children = {}
    for word, head in enumerate(heads, start=1):
        children.setdefault(head, []).append(word)
    reached = [0]
    for word in reached:  # the loop extends this list
        reached += children.get(word, [])
    return heads.count(0) == 1 and len(reached) == len(heads) + 1


def crossing_words(heads):
    """Return the words whose arc spans a word that does not descend from its head."""
    return [
        word
        for word, head in enumerate(heads, start=1)
        if head
        and any(head not in path_to_root(heads, w) for w in range(min(word, head) + 1, max(word, head)))
    ]


def projectivise(heads, labels):
    """Lift the shortest crossing arc until no arcs cross.

    Return heads, labels, and for each lifted word its label and that of its true head.
    """
    lifted = list(heads)
    while words := crossing_words(lifted):
        word = min(words, key=lambda word: abs(word - lifted[word - 1]))
        lifted[word - 1] = lifted[lifted[word - 1] - 1]
    marks = [
        None if old == new else (label, labels[old - 1])
        for old, new, label in zip(heads, lifted, labels, strict=True)
    ]
    return lifted, list(labels), marks


def deprojectivise(heads, labels, marks):
    """Attach each lifted word to the nearest word below its head that has the label of the true head.

    `marks` maps every label to the label without its mark, and the label of the true head or None.
    """
    heads, labels = list(heads), list(labels)
    for word in range(1, len(heads) + 1):
        labels[word - 1], head_label = marks[labels[word - 1]]
        if head_label is None:
            continue
        level = [heads[word - 1]]
        while level:
            below = [w for w, head in enumerate(heads, start=1) if head in level and w != word]
            candidates = [w for w in below if marks[labels[w - 1]][0] == head_label]
            if candidates:
                heads[word - 1] = candidates[0]
                break
            level = below
    return heads, labels


@st.composite
def any_heads(draw, n_words):
    """Draw the heads of any tree: words in some order, each attached to an earlier one."""
    order = draw(st.permutations(range(1, n_words + 1)))
    heads = [0] * n_words
    for position, word in enumerate(order[1:], start=1):
        heads[word - 1] = order[draw(st.integers(0, position - 1))]
    return heads


@st.composite
def projective_heads(draw, n_words):
    return projectivise(draw(any_heads(n_words)), [""] * n_words)[0]
