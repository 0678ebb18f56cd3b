"""Explanations of parsers: they add up to the engines' scores, and replaying them gives the results."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import arc_eager, bunsetsu, chunking
from reference.features import ABSENT
from reference.parse_corpora import MAKERS
from reference.selection import few_examples, slow_after
from reference.treebanks import template_texts, treebanks
from unkernel.data import ChunkCorpus, read_bunsetsu, read_chunks, read_conllu
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker
from unkernel.parsing.bunsetsu.templates import TEMPLATES

READERS = {
    "trees": (ArcEagerParser, read_conllu),
    "bunsetsu": (BunsetsuParser, read_bunsetsu),
    "chunks": (Chunker, lambda file: read_chunks(file, tagged=True)),
}
NUMBERS = {
    "left-valency": ("0", "1", "2", "3+"),
    "right-valency": ("0", "1", "2", "3+"),
    "distance": ("1", "2", "3", "4", "5-6", "7-9", "10-14", "15+"),
    "direction": ("right", "left"),
}


def corpus_of(task, sentences=40, seed=0):
    return READERS[task][1](io.BytesIO(MAKERS[task](sentences, seed).encode()))


def check_sums(parser, source, top):
    """Check that the contributions of evidence, rest and intercept add up to the engines' scores."""
    rows = list(parser.model_._trace_decisions(source, None))
    explanations = parser.explain(source, top=top)
    assert len(explanations) == len(rows)
    for explanation, (decision, row) in zip(explanations, rows, strict=True):
        scores = np.atleast_1d(parser.parts_[decision.part].score_one(row.tolist()))
        expected = [-scores[0], scores[0]] if len(scores) == 1 else scores
        assert list(explanation.scores) == parser.class_names(decision.part)
        np.testing.assert_allclose(list(explanation.scores.values()), expected, rtol=1e-9, atol=1e-7)
        for candidate, name in (("chosen", explanation.chosen), ("runner_up", explanation.runner_up)):
            parts = [explanation.intercept, *explanation.evidence, explanation.rest]
            total = sum(getattr(part, candidate) for part in parts)
            np.testing.assert_allclose(total, explanation.scores.get(name, 0.0), rtol=1e-9, atol=1e-7)
        assert len(explanation.evidence) == (
            explanation.n_conjunctions if top is None else min(top, explanation.n_conjunctions)
        )
        differences = [abs(part.chosen - part.runner_up) for part in explanation.evidence]
        assert differences == sorted(differences, reverse=True)
        assert all(
            explanation.scores[name] > explanation.scores[explanation.chosen] for name in explanation.barred
        )
        assert explanation.chosen not in (explanation.runner_up, *explanation.barred)
    return explanations


@pytest.mark.parametrize(
    ("task", "options"),
    slow_after(
        6,
        [
            ("trees", {}),
            ("trees", {"learner": "svm", "split": "both", "degree": 1}),
            ("bunsetsu", {}),
            ("bunsetsu", {"degree": 3, "learner": "logistic"}),
            ("chunks", {"learner": "logistic"}),
            ("chunks", {"direction": "backward", "scheme": "IOBES"}),
            ("trees", {"degree": 3}),
            ("trees", {"beam": 4}),
            ("trees", {"learner": "svm", "engine": "bitsliced"}),
            ("bunsetsu", {"degree": 4}),
            ("bunsetsu", {"engine": "split"}),
            ("chunks", {}),
        ],
    ),
)
def test_contributions_add_up(task, options):
    parser = READERS[task][0](**options).fit(corpus_of(task))
    for top in (0, 3, None):
        explanations = check_sums(parser, corpus_of(task, 2, seed=1), top)
        assert explanations
        assert all(
            str(explanation).startswith(f"{explanation.question}: {explanation.chosen} ")
            for explanation in explanations
        )


# --- Trees, against the twin --------------------------------------------------------------------------


def twin_names(frame, section):
    """Return the name of each column, from the twin's templates and values."""

    def format_value(address, attribute, value):
        text = NUMBERS[attribute][value] if attribute in NUMBERS else value
        return f"{address}={'(none)' if text == ABSENT else text}"

    templates = frame.templates.sections[section]
    return {
        column: " + ".join(
            format_value(address, *filled) for address, filled in zip(templates[number], values, strict=True)
        )
        for (number, values), column in frame.columns[section].items()
    }


