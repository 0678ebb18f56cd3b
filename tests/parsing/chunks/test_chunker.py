"""The chunker: decoding against the slow twin, predictions, files, and estimator conventions."""

import dataclasses
import io
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from reference.chunking import (
    SCHEMES,
    Model,
    Sentence,
    decode,
    find_chunks,
    most_probable,
    numbered_rows,
    parse_templates,
    valid,
    write_tags,
)
from reference.selection import parametrize_pairs
from unkernel import FormatError, load
from unkernel.data import ChunkCorpus, datasets
from unkernel.models import container
from unkernel.parsing import Chunker, ChunkModel
from unkernel.parsing.chunks.estimator import _TEMPLATES
from unkernel.parsing.template_files import read_templates

WORDS = ["the", "old", "man", "He", "saw", "sees", "in", "Rome", ",", "up"]
POS = dict(zip(WORDS, ["DT", "JJ", "NN", "PRP", "VBD", "VBZ", "IN", "NNP", ",", "RP"], strict=True))
CHUNK_TYPES = {
    "DT": "NP",
    "JJ": "NP",
    "NN": "NP",
    "PRP": "NP",
    "NNP": "NP",
    "VBD": "VP",
    "VBZ": "VP",
    "IN": "PP",
    "RP": "PRT",
}


def make_sentence(random: np.random.Generator) -> tuple[list[str], list[str], list[str]]:
    """Return words whose chunks follow a rule, with some exceptions."""
    words = [WORDS[k] for k in random.integers(len(WORDS), size=random.integers(1, 12))]
    tags, previous_type = [], "O"
    for word in words:
        chunk_type = CHUNK_TYPES.get(POS[word])
        continues_chunk = chunk_type == previous_type and POS[word] != "DT" and random.random() < 0.9
        tags.append("O" if chunk_type is None else f"{'I' if continues_chunk else 'B'}-{chunk_type}")
        previous_type = chunk_type or "O"
    return words, [POS[word] for word in words], tags


def make_corpus(sentences: int = 60, seed: int = 0) -> ChunkCorpus:
    random = np.random.default_rng(seed)
    words, pos, tags = zip(*(make_sentence(random) for _ in range(sentences)), strict=True)
    return ChunkCorpus.from_words(list(words), list(pos), tags=list(tags))


CORPUS = make_corpus()
TEST = make_corpus(40, seed=1)


def list_tags(corpus: ChunkCorpus) -> list[list[str]]:
    return [sentence.tags for sentence in corpus]


@pytest.fixture(scope="module")
def chunker() -> Chunker:
    return Chunker().fit(CORPUS)


@pytest.fixture
def words_only(tmp_path: Path) -> Path:
    """Return templates that need no parts of speech."""
    path = tmp_path / "words.txt"
    path.write_text("word[0]\nword[-1]\nword[1]\ntag[-1]\n")
    return path


# --- Answers --------------------------------------------------------------------------------------------


def make_slow_twin(chunker: Chunker, templates: str = "yamcha") -> Model:
    """Return the slow twin of a chunker."""
    model = chunker.model_
    backward, scheme = model.direction == "backward", model.scheme
    read_features = parse_templates(read_templates(templates, _TEMPLATES)[0])
    classes = chunker.classes_.tolist()
    sentences = [
        Sentence(s.words, s.pos, [classes.index(t) for t in write_tags(find_chunks(s.tags), len(s), scheme)])
        for s in CORPUS
    ]
    numbers, _ = numbered_rows(read_features, sentences, backward, 1)
    assert len(numbers) == chunker.n_features_
    return Model(read_features, numbers, classes, chunker.classifier_.score_one, scheme, backward, model.beam)


@parametrize_pairs(scheme=[*SCHEMES], direction=["forward", "backward"], beam=[1, 2, 5])
def test_tags_equal_the_slow_twin(scheme, direction, beam):
    chunker = Chunker(scheme=scheme, direction=direction, beam=beam, templates="yamcha").fit(CORPUS)
    model = make_slow_twin(chunker)
    for sentence in TEST[:8]:
        slow = decode(sentence.words, sentence.pos, model)
        fast = chunker.parse([sentence.words], [sentence.pos])[0].tags
        assert fast == write_tags(find_chunks(slow), len(sentence), "IOB2")


