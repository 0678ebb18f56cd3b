"""The tagger against its slow twin, on generated treebanks; its files; its errors."""

import io
import pickle
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unkernel
from reference.selection import few_examples
from reference.tagging import Column
from unkernel import FormatError
from unkernel.data import Treebank, read_conllu
from unkernel.parsing import Tagger, TaggerModel
from unkernel.parsing.template_files import read_templates
from unkernel.parsing.text import column_task
from unkernel.parsing.text import tagger as module

FORMS = ["a", "B", "ab", "Ab", "c1", "é", "running", "-"]
COLUMNS = ("upos", "xpos", "feats")
SPLITS = {"upos": 0, "xpos": 1, "feats": 2}


@st.composite
def banks(draw):
    word = st.tuples(
        st.sampled_from(FORMS),
        st.sampled_from("NVX"),
        st.sampled_from("nv"),
        st.sampled_from(["_", "P=1", "P=2"]),
    )
    sentence = st.lists(word, min_size=1, max_size=6)
    sentences = draw(st.lists(sentence, min_size=1, max_size=5))
    fields = ("form", *COLUMNS)
    return [[dict(zip(fields, word, strict=True)) for word in sentence] for sentence in sentences]


def treebank(sentences):
    lines = []
    for sentence in sentences:
        for number, word in enumerate(sentence, 1):
            fields = [str(number), word["form"], "_", *(word[name] for name in COLUMNS), *["_"] * 4]
            lines.append("\t".join(fields))
        lines.append("")
    return read_conllu(io.StringIO("\n".join(lines) + "\n"))


@given(
    train=banks(),
    test=banks(),
    degree=st.integers(1, 2),
    min_count=st.integers(1, 2),
    min_updates=st.integers(1, 3),
    epochs=st.integers(1, 4),
    seed=st.integers(0, 99),
    often=st.integers(1, 4),
)
@few_examples(10)
def test_tags_equal_the_slow_twin(*, train, test, degree, min_count, min_updates, epochs, seed, often):
    options = {"degree": degree, "min_count": min_count, "min_updates": min_updates, "epochs": epochs}
    bank = treebank(train)
    columns = [name for name in COLUMNS if set(bank.symbols(name)[1]) - {"_"}]
    with mock.patch.dict(column_task._MIN_CERTAIN_COUNT, dict.fromkeys(COLUMNS, often)):
        tagger = Tagger(columns, random_state=seed, **options).fit(bank)
    column_seed = int(np.random.RandomState(seed).randint(2**31, size=1)[0])
    expected = [[dict(word) for word in sentence] for sentence in test]
    earlier_columns = []
    for name in columns:
        templates = read_templates("next" if earlier_columns else "first", module._TEMPLATES)[0]
        templates += "".join(f"{earlier}[0]\n" for earlier in earlier_columns)
        split = min(SPLITS[name], len(earlier_columns))
        column = Column(
            name, templates, list(earlier_columns), split, often=often, gold=2, seed=column_seed, **options
        )
        column.learn(train)
        for sentence in expected:
            column.predict(sentence)
        earlier_columns.append(name)
    tagged = tagger.tag(treebank(test))
    for name in columns:
        tags = [getattr(sentence, name) for sentence in tagged]
        assert tags == [[word[name] for word in sentence] for sentence in expected]


BANK = Treebank.from_words(
    [["They", "saw", "dogs"], ["Dogs", "bark"], ["She", "runs"]],
    [["PRON", "VERB", "NOUN"], ["NOUN", "VERB"], ["PRON", "VERB"]],
    xpos=[["PRP", "VBD", "NNS"], ["NNS", "VBP"], ["PRP", "VBZ"]],
    lemmas=[["they", "see", "dog"], ["dog", "bark"], ["she", "run"]],
)


@pytest.fixture(scope="module")
def tagger():
    return Tagger(min_count=1, min_updates=1).fit(BANK[[0, 1, 2] * 5])


def test_columns_missing_in_the_treebank_are_not_learnt(tagger):
    assert tagger.columns_ == ["upos", "xpos", "lemma"]
    assert Tagger(["xpos"], min_count=1, min_updates=1).fit(BANK).columns_ == ["xpos"]
    with pytest.raises(ValueError, match="has no feats to learn from"):
        Tagger(["feats"]).fit(BANK)
    with pytest.raises(ValueError, match="columns are some of upos, xpos, feats, lemma, got 'head'"):
        Tagger(["head"]).fit(BANK)
    with pytest.raises(ValueError, match="has no tags to learn from"):
        Tagger().fit(Treebank.from_words([["a"]]))
    with pytest.raises(ValueError, match="there are no sentences"):
        Tagger().fit(Treebank.from_words([]))


def test_tags_and_lemmas_of_new_sentences(tagger):
    assert tagger.evaluate(BANK).all == 100.0
    tagged = tagger.tag([["They", "bark"]])
    assert tagged[0].upos == ["PRON", "VERB"] and tagged[0].lemmas == ["they", "bark"]
    assert tagger.tag([]).to_bytes() == b""
    assert str(tagger.evaluate(BANK)).startswith("upos 100.00 %, xpos 100.00 %, lemma 100.00 %, all 100.00 %")


