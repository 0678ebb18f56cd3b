"""Every interface gives the same answer to a record; `make campaign-answers` tries more records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import unkernel
from one_answer.answers import TOO_LARGE, Answer, read_refusal
from one_answer.commands import APART, predict, run_here
from one_answer.comparison import WAYS, differences, run_model
from one_answer.languages import REVIEWS, reviews
from one_answer.subjects import Subject, draw_subject, draw_subject_of_outputs
from one_answer.ways import DASK, Session, Way, ask_one
from unkernel import PolyLogisticRegression, PolySVC, RecordEncoder

MODELS = 24  # with ten records each
SLOW_FROM = 9
RECORDS, LABELS = reviews()


@pytest.mark.parametrize(
    "number",
    [pytest.param(k, marks=pytest.mark.slow if k >= SLOW_FROM else ()) for k in range(MODELS)],
)
def test_generated_records_have_one_answer_by_all_ways(number: int) -> None:
    assert [str(difference) for difference in run_model(number)] == []


@pytest.mark.parametrize(
    "number",
    [pytest.param(k, marks=pytest.mark.slow if k >= SLOW_FROM else ()) for k in range(MODELS)],
)
def test_models_of_several_labels_and_outputs_have_one_answer(number: int) -> None:
    found = run_model(number, seed=1, draw=draw_subject_of_outputs)
    assert [str(difference) for difference in found] == []


# --- Languages ----------------------------------------------------------------------------------------


def test_ties_between_pairs_of_classes_are_broken_as_by_the_pipeline() -> None:
    model = draw_subject(np.random.default_rng([0, 484])).model  # compile compares it with the pipeline
    assert model.decision.scheme == "one_vs_one"


@pytest.fixture(scope="module", params=["ours", "scikit-learn"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Yield a model of reviews in many languages; scikit-learn's takes texts without columns."""
    if request.param == "ours":
        encoder = RecordEncoder(kinds={"text": "text"}, min_count=1)
        pipeline = make_pipeline(encoder, PolySVC(degree=2)).fit(RECORDS, LABELS)
    else:
        texts = [record["text"] for record in RECORDS]
        vectorizer = TfidfVectorizer(strip_accents="unicode", ngram_range=(1, 2))
        pipeline = make_pipeline(vectorizer, LogisticRegression(C=10.0)).fit(texts, LABELS)
    kinds = {"text": "text", "language": "category"}
    subject = Subject(request.param, unkernel.compile(pipeline, measure=False), kinds)
    session = Session(subject, tmp_path_factory.mktemp("reviews"))
    yield session
    session.close()


@pytest.mark.parametrize("way", [*WAYS, DASK, APART], ids=lambda way: way.name)
def test_reviews_in_twenty_languages_have_one_answer(session: Session, way: Way) -> None:
    assert len(RECORDS) == REVIEWS
    assert [str(difference) for difference in differences(session, way, RECORDS)] == []


def test_scores_of_reviews_depend_on_their_words(session: Session) -> None:
    """Scores that do not depend on the words would make the comparison empty."""
    outcomes = [ask_one(session.model, item) for item in session.items(RECORDS)]
    answers = [one for one in outcomes if isinstance(one, Answer)]
    assert len(answers) == REVIEWS
    assert len({answer.scores for answer in answers}) > REVIEWS / 2
    assert sum(one.label == label for one, label in zip(answers, LABELS, strict=True)) > 0.95 * REVIEWS


# --- Values that only text can write ------------------------------------------------------------------


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    records = [{"age": age} for age in range(20)]
    pipeline = make_pipeline(RecordEncoder(min_count=1), PolyLogisticRegression()).fit(
        records, [int(record["age"] > 9) for record in records]
    )
    model = unkernel.compile(pipeline, measure=False)
    session = Session(Subject("ages", model, {"age": "number"}), tmp_path_factory.mktemp("ages"))
    yield session
    session.close()


@pytest.mark.parametrize("number", ["1e999", "-1e400", "1" + "0" * 400])
@pytest.mark.parametrize("name", ["ages.csv", "ages.jsonl"])
def test_numbers_beyond_all_floats_are_refused_in_files(ages: Session, name: str, number: str) -> None:
    path = ages.folder / name
    path.write_text(f"age\n3\n{number}\n" if name.endswith("csv") else f'{{"age": 3}}\n{{"age": {number}}}\n')
    with pytest.raises(ValueError, match=TOO_LARGE):
        predict(ages, path, run_here)


@pytest.mark.parametrize(
    ("name", "text"), [("ages.csv", "age\n-inf\n"), ("ages.jsonl", '{"age": -Infinity}')]
)
def test_infinities_that_files_name_are_infinite(ages: Session, name: str, text: str) -> None:
    (ages.folder / name).write_text(text)
    with pytest.raises(ValueError, match="the number is infinite") as caught:
        predict(ages, ages.folder / name, run_here)
    assert read_refusal(caught.value) == ask_one(ages.model, {"age": float("-inf")})


def test_half_a_surrogate_pair_is_refused_when_read(ages: Session, session: Session) -> None:
    record = {"age": 3, "other": "\ud800"}
    for way in WAYS:
        assert [str(difference) for difference in differences(ages, way, [record])] == []
        assert [str(difference) for difference in differences(session, way, [{"text": "a\udc01"}])] == []