@pytest.mark.parametrize("templates", ["default", "words"])
def test_a_wide_beam_finds_the_most_probable_tags(templates):
    chunker = Chunker(beam=64, templates=templates).fit(CORPUS)
    model = make_slow_twin(chunker, templates)
    short = [sentence for sentence in TEST if len(sentence) < 4]
    assert len(short) > 5
    for sentence in short:
        best = most_probable(sentence.words, sentence.pos, model)
        assert chunker.parse([sentence.words], [sentence.pos])[0].tags == best


def test_a_beam_revises_decisions_that_the_next_word_refutes(tmp_path):
    """Of five words x, three are outside chunks, and two begin chunks that continue with p."""
    (tmp_path / "templates").write_text("word[0]\ntag[-1]\n")
    words = [["x", "q"]] * 3 + [["x", "p"]] * 2
    corpus = ChunkCorpus.from_words(words, tags=[["O", "O"]] * 3 + [["B-X", "I-X"]] * 2)
    model = Chunker(learner="logistic", C=100, templates=tmp_path / "templates").fit(corpus).model_
    tags = [list_tags(replace(model, beam=beam).parse([["x", "p"]]))[0] for beam in (1, 2)]
    assert tags == [["O", "O"], ["B-X", "I-X"]]


def test_parts_of_speech_are_optional():
    """Without parts of speech, the default templates use words only."""
    words = ChunkCorpus.from_words([s.words for s in CORPUS], tags=list_tags(CORPUS))
    chunker = Chunker().fit(words)
    assert chunker.model_.templates == read_templates("words", _TEMPLATES)[0]
    assert chunker.model_.templates == Chunker(templates="words").fit(CORPUS).model_.templates
    assert chunker.evaluate(TEST).f1 > 80  # the middle column is not used
    gammas = [fitted.classifier_.model.kernel.gamma for fitted in (chunker, Chunker().fit(CORPUS))]
    assert gammas == [0.05, 0.1]
    parsed = chunker.parse(io.BytesIO(b"He\nsaw\nthe\nold\nman\n"))
    assert parsed.to_bytes() == b"He B-NP\nsaw B-VP\nthe B-NP\nold I-NP\nman I-NP\n"
    assert chunker.parse(parsed) == parsed


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(
            st.tuples(st.text("aeT1é", min_size=1, max_size=4), st.sampled_from([*POS.values(), "?"])),
            min_size=1,
            max_size=9,
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(SCHEMES),
)
def test_any_words_get_valid_tags(given_words, scheme):
    chunker = _fit_cached(scheme)
    words = [[word for word, _ in sentence] for sentence in given_words]
    pos = [[tag for _, tag in sentence] for sentence in given_words]
    parsed = chunker.parse(words, tags=pos)
    assert [s.words for s in parsed] == words
    assert all(valid(tags, "IOB2") for tags in list_tags(parsed))


_CHUNKERS: dict[str, Chunker] = {}


def _fit_cached(scheme: str) -> Chunker:
    if scheme not in _CHUNKERS:
        _CHUNKERS[scheme] = Chunker(scheme=scheme).fit(CORPUS)
    return _CHUNKERS[scheme]


def test_words_that_no_known_tag_fits_are_outside_chunks(words_only):
    """Training has neither O nor S tags in IOBES, so one of three words cannot be in any chunk."""
    corpus = ChunkCorpus.from_words([["a", "b", "c", "d"]], tags=[["B-X", "I-X", "B-Y", "I-Y"]])
    for direction, expected in (("forward", ["B", "I", "O"]), ("backward", ["O", "B", "I"])):
        chunker = Chunker(scheme="IOBES", direction=direction, templates=words_only).fit(corpus)
        assert [tag[0] for tag in chunker.parse([["a", "b", "a"]])[0].tags] == expected


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("learner", ["svm", "logistic"])
def test_every_learner_and_degree_learns(degree, learner):
    result = Chunker(degree, learner=learner, C=10, gamma=1.0).fit(CORPUS).evaluate(TEST)
    assert result.f1 > 80


def test_two_tags_are_a_binary_decision(words_only):
    corpus = ChunkCorpus.from_words(
        [["a", "b", "a", "c"], ["b", "a"]], tags=[["B-X", "O", "B-X", "O"], ["O", "B-X"]]
    )
    chunker = Chunker(templates=words_only).fit(corpus)
    assert chunker.classes_.tolist() == ["O", "B-X"]
    assert list_tags(chunker.parse(corpus)) == list_tags(corpus)


def test_tags_do_not_depend_on_the_number_of_threads(chunker):
    long_corpus = make_corpus(500, seed=2)
    assert chunker.parse(long_corpus, n_jobs=1) == chunker.parse(long_corpus, n_jobs=2)
    reloaded = Chunker(n_jobs=2).fit(CORPUS)
    assert reloaded.parse(long_corpus) == chunker.parse(long_corpus)


