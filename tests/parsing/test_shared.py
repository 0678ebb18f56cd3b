"""Common behaviour of all parsers: pickles, files, progress, templates, percentages."""

from __future__ import annotations

import io
import math
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import unkernel
from reference.parse_corpora import MAKERS
from unkernel import FormatError
from unkernel.data import Treebank, read_bunsetsu, read_chunks, read_conllu
from unkernel.models import container
from unkernel.models.model_files import COMPILED
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker, Step
from unkernel.parsing.arc_eager.model import as_treebank
from unkernel.parsing.input_checks import check_is_no_sentence
from unkernel.parsing.score_figures import compute_percentage, compute_rate
from unkernel.parsing.template_files import read_templates

READERS = {"trees": read_conllu, "chunks": read_chunks, "bunsetsu": read_bunsetsu}
CLASSES = {"trees": ArcEagerParser, "chunks": Chunker, "bunsetsu": BunsetsuParser}


def corpus(task: str, seed: int):
    return READERS[task](io.BytesIO(MAKERS[task](40, seed).encode()))


@pytest.fixture(params=CLASSES)
def task(request) -> str:
    return request.param


def test_pickles_and_files_parse_like_the_original(task, tmp_path):
    text = corpus(task, 1)
    parser = CLASSES[task]().fit(corpus(task, 0), dev=text)
    unpickled = pickle.loads(pickle.dumps(parser))
    parser.save(tmp_path / "p.uk")
    loaded, model = CLASSES[task].load(tmp_path / "p.uk"), unkernel.load(tmp_path / "p.uk")
    for other in (unpickled, loaded):
        assert type(other) is type(parser)
        assert other.get_params() == parser.get_params()
    for other in (unpickled, loaded, model, pickle.loads(pickle.dumps(model))):
        assert other.parse(text).to_bytes() == parser.parse(text).to_bytes()
        assert set(other.parts_) == set(parser.parts_)
        assert other.n_features_ == parser.n_features_
        assert other.kind == parser.kind
    assert unpickled.dev_result_ == parser.dev_result_
    assert unpickled.dev_result_ is not None
    assert loaded.dev_result_ is None
    assert loaded.nbytes == sum(part.nbytes for part in loaded.parts_.values()) > 0


def test_compiling_a_parser_is_refused(task):
    parser = CLASSES[task]().fit(corpus(task, 0))
    for parser_or_model in (parser, parser.to_model()):
        with pytest.raises(
            TypeError, match=f"of a {type(parser_or_model).__name__} are compiled already: use it as"
        ):
            unkernel.compile(parser_or_model)


def test_evaluation_without_sentences_is_refused(task):
    empty = READERS[task](io.BytesIO(b""))
    parser = CLASSES[task]().fit(corpus(task, 0))
    with pytest.raises(ValueError, match=f"^{re.escape(empty.name)}: there are no sentences$"):
        parser.evaluate(empty)
    with pytest.raises(ValueError, match="there are no sentences"):
        CLASSES[task]().fit(corpus(task, 0), dev=empty)


def test_parameters_are_stored_as_plain_values(tmp_path):
    parameters = {"degree": np.int64(1), "random_state": np.random.RandomState(0)}
    names = np.array(["candidate.end", "between.distance", "modifier.last.surface"])
    BunsetsuParser(**parameters, templates=names).fit(corpus("bunsetsu", 0)).save(tmp_path / "p.uk")
    stored = BunsetsuParser.load(tmp_path / "p.uk").get_params()
    assert unkernel.load(tmp_path / "p.uk").parameters.items() <= stored.items()
    assert (stored["degree"], stored["random_state"]) == (1, None)
    assert stored["templates"] == names.tolist()


def test_threads_are_not_stored(task, tmp_path):
    parser = CLASSES[task](n_jobs=2).fit(corpus(task, 0))
    parser.save(tmp_path / "p.uk")
    assert "n_jobs" not in unkernel.load(tmp_path / "p.uk").parameters
    assert CLASSES[task].load(tmp_path / "p.uk").n_jobs is None