def replay(frame, sentence, decisions):
    """Return heads and labels from the parser's decisions, each of which must be the twin's next one."""
    state = arc_eager.State(len(sentence))
    while not state.finished:
        move, label = arc_eager.SHIFT, None
        if state.stack:
            part = frame.moves.part(frame.move_case(state, sentence))
            classes = frame.moves.classes[part]
            valid = [move for move in arc_eager.MOVES if state.valid(move)]
            move = next((move for move in classes if move in valid), valid[0])
            if len(classes) > 1 and set(classes) & set(valid):
                decision, row = next(decisions)
                assert (decision.kind, decision.words, decision.part) == (
                    "move",
                    (state.top, state.next),
                    f"moves.{part}",
                )
                assert row.tolist() == frame.row("moves", state, sentence)
                assert [
                    class_number for class_number in range(len(classes)) if decision.possible(class_number)
                ] == [class_number for class_number, move in enumerate(classes) if move in valid]
                move = classes[decision.chosen]
        if move in (arc_eager.LEFT_ARC, arc_eager.RIGHT_ARC):
            arc = state.arc(move)
            part = frame.arcs.part(frame.arc_case(arc, sentence))
            label = frame.labels[frame.arcs.classes[part][0]]
            if len(frame.arcs.classes[part]) > 1:
                decision, row = next(decisions)
                assert (decision.kind, decision.words, decision.part) == ("label", arc, f"labels.{part}")
                assert decision.forms == tuple(sentence[word - 1].form for word in arc)
                assert row.tolist() == frame.row("labels", state, sentence, arc)
                label = frame.labels[frame.arcs.classes[part][decision.chosen]]
        state.apply(move, label)
    labels = [label or frame.root_label for label in state.labels]
    return arc_eager.deprojectivise(state.heads, labels, frame.marks)


@few_examples(10)
@given(
    text=template_texts(),
    bank=treebanks(),
    test_bank=treebanks(),
    split=st.sampled_from(["none", "labels", "both"]),
    degree=st.integers(1, 3),
    beam=st.sampled_from([1, 1, 3]),
)
def test_explained_decisions_on_trees_rebuild_the_parse(
    tmp_path_factory, *, text, bank, test_bank, split, degree, beam
):
    path = tmp_path_factory.mktemp("templates") / "own.txt"
    path.write_text(text)
    options = {"degree": degree, "split": split, "beam": beam, "epochs": 3, "min_updates": 1}
    parser = ArcEagerParser(templates=path, min_count=1, **options).fit(bank)
    frame = arc_eager.Frame(text, [sentence.words for sentence in bank], split=split, min_count=1)
    check_sums(parser, test_bank, 2)
    decisions = iter(parser.model_._trace_decisions(test_bank, None))
    for sentence, parsed in zip(test_bank, parser.parse(test_bank), strict=True):
        heads, labels = replay(frame, list(sentence), decisions)
        assert (heads, labels) == (parsed.heads, parsed.deprels)
    assert next(decisions, None) is None
    for section in ("moves", "labels"):
        named = parser.feature_names(section)
        expected = twin_names(frame, section)
        assert {column: named(column) for column in expected} == expected


def test_impossible_moves_are_marked():
    bank = corpus_of("trees")
    parser = ArcEagerParser(min_count=1, min_updates=1, epochs=1).fit(bank)
    words = [["dog"] * 6, ["saw", "saw", ".", "the"], ["."] * 5]
    tags = [["NOUN"] * 6, ["VERB", "VERB", "PUNCT", "DET"], ["PUNCT"] * 5]
    explanations = parser.explain(words, tags)
    assert any(explanation.barred for explanation in explanations)
    for explanation in explanations:
        assert explanation.scores[explanation.chosen] >= explanation.scores.get(
            explanation.runner_up, -np.inf
        )


# --- Bunsetsu and chunks, against their twins ---------------------------------------------------------


@few_examples(10)
@given(text=bunsetsu.corpora(4))
def test_explained_decisions_on_bunsetsu_rebuild_the_parse(bunsetsu_parser, text):
    corpus = read_bunsetsu(io.BytesIO(text.encode()))
    decisions = iter(bunsetsu_parser.model_._trace_decisions(corpus, None))
    for sentence, parsed in zip(bunsetsu.read(text), bunsetsu_parser.parse(corpus), strict=True):

        def depends(modifier, candidate, names, sentence=sentence):
            decision, row = next(decisions)
            assert decision.words == (modifier + 1, candidate + 1)
            feature_names = {bunsetsu_parser.feature_name(column) for column in row.tolist()}
            assert feature_names <= names
            return bool(decision.chosen)

        heads, _ = bunsetsu.parse(sentence, depends, TEMPLATES)
        assert tuple(heads) == tuple(parsed.heads)
    assert next(decisions, None) is None


@pytest.fixture(scope="module")
def bunsetsu_parser():
    return BunsetsuParser().fit(corpus_of("bunsetsu", 60))