def test_evaluate_counts_the_chunks_that_parse_finds(chunker):
    result = chunker.evaluate(TEST)
    parsed = chunker.parse(TEST)
    n_correct = sum(len(find_chunks(a.tags) & find_chunks(b.tags)) for a, b in zip(TEST, parsed, strict=True))
    assert result.correct == n_correct
    assert (result.sentences, result.tokens) == (len(TEST), TEST.n_words)
    assert result.tokens_per_second > 0
    assert "words, " in str(result)


def test_evaluate_counts_types_that_are_new(chunker):
    result = chunker.evaluate(ChunkCorpus.from_words([["He"]], [["PRP"]], tags=[["B-NEW"]]))
    assert result.per_type["NEW"].right == 1


def test_the_dev_corpus_is_evaluated(capsys):
    chunker = Chunker(verbose=1).fit(CORPUS, dev=TEST)
    assert chunker.dev_result_.f1 == chunker.evaluate(TEST).f1
    assert "[Chunker] 60 sentences" in capsys.readouterr().out


def test_texts_keep_their_bytes(chunker, tmp_path):
    text = b"He PRP  O\r\nsaw VBD\tO\r\n\r\n\r\nRome NNP O"
    (tmp_path / "text").write_bytes(text)
    parsed = chunker.parse(tmp_path / "text")
    assert parsed.to_bytes() == b"He PRP  B-NP\r\nsaw VBD\tB-VP\r\n\r\n\r\nRome NNP B-NP"
    untagged = chunker.parse(io.BytesIO(b"He PRP\nsaw VBD\n"))
    assert [s.tags for s in untagged] == [["B-NP", "B-VP"]]


def test_no_sentences_get_no_tags(chunker):
    assert len(chunker.parse([])) == 0
    assert chunker.parse(io.BytesIO(b"\n\n")).to_bytes() == b"\n\n"


def test_features_below_the_minimum_are_left_out():
    assert Chunker(min_count=30).fit(CORPUS).n_features_ < Chunker().fit(CORPUS).n_features_
    with pytest.raises(ValueError, match="lower min_count"):
        Chunker(min_count=10**6).fit(CORPUS)


# --- Refused inputs -------------------------------------------------------------------------------------


def test_texts_that_do_not_fit_are_refused(chunker, tmp_path):
    with pytest.raises(ValueError, match="4 columns, and the training text had 3"):
        chunker.parse(io.BytesIO(b"a b c d\n"))
    with pytest.raises(ValueError, match="templates look at parts of speech"):
        chunker.parse([["He"]])
    with pytest.raises(ValueError, match="templates look at parts of speech"):
        Chunker(templates="yamcha").fit(ChunkCorpus.from_words([["a", "b"]], tags=[["O", "B-X"]]))
    with pytest.raises(
        ValueError, match=r"2 columns, .*: the tag \('PRP' is none\) is missing; or give templ"
    ):
        Chunker(templates="yamcha").fit(io.BytesIO(b"He PRP\n"))
    with pytest.raises(FormatError, match=r":1:4: 'PRP' is no.* tag"):
        Chunker().fit(io.BytesIO(b"He PRP\n"))
    with pytest.raises(ValueError, match=r"2 columns, .*: the tag \('PRP' is none\) is missing$"):
        chunker.evaluate(io.BytesIO(b"He PRP\n"))
    with pytest.raises(ValueError, match=r"2 columns, .*: the part of speech is missing$"):
        chunker.evaluate(io.BytesIO(b"He B-NP\n"))
    with pytest.raises(ValueError, match=r"1 column, .*: the part of speech is missing$"):
        chunker.parse(io.BytesIO(b"He\n"))
    with pytest.raises(ValueError, match="tags go with lists of words"):
        chunker.parse(TEST, tags=[["X"]])
    with pytest.raises(ValueError, match="it has no tags"):
        Chunker().fit(ChunkCorpus.from_words([["a"]], [["N"]]))
    with pytest.raises(ValueError, match="two different tags"):
        Chunker().fit(ChunkCorpus.from_words([["a"]], [["N"]], tags=[["O"]]))
    with pytest.raises(FormatError, match=r"is no.* tag"):
        Chunker().fit(io.BytesIO(b"He PRP NP\n"))


