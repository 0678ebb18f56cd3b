"""The arc-eager parser against its slow twin: training data, training, and parsing."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import arc_eager
from reference.dependencies import is_tree, projective_heads, projectivise
from reference.online import Trainer, mean
from reference.selection import few_examples
from reference.treebanks import CROSSING, bank_of, sentences, template_texts, treebanks
from unkernel._core import ArcEagerSpec, OnlineTrainer, mean_weights
from unkernel.parsing import ArcEagerParser

SPLITS = st.sampled_from(["none", "labels", "both"])


def make_specs(template_text, bank, split, min_count):
    """Return the parser's spec, and the frame of its slow twin."""
    fast = ArcEagerSpec(
        "templates",
        template_text,
        split_moves=split == "both",
        split_labels=split != "none",
        min_count=min_count,
    )
    fast.learn(bank._text)
    slow = arc_eager.Frame(template_text, [s.words for s in bank], split=split, min_count=min_count)
    return fast, slow


# --- The twin itself --------------------------------------------------------------------------------


@given(heads=st.integers(1, 8).flatmap(projective_heads))
def test_canonical_moves_rebuild_projective_trees(heads):
    state = arc_eager.State(len(heads))
    for move in arc_eager.canonical_moves(heads):
        assert arc_eager.costs(state, heads)[move] == 0
        state.apply(move)
    assert state.finished and state.heads == heads


@given(n_words=st.integers(1, 9), data=st.data())
def test_any_moves_make_one_tree(n_words, data):
    state = arc_eager.State(n_words)
    moves = 0
    while not state.finished:
        state.apply(data.draw(st.sampled_from([m for m in arc_eager.MOVES if state.valid(m)])))
        moves += 1
    assert is_tree(state.heads) and moves < 4 * n_words


# --- Labels, classes and rows -----------------------------------------------------------------------


@given(text=template_texts(), bank=treebanks(), split=SPLITS, min_count=st.integers(1, 3))
def test_labels_classes_and_columns(text, bank, split, min_count):
    fast, slow = make_specs(text, bank, split, min_count)
    assert fast.labels == slow.labels
    assert fast.lifted == sum(
        head != sentence.heads[word]
        for sentence, (lifted, _) in zip(bank, slow.trees, strict=True)
        for word, head in enumerate(lifted)
    )
    assert (fast.move_classes, fast.arc_classes) == (slow.moves.classes, slow.arcs.classes)
    assert fast.move_columns == len(slow.columns["moves"])
    assert fast.arc_columns == len(slow.columns["labels"])


def canonical_rows(frame):
    """Return part, class and columns of every decision: one list for moves and one for labels of arcs."""
    moves, arcs = [], []
    for sentence, (heads, labels) in zip(frame.sentences, frame.trees, strict=True):
        state = arc_eager.State(len(sentence))
        for move in arc_eager.canonical_moves(heads):
            label = None
            if state.stack:
                part = frame.moves.part(frame.move_case(state, sentence))
                class_number = frame.moves.classes[part].index(move)
                moves.append((part, class_number, frame.row("moves", state, sentence)))
            if move in (arc_eager.LEFT_ARC, arc_eager.RIGHT_ARC):
                arc = state.arc(move)
                label = labels[arc[1] - 1]
                part = frame.arcs.part(frame.arc_case(arc, sentence))
                class_number = frame.arcs.classes[part].index(frame.labels.index(label))
                arcs.append((part, class_number, frame.row("labels", state, sentence, arc)))
            state.apply(move, label)
    return moves, arcs


def unpack_rows(rows):
    columns = np.split(rows["columns"], rows["offsets"][1:-1]) if len(rows["parts"]) else []
    return list(
        zip(rows["parts"].tolist(), rows["classes"].tolist(), [c.tolist() for c in columns], strict=True)
    )


@given(text=template_texts(), bank=treebanks(), split=SPLITS, min_count=st.integers(1, 3))
def test_training_rows_equal_the_canonical_moves_of_the_twin(text, bank, split, min_count):
    fast, slow = make_specs(text, bank, split, min_count)
    assert tuple(map(unpack_rows, fast.rows(bank._text))) == canonical_rows(slow)


# --- Training ---------------------------------------------------------------------------------------


def check_weights(runs, twins):
    first = twins[0]
    part = mean_weights(runs, degree=first.degree, classes=first.n_classes)
    columns, numbers, intercept = mean(twins)
    assert part["columns"].tolist() == columns
    assert part["keys"].tolist() == list(numbers)
    assert part["weights"].reshape(len(numbers), len(intercept)).tolist() == list(numbers.values())
    assert part["intercept"].tolist() == intercept


