"""``unkernel inspect``: what it finds is what is there."""

from __future__ import annotations

import dataclasses

import numpy as np

from unkernel import PolySVC, load


def test_what_a_user_reads(run, model_file):
    ran = run("inspect", model_file, "--top", "3")
    assert (ran.code, ran.err) == (0, "")
    for words in ("sets of features", "2: -1, 1", "of 1 feature", "of 2 features", "hinge", "heaviest"):
        assert words in ran.out
    assert "1 ∧ 2" in ran.out


def test_the_heaviest_conjunction_is_the_one_that_was_planted(run, model_file):
    found = run("inspect", model_file, "--top", "1", "--json").json
    (heaviest,) = found["top"]
    assert heaviest["features"] == [1, 2]
    assert heaviest["weights"][0] < 0
    assert sum(found["conjunctions_by_order"]) == found["conjunctions"]
    assert found["file_bytes"] == model_file.stat().st_size
    assert found["origin"]["C"] == 10


def test_weights_of_a_row_add_up_to_its_score(run, model_file):
    """Also that keys are decoded as the engine reads them."""
    found = run("inspect", model_file, "--top", "1000", "--json").json
    rows = (np.random.default_rng(5).random((20, 12)) < 0.5).astype(float)
    scores = load(model_file).decision_function(rows)
    for row, score in zip(rows, scores, strict=True):
        active = set(np.flatnonzero(row) + 1)
        added = sum(entry["weights"][0] for entry in found["top"] if active.issuperset(entry["features"]))
        np.testing.assert_allclose(found["constants"][0] + added, score, rtol=1e-12, atol=1e-12)


def test_monomials_of_several_classes(run, tmp_path):
    X = np.random.default_rng(0).random((60, 4))
    clf = PolySVC(degree=3, random_state=0).fit(X, np.arange(60) % 3)
    clf.save(tmp_path / "m.uk")
    found = run("inspect", tmp_path / "m.uk", "--top", "100", "--json").json
    assert found["basis"] == "monomials"
    assert found["conjunctions_by_order"] == [4, 10, 20]
    scores = np.array(found["constants"]) + sum(
        np.prod(X[:1, np.array(entry["features"]) - 1]) * np.array(entry["weights"]) for entry in found["top"]
    )
    np.testing.assert_allclose(scores, clf.decision_function(X[:1])[0], rtol=1e-10)
    assert "not " in run("inspect", tmp_path / "m.uk", "--top", "100").out


def test_a_model_without_conjunctions(run, model_file, tmp_path):
    model = load(model_file).model
    empty = dataclasses.replace(model, keys=model.keys[:0], weights=model.weights[:0], origin={})
    empty.save(tmp_path / "empty.uk")
    found = run("inspect", tmp_path / "empty.uk", "--top", "5", "--json").json
    assert (found["conjunctions"], found["top"]) == (0, [])
    assert run("inspect", tmp_path / "empty.uk", "--top", "5").code == 0


def test_numbers_that_json_does_not_have_become_null(run, model_file, tmp_path):
    model = load(model_file).model
    dataclasses.replace(model, origin={"gap": float("nan"), "note": [float("inf")]}).save(tmp_path / "odd.uk")
    assert run("inspect", tmp_path / "odd.uk", "--json").json["origin"] == {"gap": None, "note": [None]}