def test_wrong_parameters_are_refused(tmp_path):
    for invalid in (
        {"degree": 4},
        {"scheme": "IOB"},
        {"direction": "up"},
        {"beam": 0},
        {"beam": 65},
        {"min_count": 0},
        {"engine": "pruned"},
        {"learner": "tree"},
    ):
        with pytest.raises(ValueError, match=next(iter(invalid))):
            Chunker(**invalid).fit(CORPUS)
    with pytest.raises(FileNotFoundError):
        Chunker(templates=tmp_path / "none").fit(CORPUS)
    (tmp_path / "bad").write_text("word[0]\nwurd[0]\n")
    with pytest.raises(FormatError, match=r"bad:2:1: 'wurd' is no.* attribute"):
        Chunker(templates=tmp_path / "bad").fit(CORPUS)
    (tmp_path / "latin").write_bytes(b"# \xff\nword[0]\n")
    with pytest.raises(FormatError, match="UTF-8"):
        Chunker(templates=tmp_path / "latin").fit(CORPUS)


def test_models_survive_changed_parameters_but_not_failed_fits():
    chunker = Chunker().fit(CORPUS)
    expected = chunker.parse(TEST)
    assert chunker.set_params(direction="backward", scheme="IOBES").parse(TEST) == expected
    with pytest.raises(ValueError, match="lower min_count"):
        chunker.set_params(min_count=10**6).fit(CORPUS)
    with pytest.raises(NotFittedError):
        chunker.parse(TEST)


def test_unfitted_chunkers_are_refused():
    for use in (lambda c: c.parse([["a"]]), lambda c: c.evaluate(TEST), lambda c: c.to_container()):
        with pytest.raises(NotFittedError):
            use(Chunker())


# --- Conventions of estimators --------------------------------------------------------------------------


def test_parameters_clone_and_repr():
    chunker = Chunker(3, scheme="IOE2")
    assert clone(chunker).get_params() == chunker.get_params()
    assert repr(chunker) == "Chunker(degree=3, scheme='IOE2')"
    assert chunker.set_params(C=2.0).C == 2.0


def test_pickled_chunkers_parse_like_the_original(chunker):
    reloaded = pickle.loads(pickle.dumps(chunker))
    assert reloaded.parse(TEST) == chunker.parse(TEST)
    assert repr(pickle.loads(pickle.dumps(Chunker()))) == "Chunker()"


# --- Files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [{}, {"degree": 1}, {"learner": "logistic"}, {"scheme": "IOE1", "direction": "backward"}, {"beam": 1}],
)
def test_saved_chunkers_parse_like_the_original(tmp_path, parameters):
    chunker = Chunker(**parameters).fit(CORPUS)
    chunker.save(tmp_path / "chunks.uk")
    reloaded = Chunker.load(tmp_path / "chunks.uk")
    assert load(tmp_path / "chunks.uk").parse(TEST) == chunker.parse(TEST)
    assert reloaded.parse(TEST) == chunker.parse(TEST)
    assert reloaded.get_params() == chunker.get_params()
    assert reloaded.classes_.tolist() == chunker.classes_.tolist()
    reloaded.save(tmp_path / "again.uk")
    assert (tmp_path / "again.uk").read_bytes() == (tmp_path / "chunks.uk").read_bytes()


def test_templates_are_stored_in_the_file(words_only, tmp_path):
    chunker = Chunker(templates=words_only).fit(CORPUS)
    chunker.save(tmp_path / "chunks.uk")
    words_only.unlink()
    assert load(tmp_path / "chunks.uk").parse([["He"]]) == chunker.parse([["He"]])


def test_other_files_are_refused(chunker, tmp_path):
    chunker.classifier_.save(tmp_path / "model.uk")
    _, arrays, settings_ = container.read(tmp_path / "model.uk")
    with pytest.raises(FormatError, match="'parameters' is missing"):
        ChunkModel.from_container("model.uk", arrays, settings_)


_DEFAULT_TEMPLATES = [
    line for line in read_templates("default", _TEMPLATES)[0].split("\n") if line[:1].isalpha()
]
_LAST_IDS = f"features.ids.{len(_DEFAULT_TEMPLATES) - 1}"  # of tag[-1]


def _replace_first_byte(arrays, name, byte):
    changed = arrays[name].copy()
    changed[0] = byte
    return {name: changed}