@few_examples(10)
@given(
    text=template_texts(),
    bank=treebanks(max_words=6),
    split=SPLITS,
    degree=st.integers(1, 3),
    min_updates=st.integers(1, 3),
    gold_epochs=st.integers(0, 2),
    exploration=st.sampled_from([0.0, 0.5, 1.0]),
    beam=st.integers(1, 3),
    greedy_epochs=st.integers(0, 2),
    seed=st.integers(0, 2**31 - 2),
)
def test_online_training(*, text, bank, split, seed, **options):
    degree = options["degree"]
    fast, slow = make_specs(text, bank, split, 1)
    runs = []
    for run in range(2):
        options["seed"] = seed + run
        trainer = OnlineTrainer(fast, bank._text, label_degree=degree, **options)
        twin = Trainer(slow, **options)
        for _ in range(3):
            assert trainer.run_epoch() == twin.run_epoch()
        runs.append((trainer, twin))
    for selected_runs in (runs[:1], runs):
        for part in range(len(runs[0][1].moves)):
            check_weights(
                [t.move_weights(part) for t, _ in selected_runs],
                [twin.moves[part] for _, twin in selected_runs],
            )
        for part in range(len(runs[0][1].arcs)):
            check_weights(
                [t.arc_weights(part) for t, _ in selected_runs],
                [twin.arcs[part] for _, twin in selected_runs],
            )


# --- Parsing ----------------------------------------------------------------------------------------


def check_parses(parser, text, bank, test_bank):
    slow = arc_eager.Frame(text, [s.words for s in bank], split=parser.split, min_count=parser.min_count)
    scores = [
        arc_eager.scores_of(classifiers)
        for classifiers in (parser.move_classifiers_, parser.label_classifiers_)
    ]
    # Averages are multiples of a power of two, which add up exactly, unlike weights of other learners.
    tolerance = 0.0 if parser.learner == "online" else 1e-9
    for parsed in parser.parse(test_bank):
        with contextlib.suppress(arc_eager.CloseCallError):
            if parser.beam == 1:
                expected = arc_eager.parse(slow, parsed.words, *scores, tolerance)
            else:
                expected = arc_eager.parse_with_beam(slow, parsed.words, scores, parser.beam)
            assert (parsed.heads, parsed.deprels) == expected


@few_examples(10)
@given(
    text=template_texts(),
    bank=treebanks(),
    test_bank=treebanks(),
    split=SPLITS,
    degree=st.integers(1, 3),
    learner=st.sampled_from(["online", "online", "svm", "logistic"]),
)
def test_greedy_parses(*, text, bank, test_bank, split, degree, learner, tmp_path_factory):
    path = tmp_path_factory.mktemp("templates") / "own.txt"
    path.write_text(text, "utf-8")
    parser = ArcEagerParser(
        degree, learner=learner, templates=path, split=split, epochs=3, min_count=1, min_updates=1
    )
    check_parses(parser.fit(bank), text, bank, test_bank)


@few_examples(10)
@given(
    text=template_texts(),
    bank=treebanks(),
    test_bank=treebanks(),
    split=SPLITS,
    beam=st.sampled_from([2, 3, 8]),
    epochs=st.integers(1, 4),
)
def test_parses_with_a_beam(*, text, bank, test_bank, split, beam, epochs, tmp_path_factory):
    path = tmp_path_factory.mktemp("templates") / "own.txt"
    path.write_text(text, "utf-8")
    parser = ArcEagerParser(
        templates=path, split=split, beam=beam, epochs=epochs, min_count=1, min_updates=1
    ).fit(bank)
    check_parses(parser, text, bank, test_bank)
    assert parser.parse(test_bank, n_jobs=2).to_bytes() == parser.parse(test_bank).to_bytes()


@few_examples(10)
@given(text=template_texts(), others=st.lists(sentences(), max_size=3))
def test_crossing_arcs_are_learnt_and_restored(text, others, tmp_path_factory):
    path = tmp_path_factory.mktemp("templates") / "own.txt"
    path.write_text(
        text.replace("[moves]\n", "[moves]\ninput.form\n").replace(
            "[labels]\n", "[labels]\ndependent.form\n"
        ),
        "utf-8",
    )
    bank = bank_of([CROSSING] * arc_eager.FEWEST_LIFTED + others)
    parser = ArcEagerParser(templates=path, min_count=1, min_updates=1, epochs=5).fit(bank)
    assert "acl↑nsubj" in parser.labels_
    check_parses(parser, path.read_text("utf-8"), bank, bank)


@pytest.mark.parametrize("times", [arc_eager.FEWEST_LIFTED - 1, arc_eager.FEWEST_LIFTED])
def test_marks_that_are_rare_are_not_learnt(times):
    parser = ArcEagerParser(min_count=1, min_updates=1).fit(bank_of([CROSSING] * times))
    is_learnt = times >= arc_eager.FEWEST_LIFTED
    assert ("acl↑nsubj" in parser.labels_) == is_learnt
    lifted, _, marks = projectivise(*CROSSING[3:])
    assert marks == [None, None, None, ("acl", "nsubj")]
    parsed = parser.parse(bank_of([CROSSING]))[0]
    assert parsed.heads == (CROSSING[3] if is_learnt else lifted)
    assert parsed.deprels == CROSSING[4]
