"""A model of one class gives the same answers for rows, for records and over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.svm import OneClassSVM

import unkernel
from serve.serving import RECORDS, served
from unkernel import CompiledClassifier, RecordEncoder
from unkernel._core import JsonShape
from unkernel.engines import RecordClassifier
from unkernel.models import Decision, KernelModel
from unkernel.serve.answerers.classifier_scores import AnswerFormat

ODD = [{"age": 95, "town": "Oslo"}, {"age": 20, "town": "Nara"}]


@pytest.fixture(scope="module")
def pipeline() -> Any:
    encoder = RecordEncoder(n_bins=4, min_count=1)
    return make_pipeline(encoder, OneClassSVM(nu=0.3, gamma=0.5)).fit(RECORDS)


@pytest.fixture(scope="module")
def fast(pipeline: Any) -> RecordClassifier:
    return unkernel.compile(pipeline, measure=False)


def test_rows_records_and_requests_have_the_same_answers(
    pipeline: Any, fast: RecordClassifier, tmp_path: Path
) -> None:
    records = RECORDS + ODD
    predictions, scores = pipeline.predict(records).tolist(), pipeline.decision_function(records)
    assert set(predictions) == {-1, 1}
    assert fast.predict(records).tolist() == predictions
    np.testing.assert_allclose(fast.decision_function(records), scores, atol=1e-9)
    fast.save(tmp_path / "one.uk")
    with served({"one": tmp_path / "one.uk"}) as client:
        response = client.post("/models/one/predict", json=records)
        answers = response.json()
        single = client.post("/models/one/predict", json=records[0]).json()
    assert single == answers[0]
    rows, worker = fast.classifier, fast.classifier.worker()
    for record, prediction, answer in zip(records, predictions, answers, strict=True):
        ids, values = fast.plan.encode_one(record)
        bound = fast.bind({"town": record["town"]})
        remaining = {"age": record["age"]}
        predictions_of_record = {
            rows.predict_one(ids, values.tolist()),
            worker.predict_one(ids, values.tolist()),
            fast.predict_one(record),
            bound.predict_one(remaining),
            answer["prediction"],
        }
        assert predictions_of_record == {prediction}
        score = fast.score_one(record)
        assert rows.score_one(ids, values.tolist()) == worker.score_one(ids, values.tolist()) == score
        assert answer["score"] == score
        assert bound.score_one(remaining) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize("zero_is_positive", [False, True])
def test_a_score_of_zero_has_one_answer(fast: RecordClassifier, zero_is_positive: bool) -> None:
    model = fast.classifier.model
    assert isinstance(model, KernelModel)
    decision = Decision("one_class", np.array([-1, 1]), zero_is_positive=zero_is_positive)
    empty = KernelModel(
        model.kernel,
        model.vectors,
        np.zeros_like(model.coefficients),
        np.zeros(1),
        decision,
        model.n_features,
        model.fixed_width,
        {},
    )
    rows = unkernel.compile(empty, engine="inverted")
    assert isinstance(rows, CompiledClassifier)
    records = RecordClassifier(fast.plan, rows)
    answers = AnswerFormat(decision)
    expected = 1 if zero_is_positive else -1
    assert rows.predict_one([]) == records.predict_one(RECORDS[0]) == expected
    assert records.predict(RECORDS[:1]).tolist() == [expected]
    raw = np.zeros((1, 1))
    shape = JsonShape.ONE
    assert answers.json_writer is not None
    assert json.loads(answers.encode(raw, shape)) == answers.make_answers(raw)[0]
    assert answers.make_answers(raw)[0]["prediction"] == expected
