"""The bunsetsu parser against its slow twin: features, decisions, trees, files."""

from __future__ import annotations

import io
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from reference import bunsetsu as twin
from unkernel import FormatError, load
from unkernel.data import read_bunsetsu
from unkernel.parsing import BunsetsuParser, BunsetsuResult
from unkernel.parsing.bunsetsu.templates import TEMPLATES

ALL_TEMPLATES = [
    *(f"{role}.{word}.{field}" for role in ("before", "modifier", "candidate", "after")
      for word in ("first", "content", "function", "last") for field in twin.FIELDS),
    *(f"{role}.{attribute}" for role in ("before", "modifier", "candidate", "after")
      for attribute in ("beginning", "end", "brackets", "punctuation", "particles")),
    *(f"between.{attribute}" for attribute in ("distance", "brackets", "particles")),
    "same.before.modifier", "same.before.candidate", "same.before.after",
    "same.modifier.candidate", "same.modifier.after", "same.candidate.after",
]  # fmt: skip


def read(text):
    return read_bunsetsu(io.BytesIO(text.encode()))


def make_corpus(seed, sentences=60):
    """Return sentences where bunsetsu with が or を depend on the next verb, others on the next bunsetsu."""
    random = np.random.default_rng(seed)
    nouns = [word for word in twin.WORDS if " 名詞 " in word]
    verbs = [word for word in twin.WORDS if " 動詞 " in word]
    lines = []
    for _ in range(sentences):
        bunsetsu = []
        for _ in range(random.integers(3, 9)):
            if random.random() < 0.3:
                bunsetsu.append((verbs[random.integers(len(verbs))], ""))
            else:
                particle = ("が", "を", "の")[random.integers(3)]
                bunsetsu.append(
                    (nouns[random.integers(len(nouns))], f"{particle} {particle} {particle} 助詞 格助詞 * *")
                )
        bunsetsu.append((verbs[0], "。 。 。 特殊 句点 * *"))
        for number, (word, following) in enumerate(bunsetsu):
            verb = next((k for k in range(number + 1, len(bunsetsu)) if " 動詞 " in bunsetsu[k][0]), -1)
            head = verb if following[:1] in ("が", "を") or number == len(bunsetsu) - 1 else number + 1
            lines += [f"* {number} {head}D", word, *([following] if following else [])]
        lines.append("EOS")
    return "\n".join(lines) + "\n"


TRAIN, TEST = make_corpus(0), make_corpus(1, 40)


def fit_parser(degree=2, **options):
    return BunsetsuParser(degree, **{"C": 1.0, "min_count": 1} | options).fit(read(TRAIN))


@pytest.fixture(scope="module")
def parser():
    return fit_parser()


def rows_of(parser, X):
    names = [parser.feature_name(column) for column in range(X.shape[1])]
    return [{names[column] for column in X[row].indices} for row in range(X.shape[0])]


def check_trees(sizes, heads):
    """Check that every bunsetsu except the last has a head to its right, and that no dependencies cross."""
    begin = 0
    for size in sizes:
        sentence_heads = heads[begin : begin + size].tolist()
        begin += size
        assert all(number < head < size for number, head in enumerate(sentence_heads[:-1]))
        assert sentence_heads[-1:] in ([], [-1])
        for left, head in enumerate(sentence_heads[:-1]):
            assert all(sentence_heads[inner] <= head for inner in range(left + 1, head))


# --- Features ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("templates", [TEMPLATES, ALL_TEMPLATES], ids=["default", "all"])
def test_training_rows_equal_the_twin(templates):
    parser = fit_parser(1, templates=templates)
    X, y = parser.decisions(read(TRAIN))
    expected = [decision for sentence in twin.read(TRAIN) for decision in twin.follow(sentence, templates)]
    assert parser.n_decisions_ == len(expected) == X.shape[0]
    assert rows_of(parser, X) == [names for names, _ in expected]
    assert y.tolist() == [int(answer) for _, answer in expected]
    assert parser.n_features_ == len(set().union(*(names for names, _ in expected)))


@given(twin.corpora(min_sentences=1))
def test_rows_of_any_sentences_equal_the_twin(text):
    parser = _parser_of_all_templates()
    known_names = {parser.feature_name(column) for column in range(parser.n_features_)}
    X, y = parser.decisions(read(text))
    expected = [decision for sentence in twin.read(text) for decision in twin.follow(sentence, ALL_TEMPLATES)]
    assert rows_of(parser, X) == [names & known_names for names, _ in expected]
    assert y.tolist() == [int(answer) for _, answer in expected]
    for row in range(X.shape[0]):
        assert (np.diff(X[row].indices) > 0).all()  # the order that engines require


_PARSERS = {}