def test_a_path_of_templates_is_stored_as_text(tmp_path):
    text, _ = read_templates("yamcha", {"yamcha": "yamcha.txt"})
    path = tmp_path / "mine.txt"
    path.write_text(text)
    Chunker(templates=path).fit(corpus("chunks", 0)).save(tmp_path / "p.uk")
    path.unlink()  # the file contains the text, too
    loaded = Chunker.load(tmp_path / "p.uk")
    assert loaded.templates == os.fspath(path)
    assert loaded.parse(corpus("chunks", 1))


@pytest.mark.parametrize(("task", "learner"), [("trees", "online"), *((task, "svm") for task in CLASSES)])
def test_progress_is_reported(task, learner, capsys):
    steps: list[Step] = []
    parser = CLASSES[task](learner=learner, verbose=1)
    assert parser.fit_reporting(corpus(task, 0), corpus(task, 1), on_progress=steps.append) is parser
    assert "40 sentences" in next(step.words for step in steps if step.words)
    assert capsys.readouterr().out == ""  # a callback replaces the printed progress
    if learner == "online":
        shares = [step.share for step in steps if step.share is not None]
        n_steps = parser.runs * parser.epochs
        assert shares == [number / n_steps for number in range(1, n_steps + 1)]


def test_verbose_prints_the_same_steps(task, capsys):
    steps: list[Step] = []
    CLASSES[task]().fit_reporting(corpus(task, 0), on_progress=steps.append)
    CLASSES[task](verbose=1).fit(corpus(task, 0))
    printed = capsys.readouterr().out.splitlines()
    first = next(step.words for step in steps if step.words)
    assert printed[0] == f"[{CLASSES[task].__name__}] {first}"


def test_templates(tmp_path):
    built_in = {"default": "chunk.txt"}
    text, name = read_templates("default", built_in)
    assert "pos" in text
    assert name == "templates 'default'"
    (tmp_path / "mine.txt").write_text("pos[0]\n")
    assert read_templates(tmp_path / "mine.txt", built_in) == ("pos[0]\n", str(tmp_path / "mine.txt"))
    with pytest.raises(
        FileNotFoundError, match=r"no template file .*nowhere.*; built-in templates are 'default'"
    ):
        read_templates(Path("nowhere"), built_in)
    (tmp_path / "bad.txt").write_bytes(b"\xff")
    with pytest.raises(FormatError, match="UTF-8"):
        read_templates(tmp_path / "bad.txt", built_in)


def test_percentages_and_rates_of_zero():
    assert compute_percentage(1, 4) == 25
    assert math.isnan(compute_percentage(0, 0))
    assert compute_percentage(0, 0, default=100.0) == 100
    assert compute_rate(10, 2.0) == 5
    assert math.isnan(compute_rate(10, 0.0))


def test_kinds_that_are_not_names_are_refused(tmp_path):
    """A compiled file names the kind of the model inside; an unknown name is refused with a message."""
    for kind in (["arc_eager_parser"], {}, None, 3):
        container.write(tmp_path / "m.uk", COMPILED, {}, {"model": {"kind": kind, "settings": {}}})
        with pytest.raises(FormatError, match="does not know"):
            unkernel.load(tmp_path / "m.uk")


def test_classes_refuse_files_of_other_kinds(tmp_path):
    bank = Treebank.from_words([["a", "b"]], [["X", "Y"]], heads=[[2, 0]], deprels=[["d", "root"]])
    parser = ArcEagerParser(min_count=1).fit(bank)
    parser.save(tmp_path / "p.uk")
    assert ArcEagerParser.load(tmp_path / "p.uk").parse(bank) == parser.parse(bank)
    with pytest.raises(FormatError, match=r"p\.uk: a file of kind 'arc_eager_parser', not a chunker"):
        Chunker.load(tmp_path / "p.uk")


def test_raw_text_in_place_of_a_file_name_is_refused(tmp_path):
    """A text instead of a file name is refused with a hint; names of files may contain blanks."""
    check_is_no_sentence(["They", "saw", "it"])
    check_is_no_sentence("en.conllu")
    path_with_blank = tmp_path / "my text.conllu"
    with pytest.raises(ValueError, match=r"is not a file\. A text must be split into words"):
        check_is_no_sentence(str(path_with_blank))
    path_with_blank.write_text("", encoding="utf-8")
    check_is_no_sentence(str(path_with_blank))
    with pytest.raises(ValueError, match=r"'They saw it' is not a file"):
        as_treebank("They saw it")
