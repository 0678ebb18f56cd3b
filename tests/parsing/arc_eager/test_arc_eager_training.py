"""Training of the arc-eager parser: learnable patterns; only the seed affects the result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from reference.dependencies import is_tree
from reference.processes import check_interrupt, needs_sigint
from reference.selection import few_examples
from reference.treebanks import bank_of, template_texts, treebanks
from unkernel._core import ArcEagerSpec, OnlineTrainer
from unkernel.data import Treebank
from unkernel.parsing import ArcEagerParser
from unkernel.parsing.arc_eager import classifier_training

WORD_PAIRS = "[moves]\nstack.word\ninput.word\n[labels]\nhead.word\ndependent.word\n"


def make_word_pairs(heads, labels):
    """Return a treebank of four sentences with two words each: a c, a d, b c, b d."""
    return Treebank.from_words(
        [[a, b] for a in "ab" for b in "cd"],
        [["X", "X"]] * 4,
        heads=heads,
        deprels=labels,
    )


# The head depends on both words like XOR, and so does the label.
XOR_HEADS = make_word_pairs(
    [[0, 1], [2, 0], [2, 0], [0, 1]], [["root", "x"], ["x", "root"], ["x", "root"], ["root", "x"]]
)
XOR_LABELS = make_word_pairs([[0, 1]] * 4, [["root", label] for label in ("x", "y", "y", "x")])


@pytest.fixture
def word_pairs(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text(WORD_PAIRS)
    return path


def list_weights(parser):
    """Return classes, columns and weights of all classifiers. Their engines depend on the clock."""
    models = [part and part.model for part in parser.move_classifiers_ + parser.label_classifiers_]
    fields = ("classes", "columns", "keys", "weights", "intercept")
    return [model and [np.asarray(getattr(model, name)).tolist() for name in fields] for model in models]


def have_equal_weights(parser, other):
    return parser.labels_ == other.labels_ and list_weights(parser) == list_weights(other)


# --- Learnable patterns -----------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["none", "labels"])
@pytest.mark.parametrize("bank", [XOR_HEADS, XOR_LABELS], ids=["heads", "labels"])
@pytest.mark.parametrize("learner", ["online", "svm", "logistic"])
def test_degree_2_learns_patterns_that_degree_1_cannot(learner, bank, split, word_pairs):
    def las(degree):
        parser = ArcEagerParser(
            degree, learner=learner, templates=word_pairs, split=split, min_count=1, min_updates=1, C=10
        )
        return parser.fit(bank).evaluate(bank).las

    assert las(2) == las(3) == 100
    assert las(1) < 100


def make_memorisable_treebank(n_sentences, n_words, seed):
    """Return sentences of words that occur only once, with random projective trees."""
    rng = np.random.default_rng(seed)
    words, heads, labels = [], [], []
    for s in range(n_sentences):
        sentence_heads = [0] * n_words
        attach_words(sentence_heads, list(range(1, n_words + 1)), 0, rng)
        words.append([f"w{s}{'abcdefghij'[k]}" for k in range(n_words)])
        heads.append(sentence_heads)
        labels.append(["root" if head == 0 else "xyz"[rng.integers(3)] for head in sentence_heads])
    return Treebank.from_words(words, [["X"] * n_words] * n_sentences, heads=heads, deprels=labels)


def attach_words(heads, span, head, rng):
    if span:
        root = int(rng.integers(len(span)))
        heads[span[root] - 1] = head
        attach_words(heads, span[:root], span[root], rng)
        attach_words(heads, span[root + 1 :], span[root], rng)


@pytest.mark.parametrize("split", ["none", "labels", "both"])
@pytest.mark.parametrize(("learner", "beam"), [("online", 1), ("online", 4), ("svm", 1), ("logistic", 1)])
def test_small_treebanks_are_reproduced_exactly(learner, beam, split):
    # All digits are equal, so the words must differ in letters.
    bank = make_memorisable_treebank(1, 10, seed=3)
    parser = ArcEagerParser(
        learner=learner, beam=beam, split=split, min_count=1, min_updates=1, epochs=30, C=10
    ).fit(bank)
    result = parser.evaluate(bank)
    assert (result.uas, result.las, result.exact) == (100, 100, 100)


def test_features_below_min_count_are_left_out():
    bank = make_memorisable_treebank(4, 8, seed=1)
    sizes = [ArcEagerParser(min_count=min_count, epochs=1).fit(bank).n_features_ for min_count in (1, 2, 5)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]
    with pytest.raises(ValueError, match="no feature occurs 1000000000 times in 4 sentences: give more"):
        ArcEagerParser(min_count=10**9, epochs=1).fit(bank)


def test_conjunctions_below_min_updates_are_left_out():
    bank = make_memorisable_treebank(4, 8, seed=1)
    sizes = [
        sum(len(part.model.keys) for part in parser.move_classifiers_ if part is not None)
        for parser in (
            ArcEagerParser(min_updates=threshold, epochs=3).fit(bank) for threshold in (1, 3, 2**30)
        )
    ]
    assert sizes[0] > sizes[1] > sizes[2] == 0


# --- Random state and threads -----------------------------------------------------------------------


@few_examples(6)
@given(
    bank=treebanks(),
    learner=st.sampled_from([("online", 1), ("online", 3), ("svm", 1), ("logistic", 1)]),
    seed=st.integers(0, 99),
)
def test_the_parser_depends_on_the_seed_and_not_on_threads(bank, learner, seed):
    learner, beam = learner

    def fit(n_jobs, random_state):
        return ArcEagerParser(
            learner=learner, beam=beam, min_count=1, epochs=3, n_jobs=n_jobs, random_state=random_state
        ).fit(bank)

    parser = fit(1, seed)
    assert have_equal_weights(parser, fit(1, seed))
    assert have_equal_weights(parser, fit(2, seed))
    assert have_equal_weights(parser, fit(1, np.int64(seed)))
    if learner == "online":  # other learners draw a seed for each part, and not one for all parts
        assert have_equal_weights(parser, fit(1, np.random.RandomState(seed)))


def test_other_seeds_give_other_parsers():
    bank = make_memorisable_treebank(20, 8, seed=1)
    first, second = (ArcEagerParser(random_state=seed, epochs=3).fit(bank) for seed in (1, 2))
    assert not have_equal_weights(first, second)


def test_fitting_again_starts_from_scratch():
    first, second = make_memorisable_treebank(5, 8, seed=1), make_memorisable_treebank(3, 6, seed=2)
    parser = ArcEagerParser(min_count=1, split="both").fit(first).set_params(split="labels").fit(second)
    assert have_equal_weights(parser, ArcEagerParser(min_count=1).fit(second))


# --- The trainer and the compiled parser ------------------------------------------------------------


@given(
    text=template_texts(),
    bank=treebanks(),
    test_bank=treebanks(),
    degree=st.integers(1, 3),
    min_updates=st.integers(1, 2),
    epochs=st.integers(1, 6),
    beam=st.sampled_from([1, 1, 4]),
)
def test_averaged_weights_give_the_same_parses_as_compiled_engines(
    *, text, bank, test_bank, degree, min_updates, epochs, beam, tmp_path_factory
):
    path = tmp_path_factory.mktemp("templates") / "own.txt"
    path.write_text(text, "utf-8")
    parser = ArcEagerParser(
        degree, templates=path, beam=beam, epochs=epochs, runs=1, min_count=1, min_updates=min_updates
    ).fit(bank)
    spec = ArcEagerSpec("own.txt", text, split_moves=False, split_labels=True, min_count=1)
    spec.learn(bank._text)
    trainer = OnlineTrainer(
        spec,
        bank._text,
        degree=degree,
        label_degree=degree,
        min_updates=min_updates,
        gold_epochs=2,
        exploration=0.9,
        beam=beam,
        greedy_epochs=epochs // 2,
        seed=int(np.random.RandomState(0).randint(2**31)),
    )
    for _ in range(epochs):
        trainer.run_epoch()
    heads, labels = trainer.parse(test_bank._text)
    parsed = parser.parse(test_bank)
    assert heads.tolist() == parsed.heads.tolist()
    codes, names = parsed.symbols("deprel")
    assert [spec.labels[k] for k in labels] == [names[k] for k in codes]


def test_the_best_epoch_on_dev_is_kept():
    train, dev = make_memorisable_treebank(20, 8, seed=1), make_memorisable_treebank(10, 8, seed=2)
    parser = ArcEagerParser(min_count=1, min_updates=1, epochs=6, runs=1).fit(train, dev=dev)
    las = [epoch["las"] for epoch in parser.epochs_]
    assert len(las) == 6
    (best,) = parser.best_epochs_
    assert best == las.index(max(las)) + 1
    assert parser.dev_result_.las == pytest.approx(max(las))
    assert parser.dev_result_.uas == pytest.approx(parser.epochs_[best - 1]["uas"])
    refitted = ArcEagerParser(min_count=1, min_updates=1, epochs=best, runs=1).fit(train)
    assert have_equal_weights(parser, refitted)


def test_each_run_keeps_its_best_epoch():
    train, dev = make_memorisable_treebank(20, 8, seed=1), make_memorisable_treebank(10, 8, seed=2)
    parser = ArcEagerParser(min_count=1, min_updates=1, epochs=4, runs=3).fit(train, dev=dev)
    assert [(epoch["run"], epoch["epoch"]) for epoch in parser.epochs_] == [
        (run, epoch) for run in (1, 2, 3) for epoch in (1, 2, 3, 4)
    ]
    for run, best in enumerate(parser.best_epochs_, start=1):
        las = [epoch["las"] for epoch in parser.epochs_ if epoch["run"] == run]
        assert best == las.index(max(las)) + 1


def test_the_best_epoch_is_one_that_was_trained_with_a_beam():
    train, dev = make_memorisable_treebank(20, 8, seed=1), make_memorisable_treebank(10, 8, seed=2)
    parser = ArcEagerParser(beam=3, min_count=1, min_updates=1, epochs=5, runs=1).fit(train, dev=dev)
    greedy, searched = parser.epochs_[:2], parser.epochs_[2:]
    assert all({"wrong_moves", "wrong_labels"} < epoch.keys() for epoch in greedy)
    assert all(0 <= epoch["wrong_sentences"] <= 1 for epoch in searched)
    (best,) = parser.best_epochs_
    las = [epoch["las"] for epoch in searched]
    assert best == las.index(max(las)) + 3
    assert parser.dev_result_.las == pytest.approx(max(las))


def test_learners_without_epochs_are_evaluated_on_dev():
    bank = make_memorisable_treebank(2, 6, seed=1)
    parser = ArcEagerParser(learner="svm", min_count=1).fit(bank, dev=bank)
    assert parser.epochs_ == [] and parser.best_epochs_ == []
    assert parser.dev_result_.n_words == 12


def test_verbose_prints_the_epochs(capsys):
    bank = make_memorisable_treebank(2, 6, seed=1)
    ArcEagerParser(epochs=2, verbose=1).fit(bank, dev=bank)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[ArcEagerParser] ") for line in lines)
    assert "2 sentences, 12 words" in lines[0]
    assert sum("epoch" in line for line in lines) == 4
    ArcEagerParser(learner="svm", verbose=2).fit(bank)
    assert "part 1 of" in capsys.readouterr().out
    ArcEagerParser(epochs=2).fit(bank)
    assert capsys.readouterr().out == ""


def test_treebanks_without_arcs_are_learnt():
    """In a treebank of sentences of one word, there are no arcs to label."""
    bank = bank_of([(["a"], ["X"], ["x"], [0], ["root"]), (["b"], ["Y"], ["y"], [0], ["top"])] * 2)
    parsed = ArcEagerParser(min_count=1).fit(bank).parse([["a", "b", "c"]], [["X", "Y", "X"]])[0]
    assert is_tree(parsed.heads) and set(parsed.deprels) == {"root"}


# --- Ctrl-C -----------------------------------------------------------------------------------------


@pytest.mark.hostile
@needs_sigint
def test_stops_promptly_on_ctrl_c():
    check_interrupt(
        """
        import io
        from unkernel.data import read_conllu
        from unkernel.parsing import ArcEagerParser
        words = [f"{i} {'abc'[i % 3]} _ X X _ {i - 1} {'xyz'[i % 2]} _ _" for i in range(1, 40)]
        bank = read_conllu(io.StringIO("\\n".join([*words, "", ""]).replace(" ", "\\t") * 2000))
        ready = lambda step: print("ready", flush=True)  # the treebank has been read: the first epoch begins
        ArcEagerParser(3, epochs=10_000).fit_reporting(bank, on_progress=ready)
    """
    )


def test_an_interrupted_fit_leaves_an_unfitted_parser(monkeypatch):
    parser = ArcEagerParser(epochs=1).fit(make_memorisable_treebank(2, 6, seed=1))

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(classifier_training.OnlineLearner, "_run_epoch", stop)
    with pytest.raises(KeyboardInterrupt):
        parser.fit(make_memorisable_treebank(3, 7, seed=2))
    with pytest.raises(NotFittedError):
        parser.parse([["a"]])
    monkeypatch.undo()
    assert parser.fit(XOR_HEADS).evaluate(XOR_HEADS).n_words == 8


def test_a_refused_treebank_does_not_change_the_parser():
    bank = make_memorisable_treebank(2, 6, seed=1)
    parser = ArcEagerParser(epochs=1).fit(bank)
    expected = parser.parse(bank).to_bytes()
    with pytest.raises(ValueError, match="no sentences"):
        parser.fit(Treebank.from_words([]))
    assert parser.parse(bank).to_bytes() == expected