def _parser_of_all_templates():
    """Return a parser that has features of all words of the twin's corpora."""
    if "parser" not in _PARSERS:
        words = "\n".join(twin.WORDS)
        lines = [
            f"* {number} {min(number + 1, 11) if number < 11 else -1}D\n{words}\n" for number in range(12)
        ]
        _PARSERS["parser"] = BunsetsuParser(1, templates=ALL_TEMPLATES).fit(
            read(TRAIN + "".join(lines) + "EOS\n")
        )
    return _PARSERS["parser"]


def test_rare_features_are_dropped():
    parser = fit_parser(1, min_count=30)
    X, _ = parser.decisions(read(TRAIN))
    assert 0 < parser.n_features_ < fit_parser(1).n_features_
    assert X.sum(axis=0).min() >= 30


def test_names_of_features(parser):
    names = [parser.feature_name(column) for column in range(parser.n_features_)]
    assert "modifier.content.surface=本" in names
    assert "between.distance=2-5" in names
    assert len(set(names)) == len(names)
    with pytest.raises(IndexError):
        parser.feature_name(parser.n_features_)


NO_TEMPLATES = """
x modifier modifier.x modifier.content.x modifier.x.surface same.after.before same.modifier between.end
between modifier.content.surface. modifier.distance same.x.after
"""


@pytest.mark.parametrize("name", ["", *NO_TEMPLATES.split()])
def test_unknown_templates_are_refused(name):
    with pytest.raises(ValueError, match="no such template"):
        fit_parser(templates=["modifier.particles", name])


def test_repeated_templates_are_refused():
    with pytest.raises(ValueError, match="occurs twice"):
        fit_parser(templates=["modifier.particles", "between.distance", "modifier.particles"])


def test_the_default_templates():
    X, _ = fit_parser(1).decisions(read(TRAIN))
    assert (fit_parser(1, templates="default").decisions(read(TRAIN))[0] != X).nnz == 0
    with pytest.raises(ValueError, match="templates is empty"):
        fit_parser(templates=[])


def test_the_order_of_templates_does_not_matter():
    X, _ = fit_parser(1).decisions(read(TEST))
    other = fit_parser(1, templates=TEMPLATES[::-1])
    assert rows_of(other, other.decisions(read(TEST))[0]) == rows_of(fit_parser(1), X)


# --- Parsing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("learner", ["svm", "logistic"])
def test_parses_equal_the_twin(degree, learner):
    if learner == "logistic" and degree == 4:
        with pytest.raises(ValueError, match="up to 3"):
            fit_parser(4, learner="logistic")
        return
    parser = fit_parser(degree, learner=learner)
    columns = {parser.feature_name(column): column for column in range(parser.n_features_)}

    def depends(_i, _j, names):
        return parser.classifier_.score_one(sorted(columns[name] for name in names if name in columns)) > 0

    expected = [head for sentence in twin.read(TEST) for head in twin.parse(sentence, depends, TEMPLATES)[0]]
    assert parser.parse(read(TEST)).heads.tolist() == expected


@pytest.mark.parametrize(
    ("engine", "options"),
    [("expanded", {}), ("split", {}), ("inverted", {}), ("bitsliced", {}), ("pruned", {"threshold": 1e-9})],
)
def test_all_engines_make_the_same_decisions(engine, options):
    svm = {"degree": 4, "C": 1e-3}  # support vectors, from which all engines can be built
    expected = fit_parser(**svm, engine="inverted").parse(read(TEST))
    parser = fit_parser(**svm, engine=engine, **options)
    assert parser.classifier_.engine == engine
    assert parser.parse(read(TEST)).to_bytes() == expected.to_bytes()


def test_learns_the_pattern(parser):
    assert parser.evaluate(read(TEST)).dependency_accuracy > 97
    distance_parser = fit_parser(1, templates=["between.distance"])
    assert distance_parser.evaluate(read(TEST)).dependency_accuracy < 90


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_threads_do_not_matter(degree):
    parser = fit_parser(degree)
    corpus = read(make_corpus(2, 500))
    expected = parser.parse(corpus).to_bytes()
    for jobs in (1, 2, 3, -1):
        assert parser.parse(corpus, n_jobs=jobs).to_bytes() == expected


@given(twin.corpora())
def test_trees_are_well_formed(text):
    corpus = read(text)
    parsed = _parser_of_all_templates().parse(corpus)
    check_trees(np.diff(corpus.first_bunsetsu), parsed.heads)
    assert set(parsed.types) <= set(b"D")


def test_given_heads_do_not_affect_parsing(parser):
    corpus = read(TEST)
    assert (
        parser.parse(corpus.with_heads(np.full(corpus.n_bunsetsu, -1))).to_bytes()
        == parser.parse(corpus).to_bytes()
    )


