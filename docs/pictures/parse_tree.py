"""Draw a parsed sentence, and what decided where its phrase belongs.

    python docs/pictures/parse_tree.py       # needs matplotlib; writes docs/_static/pictures/parse_tree.svg

Parser, sentence and decision are taken from the gallery's script examples/text/plot_parse.py.
"""

from __future__ import annotations

import runpy
from typing import Any
from unittest.mock import patch

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drawing import (
    FAINT,
    GRID,
    OTHERS,
    OURS,
    PAPER,
    ROOT,
    WIDTH,
    machine_of,
    put_small_print,
    put_title,
    save,
)
from harness.state import now

SCRIPT = "examples/text/plot_parse.py"


def draw_tree(axes: Axes, sentence: Any) -> None:
    """Words in a line, and an arc from each head to its dependent."""
    for place, (form, tag) in enumerate(zip(sentence.forms, sentence.upos, strict=True), start=1):
        axes.text(place, -0.25, form, ha="center", va="top", fontsize=12)
        axes.text(place, -0.85, tag, ha="center", va="top", fontsize=8, color=FAINT)
    for dependent, (head, relation) in enumerate(zip(sentence.heads, sentence.deprels, strict=True), start=1):
        if head:
            draw_arc(axes, head, dependent, relation, decided=dependent == len(sentence.heads))
    axes.set(xlim=(0.4, len(sentence.forms) + 0.6), ylim=(-1.3, 5.6))
    axes.axis("off")


def draw_arc(axes: Axes, head: int, dependent: int, relation: str, *, decided: bool) -> None:
    """Half an ellipse whose height grows with the distance; the decision in question stands out."""
    color, width, weight = (OURS, 2.4, "bold") if decided else (FAINT, 1.2, "normal")
    side = 1 if head < dependent else -1
    begin, end = head + 0.08 * side, dependent - (0.05 if decided else 0.12) * side
    middle, height = (begin + end) / 2, abs(head - dependent)
    turn = np.linspace(np.pi, 0, 60)
    axes.plot(middle + (end - begin) / 2 * np.cos(turn), height * np.sin(turn), color=color, linewidth=width)
    axes.plot(end, 0.05, marker="v", color=color, markersize=6 if decided else 4.5)
    backing = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}
    axes.text(
        middle,
        height,
        relation,
        ha="center",
        va="center",
        fontsize=9,
        color=color,
        weight=weight,
        bbox=backing,
    )


def draw_evidence(axes: Axes, decision: Any) -> None:
    """What each conjunction added to the scores of the two best moves."""
    names = [" and ".join(conjunction.features) for conjunction in decision.evidence]
    for shift, color, move, values in (
        (-0.2, OURS, decision.chosen, [conjunction.chosen for conjunction in decision.evidence]),
        (0.2, OTHERS, decision.runner_up, [conjunction.runner_up for conjunction in decision.evidence]),
    ):
        score = decision.scores[move]
        label = f"{move}, score {score:+.1f}"
        axes.barh([place + shift for place in range(len(names))], values, 0.4, color=color, label=label)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.invert_yaxis()
    axes.axvline(0, color=FAINT, linewidth=0.8)
    axes.grid(True, axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.legend(loc="lower left", frameon=False, fontsize=9)


def draw(sentence: Any, decision: Any) -> Figure:
    figure = Figure(figsize=(1.25 * WIDTH, 6.6), layout="constrained")
    put_title(figure, "A parsed sentence, and one decision explained")
    tree, evidence = figure.subfigures(2, height_ratios=(3, 2.6))
    draw_tree(tree.add_subplot(), sentence)
    evidence.suptitle(
        "Why “with a telescope” does not belong to “man”:\n"
        f"the largest of {decision.n_conjunctions} contributions to two scores",
        x=0.01,
        ha="left",
        fontsize=10,
    )
    draw_evidence(evidence.add_subplot(), decision)
    put_small_print(
        figure,
        f"Parser trained on the generated sentences of {SCRIPT}\n{machine_of(now(quick=False))}",
    )
    return figure


if __name__ == "__main__":
    with patch.object(plt, "show"):
        made = runpy.run_path(str(ROOT / SCRIPT))
    save(draw(made["parsed"], made["decision"]), "parse_tree")