WORDS = st.lists(st.sampled_from(["the", "dog", "saw", "a", ".", "Tree", "42", "é"]), min_size=1, max_size=8)
TEMPLATE_TEXT = """word[0]  # mine
 suffix2[-1] + tag[-1]
shape[+1]
pos[0]+pos[1]+tag[-2]
prefix1[2]+lower[0]
"""


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOE1", "IOE2", "IOBES"])
@few_examples(5)
@given(sentences=st.lists(WORDS, min_size=1, max_size=4))
def test_explained_decisions_on_chunks_rebuild_the_tags(scheme, direction, sentences, tmp_path_factory):
    chunker = get_chunker(scheme, direction, tmp_path_factory)
    step = 1 if direction == "forward" else -1
    pos = [[word.upper()[:2] if word != "the" else "DT" for word in words] for words in sentences]
    corpus = ChunkCorpus.from_words(sentences, pos)
    names = chunker.feature_names("tags")
    classes, templates = chunker.class_names("tags"), chunking.parse_templates(TEMPLATE_TEXT)
    decisions = list(chunker.model_._trace_decisions(corpus, None))
    parsed = chunker.parse(corpus)
    for number, (words, sentence_pos) in enumerate(zip(sentences, pos, strict=True)):
        sentence_decisions = [(decision, row) for decision, row in decisions if decision.sentence == number]
        assert [decision.words for decision, _ in sentence_decisions] == [
            (word,) for word in range(1, len(words) + 1)
        ]
        chosen = [decision.chosen for decision, _ in sentence_decisions]
        tags = [classes[k] for k in chosen]
        assert chunking.valid(tags, scheme)
        assert chunking.find_chunks(tags) == chunking.find_chunks(parsed[number].tags)
        read_words, read_pos, read_tags = words[::step], sentence_pos[::step], chosen[::step]
        for i, (_, row) in enumerate(sentence_decisions[::step]):
            features = chunking.features_at(templates, read_words, read_pos, read_tags, i)
            expected = {twin_name(templates, feature, classes) for feature in features}
            assert {names(column) for column in row.tolist()} <= expected


CHUNKERS = {}


def get_chunker(scheme, direction, tmp_path_factory):
    if (scheme, direction) not in CHUNKERS:
        path = tmp_path_factory.mktemp("templates") / "own.txt"
        path.write_text(TEMPLATE_TEXT)
        chunker = Chunker(scheme=scheme, direction=direction, templates=path)
        CHUNKERS[scheme, direction] = chunker.fit(corpus_of("chunks", 30))
    return CHUNKERS[scheme, direction]


def twin_name(templates, feature, classes):
    number, values = feature
    ends = {"<<": "(before the first)", ">>": "(behind the last)"}

    def format_value(value):
        return classes[value] if isinstance(value, int) else ends.get(value, value[1:])

    filled_template = zip(templates[number], values, strict=True)
    return " + ".join(f"{name}[{offset}]={format_value(value)}" for (name, offset), value in filled_template)


@pytest.mark.parametrize("task", ["bunsetsu", "chunks", "trees"])
def test_every_feature_has_a_unique_name(task):
    parser = READERS[task][0]().fit(corpus_of(task))
    for part, classifier in parser.parts_.items():
        name = parser.feature_names(part)
        names = [name(column) for column in range(classifier.n_features_in_)]
        assert len(set(names)) == len(names)


# --- Refusals -----------------------------------------------------------------------------------------


def test_models_and_rows_that_cannot_be_explained_are_refused():
    corpus = corpus_of("bunsetsu")
    parser = BunsetsuParser(engine="pruned", threshold=1e-3).fit(corpus)
    with pytest.raises(ValueError, match="pruned"):
        parser.explain(corpus)
    with pytest.raises(ValueError, match="leave out tags"):
        BunsetsuParser().fit(corpus).explain(corpus, [["a"]])
    with pytest.raises(ValueError, match="top must be"):
        parser.explain(corpus, top=-1)
    with pytest.raises(ValueError, match="not fitted"):
        ArcEagerParser().explain([["a"]])


@pytest.mark.parametrize("task", READERS)
def test_no_sentences_have_no_explanations(task):
    parser = READERS[task][0]().fit(corpus_of(task))
    assert parser.explain(corpus_of(task)[:0]) == []


@pytest.mark.parametrize("task", MAKERS)
def test_the_heaviest_conjunctions_have_names_and_classes(task):
    text = MAKERS[task](40, 0).encode()
    read = {"trees": read_conllu, "bunsetsu": read_bunsetsu, "chunks": read_chunks}[task]
    estimator = {"trees": ArcEagerParser, "bunsetsu": BunsetsuParser, "chunks": Chunker}[task]
    parser = estimator().fit(read(io.BytesIO(text)))
    conjunctions = parser.heaviest(4)
    assert conjunctions == parser.to_model().heaviest(4)
    for kind in {part.partition(".")[0] for part in parser.parts_}:
        of_kind = [conjunction for conjunction in conjunctions if conjunction.part.partition(".")[0] == kind]
        assert len(of_kind) == 4
        assert [abs(conjunction.weight) for conjunction in of_kind] == sorted(
            (abs(conjunction.weight) for conjunction in of_kind), reverse=True
        )
        for conjunction in of_kind:
            name = parser.feature_names(conjunction.part)
            assert conjunction.features == tuple(name(column) for column in conjunction.columns)
            assert conjunction.label == " and ".join(conjunction.features)
            assert conjunction.for_class in parser.class_names(conjunction.part)
    assert parser.heaviest(0) == []
    with pytest.raises(ValueError, match="top must be"):
        parser.heaviest(-1)