def test_short_sentences_need_no_decisions(parser):
    text = "EOS\n" + "".join(f"* {k} -1D\n{twin.WORDS[0]}\n" for k in range(1)) + "EOS\n"
    text += "".join(f"* {k} -1D\n{twin.WORDS[0]}\n" for k in range(2)) + "EOS\n"
    corpus = read(text)
    assert parser.decisions(corpus)[0].shape[0] == 0
    assert parser.parse(corpus).heads.tolist() == [-1, 1, -1]


def test_unknown_words_have_no_features(parser):
    text = "".join(f"* {k} -1D\nx{k} x x x x x x\n" for k in range(3)) + "EOS\n"
    X, _ = parser.decisions(read(text))
    names = rows_of(parser, X)[0]
    assert all(not name.endswith("=x") for name in names)
    check_trees([3], parser.parse(read(text)).heads)


def test_heads_of_a_corpus_count_in_training():
    corpus = read(TRAIN)
    sizes = np.diff(corpus.first_bunsetsu)
    heads = np.concatenate([[*range(1, size), -1] for size in sizes])
    with pytest.raises(ValueError, match="all of one class"):
        BunsetsuParser(1).fit(corpus.with_heads(heads))


def test_tries_do_not_change_parses():
    without_trie = fit_parser(2)
    with_trie = fit_parser(2, trie=read(TEST), trie_nodes=50)
    assert with_trie.classifier_.trie is not None
    assert with_trie.parse(read(TEST)).to_bytes() == without_trie.parse(read(TEST)).to_bytes()


# --- Scores ------------------------------------------------------------------------------------------


def test_scores_do_not_count_the_last_bunsetsu(parser):
    corpus = read(TEST + "EOS\n")
    parses = parser.parse(corpus)
    assert str(parser.evaluate(parses)).startswith("100.00 % of ")
    heads = parses.heads.copy()
    size = int(corpus.first_bunsetsu[1])
    heads[size - 1] = 0  # the last one is not counted
    heads[size] = -1
    result = parser.evaluate(parses.with_heads(heads))
    dependencies = corpus.n_bunsetsu - 40
    assert (result.n_dependencies, result.n_sentences) == (dependencies, 40)
    assert result.dependency_accuracy == pytest.approx(100 * (dependencies - 1) / dependencies)
    assert result.sentence_accuracy == pytest.approx(100 * 39 / 40)
    assert result.sentences_per_second > 0


def test_scores_of_no_dependencies(parser):
    single = read("* 0 -1D\n本 ほん 本 名詞 普通名詞 * *\nEOS\n")
    assert parser.evaluate(single) == BunsetsuResult(100.0, 100.0, 0, 1, pytest.approx(0, abs=10))


def test_the_dev_corpus_is_evaluated():
    parser = BunsetsuParser(2, C=1.0).fit(read(TRAIN), dev=read(TEST))
    assert parser.dev_result_.dependency_accuracy == parser.evaluate(read(TEST)).dependency_accuracy


# --- Estimators and files ----------------------------------------------------------------------------


def test_parameters_follow_the_conventions_of_estimators():
    parser = BunsetsuParser(3, C=0.5, templates=("between.distance",))
    assert clone(parser).get_params() == parser.get_params()
    assert BunsetsuParser().get_params()["degree"] == 2


@pytest.mark.parametrize(
    "options",
    [
        {"degree": 0},
        {"degree": 5},
        {"C": 0.0},
        {"learner": "tree"},
        {"engine": "fast"},
        {"min_count": 0},
        {"tol": 0.0},
    ],
)
def test_parameters_are_checked(options):
    with pytest.raises(ValueError, match="parameter of BunsetsuParser"):
        BunsetsuParser(**options).fit(read(TRAIN))


def test_a_training_set_without_decisions():
    with pytest.raises(ValueError, match="there are no sentences"):
        BunsetsuParser().fit(read("EOS\n"))
    two = "* 0 1D\n犬 いぬ * 名詞 * * *\n* 1 -1D\n走る はしる * 動詞 * * *\nEOS\n"
    with pytest.raises(ValueError, match="needs sentences of three or more bunsetsu"):
        BunsetsuParser().fit(read(two * 3))


def test_a_parser_without_training(tmp_path):
    for use in (
        lambda p: p.parse(read(TEST)),
        lambda p: p.save(tmp_path / "p.uk"),
        lambda p: p.decisions(read(TEST)),
    ):
        with pytest.raises(ValueError, match="not fitted"):
            use(BunsetsuParser())


