"""The same data, parameters and seed give the same file, independent of clocks and threads."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

from reference.parse_corpora import MAKERS
from unkernel import compile, load
from unkernel.data import read_bunsetsu, read_chunks, read_conllu
from unkernel.engines.search import candidates
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker

READERS = {
    "trees": read_conllu,
    "bunsetsu": read_bunsetsu,
    "chunks": lambda file: read_chunks(file, tagged=True),
}
OPTIONS = [
    ("trees", ArcEagerParser, {}),
    ("trees", ArcEagerParser, {"learner": "svm", "split": "both"}),
    ("trees", ArcEagerParser, {"learner": "svm", "engine": "expanded"}),
    ("trees", ArcEagerParser, {"learner": "logistic", "degree": 1}),
    ("bunsetsu", BunsetsuParser, {}),
    ("bunsetsu", BunsetsuParser, {"degree": 1}),
    ("bunsetsu", BunsetsuParser, {"degree": 3, "learner": "logistic"}),
    ("bunsetsu", BunsetsuParser, {"engine": "expanded"}),
    ("bunsetsu", BunsetsuParser, {"degree": 4}),
    ("bunsetsu", BunsetsuParser, {"degree": 4, "engine": "split"}),
    ("bunsetsu", BunsetsuParser, {"degree": 4, "engine": "bitsliced"}),
    ("bunsetsu", BunsetsuParser, {"degree": 4, "engine": "inverted"}),
    ("bunsetsu", BunsetsuParser, {"degree": 4, "engine": "pruned", "threshold": 1e-9}),
    ("bunsetsu", BunsetsuParser, {"trie": "corpus", "trie_nodes": 50}),
    ("chunks", Chunker, {}),
    ("chunks", Chunker, {"learner": "logistic"}),
    ("chunks", Chunker, {"engine": "bitsliced"}),
]


def corpus_of(task):
    return READERS[task](io.BytesIO(MAKERS[task](60, 0).encode()))


@pytest.fixture
def random_clock(monkeypatch):
    """Make every measured time random, also in the next run of the test."""
    random = np.random.default_rng()
    monkeypatch.setattr(candidates, "measure", lambda *_: float(random.random()))
    ticks = itertools.accumulate(random.random() for _ in itertools.repeat(None))
    monkeypatch.setattr(candidates.time, "process_time", lambda: next(ticks))


def save_parser(estimator, options, corpus, path, n_jobs):
    parameters = {name: corpus if value == "corpus" else value for name, value in options.items()}
    parser = estimator(n_jobs=n_jobs, **parameters).fit(corpus)
    parser.set_params(n_jobs=None).save(path)
    return path.read_bytes()


@pytest.mark.parametrize(("task", "estimator", "options"), OPTIONS)
def test_files_are_the_same_byte_for_byte(task, estimator, options, random_clock, tmp_path):
    corpus = corpus_of(task)
    first = save_parser(estimator, options, corpus, tmp_path / "one.uk", 1)
    for n_jobs in (1, 2):
        assert save_parser(estimator, options, corpus, tmp_path / "two.uk", n_jobs) == first
    loaded = load(tmp_path / "one.uk")
    loaded.save(tmp_path / "again.uk")
    assert (tmp_path / "again.uk").read_bytes() == first
    assert [part.engine for part in loaded.parts_.values()]


def test_the_replaced_clock_changes_every_measurement(random_clock):
    """The test of equal files relies on this clock: equal measurements would hide differences."""
    parser = BunsetsuParser(4).fit(corpus_of("bunsetsu"))
    rows, _ = parser.decisions(corpus_of("bunsetsu"))
    model = parser.classifier_.model
    tables = [compile(model, sample=rows).candidates for _ in range(2)]
    assert tables[0] != tables[1]
    assert (
        compile(model, sample=rows, measure=False).candidates
        == compile(model, sample=rows, measure=False).candidates
    )


@pytest.mark.parametrize("engine", ["inverted", "bitsliced", "split", "expanded", "auto"])
def test_engines_compiled_without_measuring_give_the_same_scores(engine):
    parser = BunsetsuParser(4).fit(corpus_of("bunsetsu"))
    rows, _ = parser.decisions(corpus_of("bunsetsu"))
    model = parser.classifier_.model
    fast = compile(model, engine, sample=rows, measure=False)
    expected = compile(model, "inverted").decision_function(rows)
    assert np.allclose(fast.decision_function(rows), expected, atol=1e-9)
    assert all(candidate.microseconds == -1 for candidate in fast.candidates)
    assert [candidate.chosen for candidate in fast.candidates].count(True) == 1


def test_engines_beyond_the_memory_limit_are_not_chosen():
    parser = BunsetsuParser(4).fit(corpus_of("bunsetsu"))
    model = parser.classifier_.model
    min_bytes = compile(model, "bitsliced", measure=False).nbytes
    fast = compile(model, memory=min_bytes, measure=False)
    assert fast.nbytes <= min_bytes
    with pytest.raises(MemoryError):
        compile(model, memory=100, measure=False)


def test_a_trie_of_no_given_size_needs_measurements():
    corpus = corpus_of("bunsetsu")
    parser = BunsetsuParser().fit(corpus)
    rows, _ = parser.decisions(corpus)
    with pytest.raises(ValueError, match="measure=False needs trie_nodes"):
        compile(parser.classifier_.model, trie=rows, measure=False)
    assert BunsetsuParser(trie=corpus).fit(corpus).parse(corpus).to_bytes() == parser.parse(corpus).to_bytes()


@pytest.mark.parametrize(
    ("task", "estimator"), [(task, kind) for task, kind, options in OPTIONS if not options]
)
def test_zero_threads_are_refused(task, estimator):
    corpus = corpus_of(task)
    message = "n_jobs must be a number of threads, None for one or -1 for all cores, got 0"
    with pytest.raises(ValueError, match=message):
        estimator(n_jobs=0).fit(corpus)
    fitted = estimator().fit(corpus)
    with pytest.raises(ValueError, match=message):
        fitted.parse(corpus, n_jobs=0)
    with pytest.raises(ValueError, match="n_jobs must be"):
        part = next(iter(fitted.parts_.values()))
        part.predict(np.ones((1, part.n_features_in_)), n_jobs=0)


# --- Engines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "estimator"),
    [("trees", ArcEagerParser), ("bunsetsu", BunsetsuParser), ("chunks", Chunker)],
)
@pytest.mark.parametrize("degree", [2, 3])
def test_decisions_do_not_depend_on_the_engine(task, estimator, degree):
    corpus = corpus_of(task)
    expected = estimator(degree, learner="svm", tol=1e-2).fit(corpus).parse(corpus).to_bytes()
    for engine in ("inverted", "bitsliced", "split", "expanded"):
        parser = estimator(degree, learner="svm", tol=1e-2, engine=engine).fit(corpus)
        assert {part.engine for part in parser.parts_.values()} == {engine}
        assert parser.parse(corpus).to_bytes() == expected


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (ArcEagerParser, {"engine": "split"}),
        (ArcEagerParser, {"learner": "logistic", "engine": "inverted"}),
        (ArcEagerParser, {"learner": "svm", "degree": 1, "engine": "inverted"}),
        (BunsetsuParser, {"learner": "logistic", "engine": "split"}),
        (BunsetsuParser, {"degree": 1, "engine": "pruned", "threshold": 0.1}),
        (BunsetsuParser, {"engine": "pruned"}),
        (BunsetsuParser, {"threshold": 0.1}),
        (BunsetsuParser, {"trie_nodes": 3}),
        (BunsetsuParser, {"memory": "much"}),
        (Chunker, {"learner": "logistic", "engine": "bitsliced"}),
        (Chunker, {"degree": 1, "engine": "split"}),
    ],
)
def test_impossible_engines_are_refused_before_reading(estimator, options):
    with pytest.raises(ValueError, match=r"^(engine|trie_nodes|memory)"):
        estimator(**options).fit("nowhere")
