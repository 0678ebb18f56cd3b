"""Plans store a usual value of each column, which the server's page shows at first."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

import unkernel
from unkernel import PolyLogisticRegression, RecordEncoder
from unkernel.errors import FormatError
from unkernel.records.plan import Plan
from unkernel.serve.answerers import make_answerer

ROWS = [
    {
        "day": f"2024-{1 + k % 12:02}-{1 + k % 28:02}",
        "moment": datetime.datetime(2020 + k % 5, 1 + k % 12, 1 + k % 28, k % 24),
        "age": 20 + k,
        "gain": k / 7,
        "job": ["baker", "pilot", "clerk", "pilot"][k % 4],
        "code": [7, 3, 7][k % 3],
        "member": k % 3 > 0,
        "tags": ["tall", "young"][: 1 + k % 2],
        "note": f"some words that nobody should read again {k}",
    }
    for k in range(60)
]
ENCODER = RecordEncoder(kinds={"code": "category"})
USUAL = {
    "age": 49,
    "gain": 4.143,
    "job": "pilot",
    "code": 7,
    "member": True,
    "tags": ["tall"],
}


@pytest.mark.parametrize("make_table", [list, pa.Table.from_pylist], ids=["dicts", "Arrow"])
def test_usual_values_are_frequent_or_in_the_middle(make_table: Callable[[Any], Any]):
    example = dict(ENCODER.fit(make_table(ROWS)).plan_.example)
    assert example.pop("day") in {row["day"] for row in ROWS}
    assert datetime.date.fromisoformat(example.pop("moment"))
    assert example == USUAL  # texts have none


def test_rare_categories_are_not_stored_as_usual_values():
    plan = RecordEncoder(min_count=3).fit([{"name": f"nobody {k}"} for k in range(9)]).plan_
    assert plan.example == {}


def test_models_are_served_with_usual_values(tmp_path: Path):
    labels = [k % 2 for k in range(len(ROWS))]
    fitted = make_pipeline(ENCODER, PolyLogisticRegression(degree=1)).fit(ROWS, labels)
    unkernel.compile(fitted, measure=False).save(tmp_path / "m.uk")
    answerer = make_answerer(unkernel.load(tmp_path / "m.uk"))
    assert answerer.example.items() >= USUAL.items()
    assert answerer.example["note"] == ""
    assert "prediction" in answerer.answer_one(answerer.example)


def test_old_files_without_usual_values_still_show_a_valid_date():
    plan = ENCODER.fit(ROWS).plan_
    arrays, settings = plan.to_container("plan.")
    del settings["example"]
    old_plan = Plan.from_container("m.uk", arrays, settings)
    labels = [k % 2 for k in range(len(ROWS))]
    model = unkernel.compile(
        make_pipeline(ENCODER, PolyLogisticRegression(degree=1)).fit(ROWS, labels), measure=False
    )
    answerer = make_answerer(unkernel.engines.RecordClassifier(old_plan, model.classifier))
    assert datetime.date.fromisoformat(answerer.example["day"])
    assert "prediction" in answerer.answer_one(answerer.example)


def test_damaged_usual_values_are_refused():
    arrays, settings = ENCODER.fit(ROWS).plan_.to_container("plan.")
    with pytest.raises(FormatError, match="damaged"):
        Plan.from_container("m.uk", arrays, settings | {"example": [1]})