def test_columns_missing_in_the_treebank_are_not_measured(tagger):
    words = [["They", "bark"]]
    assert tagger.evaluate(Treebank.from_words(words, [["PRON", "VERB"]])).accuracy == {"upos": 100.0}
    with pytest.raises(ValueError, match="has no upos and no xpos and no lemma to compare with"):
        tagger.evaluate(Treebank.from_words(words))


def test_the_best_epoch_of_a_dev_treebank_is_kept():
    """The result is the tagger of the epoch with the highest accuracy on the dev treebank."""
    rng = np.random.default_rng(0)
    words = [[str(word) for word in rng.choice(FORMS, 5)] for _ in range(30)]
    noisy = Treebank.from_words(words, [[str(tag) for tag in rng.choice(["N", "V", "X"], 5)] for _ in words])
    options = {"min_count": 1, "min_updates": 1, "random_state": 3}
    dev = noisy[:10]
    shares = [Tagger(epochs=epochs, **options).fit(noisy[10:]).evaluate(dev).all for epochs in range(1, 7)]
    best_tagger = Tagger(epochs=6, **options).fit(noisy[10:], dev=dev)
    assert best_tagger.dev_result_.all == max(shares) > min(shares)
    with pytest.raises(ValueError, match="there are no sentences"):
        Tagger(**options).fit(noisy, dev=Treebank.from_words([]))


def test_other_columns_and_comments_are_kept(tagger):
    lines = [
        "# a comment",
        "1-2\tab" + "\t_" * 8,
        "1\ta\t_\tX\t_\tF=1\t2\tdep\t_\tm",
        "2\tb\t_\tX\t_\t_\t0\troot\t_\t_",
    ]
    text = "\n".join([*lines, "", ""]).encode()
    tagged = tagger.tag(read_conllu(io.BytesIO(text)))
    assert tagged[0].feats == ["F=1", "_"] and tagged[0].heads == [2, 0] and tagged[0].misc == ["m", "_"]
    assert tagged.to_bytes().startswith(b"# a comment\n1-2\tab\t")


def test_tags_do_not_depend_on_the_number_of_threads(tagger):
    long_bank = BANK[[0, 1, 2] * 200]
    assert tagger.tag(long_bank, n_jobs=3).to_bytes() == tagger.tag(long_bank).to_bytes()


def test_files(tagger, tmp_path):
    tagger.save(tmp_path / "t.uk")
    for reloaded in (
        unkernel.load(tmp_path / "t.uk"),
        TaggerModel.load(tmp_path / "t.uk"),
        Tagger.load(tmp_path / "t.uk"),
        pickle.loads(pickle.dumps(tagger.model_)),
    ):
        assert reloaded.tag(BANK).to_bytes() == tagger.tag(BANK).to_bytes()
    unkernel.load(tmp_path / "t.uk").save(tmp_path / "again.uk")
    assert (tmp_path / "again.uk").read_bytes() == (tmp_path / "t.uk").read_bytes()


def change_column(settings, **changes):
    columns = [dict(column) for column in settings["columns"]]
    columns[1] |= changes
    return settings | {"columns": columns}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "upos"},
        {"name": "head"},
        {"split": 2},
        {"split": -1},
        {"cases": [[[0, 0], 0]]},
        {"cases": [[[0], 7]]},
        {"classes": [[0]]},
        {"classes": [[], [], []]},
        {"classes": [[99], [0], [1]]},
        {"features": 3},
        {"templates": "word[0]"},
        {"templates": "nonsense[0]"},
        {"lexicons": []},
        {"lexicons": ["other"]},
    ],
)
def test_damaged_files_are_refused(tagger, changes):
    _, arrays, settings = tagger.to_container()
    with pytest.raises(FormatError):
        TaggerModel.from_container("t.uk", arrays, change_column(settings, **changes))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("words", lambda a: a[:-1]),
        ("words", lambda a: np.frombuffer(b"a\n" * a.tobytes().count(b"\n"), np.uint8)),
        ("parts", lambda a: a - 9),
        ("parts", lambda a: a[1:]),
        ("parts", lambda a: a.astype(np.int64)),
        ("classes", lambda a: a + 99),
        ("classes", lambda a: a - 99),
        ("classes", lambda a: a + np.int32(2**30)),
    ],
)
def test_damaged_certain_classes_are_refused(tagger, name, damage):
    _, arrays, settings = tagger.to_container()
    damaged = arrays | {f"upos.certain.{name}": damage(arrays[f"upos.certain.{name}"])}
    with pytest.raises(FormatError):
        TaggerModel.from_container("t.uk", damaged, settings)


def test_files_without_certain_classes_are_read(tagger):
    _, arrays, settings = tagger.to_container()
    old_arrays = {key: array for key, array in arrays.items() if ".certain." not in key}
    assert TaggerModel.from_container("t.uk", old_arrays, settings).evaluate(BANK).accuracy["upos"] == 100.0


def test_damaged_edits_are_refused(tagger):
    _, arrays, settings = tagger.to_container()
    edits = np.frombuffer(b"k:x\n" * len(tagger.model_.columns[2].names), np.uint8)
    damaged = arrays | {"lemma.names": edits}
    with pytest.raises(FormatError, match="edit"):
        TaggerModel.from_container("t.uk", damaged, settings)


def test_explanations_name_the_column(tagger):
    explanations = tagger.explain([["Cats", "barked"]])  # both unseen in training
    assert {explanation.kind for explanation in explanations} >= {"upos"}
    assert tagger.heaviest(3)