def test_the_same_training_gives_the_same_parser(tmp_path):
    for name, jobs in (("a", None), ("b", 2)):
        fit_parser(2, engine="expanded", n_jobs=jobs).save(tmp_path / name)
    a, b = (load(tmp_path / name) for name in "ab")
    assert a.parse(read(TEST)).to_bytes() == b.parse(read(TEST)).to_bytes()


@pytest.mark.parametrize(
    "options", [{"degree": 1}, {"degree": 2}, {"degree": 3}, {"degree": 2, "learner": "logistic"}]
)
def test_files_give_the_same_parser(options, tmp_path):
    parser = fit_parser(**options)
    parser.save(tmp_path / "p.uk")
    loaded = BunsetsuParser.load(tmp_path / "p.uk")
    assert loaded.parse(read(TEST)).to_bytes() == parser.parse(read(TEST)).to_bytes()
    assert (loaded.degree, loaded.learner) == (parser.degree, parser.learner)
    assert (loaded.n_features_, loaded.n_decisions_) == (parser.n_features_, parser.n_decisions_)
    loaded.save(tmp_path / "again.uk")
    assert (tmp_path / "again.uk").read_bytes() == (tmp_path / "p.uk").read_bytes()


def test_another_engine_is_chosen_if_split_does_not_fit():
    small_parser = fit_parser(4, C=1e-3, memory=30_000)
    assert small_parser.classifier_.engine != "split"
    assert small_parser.parse(read(TEST)).to_bytes() == fit_parser(4, C=1e-3).parse(read(TEST)).to_bytes()


def test_a_pickle_gives_the_same_parser(parser):
    other = pickle.loads(pickle.dumps(parser))
    assert other.parse(read(TEST)).to_bytes() == parser.parse(read(TEST)).to_bytes()
    assert pickle.loads(pickle.dumps(BunsetsuParser(3))).degree == 3


def edit_file(path, change):
    """Change the settings in the file."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    settings_ = json.loads(header["__metadata__"]["settings"])
    change(header, settings_)
    header["__metadata__"]["settings"] = json.dumps(settings_)
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


@pytest.mark.parametrize(
    "change",
    [
        lambda h, s: s.pop("templates"),
        lambda h, s: s.update(templates=["x"]),
        lambda h, s: s.update(templates=s["templates"][:-1]),
        lambda h, s: s.update(templates=s["templates"][::-1]),
        lambda h, s: s.update(templates=[1]),
        lambda h, s: s.pop("parameters"),
        lambda h, s: s["parameters"].update(degree=9),
        lambda h, s: s["parameters"].update(learner=3),
        lambda h, s: s["parameters"].update(beam=3),
        lambda h, s: s.pop("parts"),
        lambda h, s: s.update(parts={}),
        lambda h, s: s.update(decisions=-1),
        lambda h, s: h.update(renamed=h.pop("template_begins")),
        lambda h, s: h["template_values"].update(dtype="U32"),
        lambda h, s: h["feature_name_ends"].update(dtype="F64"),
    ],
)
def test_damaged_settings_are_refused(parser, change, tmp_path):
    path = tmp_path / "p.uk"
    parser.save(path)
    edit_file(path, change)
    with pytest.raises(FormatError):
        BunsetsuParser.load(path)  # which also checks the parameters, unlike load


def test_features_of_another_parser_are_refused(parser):
    _, arrays, settings_ = parser.to_container()
    _, other_arrays, _ = fit_parser(min_count=200).to_container()
    features = {
        name: array for name, array in other_arrays.items() if name.startswith(("feature", "template"))
    }
    with pytest.raises(FormatError, match="columns, and there are"):
        BunsetsuParser.from_container("file.uk", arrays | features, settings_)


def test_tables_with_columns_that_no_feature_has_are_named(parser, monkeypatch):
    def no_column(self, column):
        raise IndexError("there is no such column")

    monkeypatch.setattr(type(parser.model_), "feature_name", no_column)
    with pytest.raises(ValueError, match="'depends' has a column without a feature"):
        parser.heaviest(1)


@given(st.data())
def test_damaged_features_are_refused_or_parse(data):
    parser = _parser_of_all_templates()
    _, arrays, settings_ = parser.to_container()
    name = data.draw(
        st.sampled_from(["feature_names", "feature_name_ends", "template_begins", "template_values"])
    )
    damaged = arrays[name].copy()
    position = data.draw(st.integers(0, len(damaged) - 1))
    low, high = (0, 255) if name == "feature_names" else (-5, 2**31 - 1)
    damaged[position] = data.draw(st.integers(low, high) | st.integers(max(low, 0), min(high, 200)))
    try:
        other = BunsetsuParser.from_container("damaged", arrays | {name: damaged}, settings_)
    except FormatError:
        return
    corpus = read(TEST)
    check_trees(np.diff(corpus.first_bunsetsu), other.parse(corpus).heads)
