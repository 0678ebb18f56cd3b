"""Names of features that are generated on demand, and their form in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

import unkernel
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.records import steps
from unkernel.records.feature_names import JoinedNames, NumberedNames, have_same_names
from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep

TEXTS = ["good movie", "bad film", "so good", "so bad"] * 5
FRAME = pd.DataFrame({"text": TEXTS, "who": list("abcd") * 5})
LABELS = [1, 0, 1, 0] * 5


def test_names_equal_a_list() -> None:
    names = JoinedNames([["a", "b"], [], NumberedNames("hash", 3), ["c"]])
    expected = ["a", "b", "hash 0", "hash 1", "hash 2", "c"]
    assert list(names) == expected
    assert names == expected and names != expected[1:] and names != "abcdef"
    assert [names[place] for place in range(-6, 6)] == [expected[place] for place in range(-6, 6)]
    assert names[1:5:2] == expected[1:5:2]
    assert len(JoinedNames([])) == 0
    for place in (6, -7):
        with pytest.raises(IndexError, match=f"there is no feature {place}"):
            names[place]


def test_names_of_parts_of_parts() -> None:
    """Names are found through any number of steps, each of which reads the step before."""
    names: Any = ["a", "b"]
    for _ in range(5000):
        names = JoinedNames([["c"], names])
    assert len(names) == 5002 and names[0] == names[4999] == "c" and names[-1] == "b"


class Unmade(NumberedNames):
    """Names that must not be generated."""

    def _name(self, number: int) -> str:
        raise AssertionError(f"feature {number} was named")


def test_names_that_are_the_same_are_not_made_to_be_saved() -> None:
    column, names = steps.numbers([0], ["a"]), Unmade("x", 2**31)
    numbers = PlanStep("numbers", column.table, names)
    joined = steps.concatenate([0, 0], JoinedNames([names, names]))
    scaled = steps.scale(1, joined.names)
    _, settings = Plan(["a"], [numbers, joined, scaled]).to_container("plan.")
    assert [step["names"] for step in settings["steps"]] == [{"numbered": "x", "count": 2**31}, None, None]


def test_same_names() -> None:
    names = JoinedNames([["a"], ["b"]])
    for equal_names in (names, JoinedNames([["a"], ["b"]]), JoinedNames([["a", "b"]]), ["a", "b"]):
        assert have_same_names(names, equal_names) and have_same_names(equal_names, names)
    for other_names in (JoinedNames([["a"], ["c"]]), JoinedNames([["a"]]), ["a", "b", "c"], []):
        assert not have_same_names(names, other_names) and not have_same_names(other_names, names)


def pipelines() -> list[tuple[Any, Any, Any]]:
    columns = [("words", HashingVectorizer(), "text"), ("who", OneHotEncoder(), ["who"])]
    return [
        (make_pipeline(HashingVectorizer(), LinearSVC()), TEXTS, "so good"),
        (make_pipeline(ColumnTransformer(columns), LinearSVC()), FRAME, {"text": "so good", "who": "a"}),
    ]


@pytest.mark.parametrize("place", [0, 1])
def test_a_million_hashed_features_fit_a_file(place: int, tmp_path: Any) -> None:
    pipeline, X, record = pipelines()[place]
    fast = unkernel.compile(pipeline.fit(X, LABELS), sample=X, measure=False)
    fast.save(tmp_path / "model.uk")
    reloaded = unkernel.load(tmp_path / "model.uk")
    assert reloaded.predict(X).tolist() == LABELS
    assert len(reloaded.plan.feature_names) >= 2**20
    explained = reloaded.explain_one(record)
    assert explained == fast.explain_one(record)
    assert "hash " in str(explained) and ("who = a" in str(explained)) == (place == 1)
    assert [str(heavy) for heavy in reloaded.heaviest()] == [str(heavy) for heavy in fast.heaviest()]
    _, _, settings = container.read(tmp_path / "model.uk")
    assert len(str(settings)) < 20_000


def make_plan(names: Any, **table: Any) -> dict[str, Any]:
    numbers = {"kind": "numbers", "table": {"columns": {"array": "c"}}, "names": ["a", "b"]}
    normalize = {"kind": "normalize", "table": {"norm": "l2"} | table, "names": names}
    return {
        "columns": ["a", "b"],
        "required": False,
        "whole": False,
        "ignores_unknown_keys": True,
        "steps": [numbers, normalize],
    }


def test_files_omit_names_equal_to_the_input_names() -> None:
    plan = Plan(["a"], [steps.numbers([0], ["a"]), steps.concatenate([0, 0], ["a", "a"])])
    _, settings = plan.to_container("plan")
    assert [step["names"] for step in settings["steps"]] == [["a"], None]
    arrays = {"c": np.array([0, 1], np.int32)}
    result = Plan.from_container("m.uk", arrays, make_plan(None, input=0))
    assert result.feature_names == ["a", "b"]


@pytest.mark.parametrize(
    "settings",
    [
        make_plan(None, input=1),
        make_plan(None, input=-1),
        make_plan(None, input="0"),
        make_plan(None),
        make_plan({"numbered": "hash", "count": 3}, input=0),
        make_plan({"numbered": "hash", "count": 2**40}, input=0),
        make_plan({"numbered": "hash", "count": "2"}, input=0),
        make_plan({"numbered": 1, "count": 2}, input=0),
        make_plan({"count": 2}, input=0),
        make_plan(["a"], input=0),
    ],
)
def test_damaged_names(settings: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="the plan of the model is damaged"):
        Plan.from_container("m.uk", {"c": np.array([0, 1], np.int32)}, settings)