_DAMAGE = {
    "words that are no text": lambda arrays, _: arrays.update(
        _replace_first_byte(arrays, "features.value_bytes.0", 0xFF)
    ),
    "parts of speech that are no text": lambda arrays, _: arrays.update(
        _replace_first_byte(arrays, "features.value_bytes.1", 0xC3)
    ),
    "bytes behind the words": lambda arrays, _: arrays.update(
        {"features.value_bytes.0": np.append(arrays["features.value_bytes.0"], np.uint8(65))}
    ),
    "no classes": lambda arrays, _: arrays.pop("classes"),
    "a class too many": lambda arrays, _: arrays.update(
        classes=np.append(arrays["classes"], arrays["classes"][-1:])
    ),
    "classes out of range": lambda arrays, _: arrays.update(classes=arrays["classes"] + 100),
    "negative classes": lambda arrays, _: arrays.update(classes=arrays["classes"] - 5),
    "no templates": lambda _, settings: settings.pop("templates"),
    "bad templates": lambda _, settings: settings.update(templates="wurd[0]"),
    "other templates": lambda _, settings: settings.update(templates="word[0]+pos[0]"),
    "no scheme": lambda _, settings: settings.update(scheme="IOX"),
    "no direction": lambda _, settings: settings.pop("direction"),
    "bad parameters": lambda _, settings: settings["parameters"].update(scheme="IOX"),
    "unknown parameters": lambda _, settings: settings["parameters"].update(color="red"),
    "twice a type": lambda _, settings: settings.update(types=["NP"] * len(settings["types"])),
    "types that are no names": lambda _, settings: settings.update(types=[1]),
    "no classifier": lambda _, settings: settings.pop("model"),
    "another classifier": lambda _, settings: settings["model"].update(kind="tree"),
    "no engine": lambda _, settings: settings.update(engine="pruned"),
    "no beam": lambda _, settings: settings.update(beam=0),
    "too wide a beam": lambda _, settings: settings.update(beam=10**9),
    "a beam that is no number": lambda _, settings: settings.update(beam="4"),
    "no columns": lambda _, settings: settings.update(columns=-1),
    "features of tags that there are not": lambda arrays, _: arrays.update(
        {_LAST_IDS: np.append(arrays[_LAST_IDS], np.full(9, -1, np.int32))}
    ),
    "too few features": lambda _, settings: settings.update(features=3),
}


def test_features_of_another_chunker_are_refused(chunker):
    _, arrays, settings_ = chunker.to_container()
    _, arrays_of_small_chunker, small_settings = Chunker(min_count=9).fit(CORPUS).to_container()
    other_arrays = {name: array for name, array in arrays.items() if not name.startswith("features.")}
    features = {
        name: array for name, array in arrays_of_small_chunker.items() if name.startswith("features.")
    }
    with pytest.raises(FormatError, match="columns, and there are"):
        Chunker.from_container(
            "file.uk", other_arrays | features, settings_ | {"features": small_settings["features"]}
        )


@pytest.mark.parametrize("damage", _DAMAGE)
def test_damaged_files_are_refused(chunker, damage):
    _, arrays, stored = chunker.to_container()
    settings_ = {key: dict(value) if isinstance(value, dict) else value for key, value in stored.items()}
    arrays = dict(arrays)
    _DAMAGE[damage](arrays, settings_)
    with pytest.raises(FormatError) as caught:
        Chunker.from_container("file.uk", arrays, settings_)
    assert caught.value.file == "file.uk"


def test_files_without_a_beam_decide_word_by_word(chunker):
    _, arrays, stored = chunker.to_container()
    del stored["beam"]
    assert ChunkModel.from_container("file.uk", arrays, stored).beam == 1


def test_files_have_the_kind_of_chunkers(chunker, tmp_path):
    chunker.save(tmp_path / "chunks.uk")
    assert container.read(tmp_path / "chunks.uk")[0] == "chunker"


# --- Real text ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("templates", "min_f1"), [("default", 93.8), ("yamcha", 93.5), ("words", 92.7)])
def test_conll2000(templates, min_f1):
    try:
        train, test = datasets.path("conll2000"), datasets.path("conll2000", "test")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    result = Chunker(templates=templates).fit(train).evaluate(test)
    assert result.f1 > min_f1


@pytest.mark.parametrize("beam", [0, -1, 65, 1.5, True, "4", None])
def test_invalid_beams_are_refused(beam):
    text = ChunkCorpus.from_words([["He", "left"]], [["PRP", "VBD"]], tags=[["B-NP", "B-VP"]])
    with pytest.raises(ValueError, match="beam must be a number from 1 to 64"):
        dataclasses.replace(Chunker().fit(text).model_, beam=beam)
