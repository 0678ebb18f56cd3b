"""``unkernel inspect --data``: shares of columns in the variance of the score."""

import json

import pytest

from unkernel.cli import main


def test_inspect_shows_shares_for_the_records_of_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{age},{job},{'yes' if age > 40 else 'no'}" for age in range(20, 60) for job in ("clerk", "pilot")
    ]
    (tmp_path / "people.csv").write_text("\n".join(["age,job,rich", *rows]))
    assert main(["train", "poly", "people.csv", "--target", "rich", "-o", "rich.uk", "-q"]) == 0
    capsys.readouterr()
    assert main(["inspect", "rich.uk", "--data", "people.csv", "--json"]) == 0
    importances = json.loads(capsys.readouterr().out)["importances"]
    assert importances["records"] == 80
    assert importances["terms"][0]["columns"] == ["age"]
    assert sum(term["share"] for term in importances["terms"]) == pytest.approx(1.0)
    assert main(["inspect", "rich.uk", "--data", "people.csv"]) == 0
    assert "share of the variance of the score, 80 records" in capsys.readouterr().out


def test_inspect_compares_missing_and_unknown_values_with_training(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{age},{job},{'yes' if age > 40 else 'no'}" for age in range(20, 60) for job in ("a", "b")]
    (tmp_path / "people.csv").write_text("\n".join(["age,job,rich", *rows, ",a,no", ",b,yes"]))
    (tmp_path / "new.csv").write_text("age,job\n30,a\n40,c\n,c\n50,\n")
    assert main(["train", "poly", "people.csv", "--target", "rich", "-o", "rich.uk", "-q"]) == 0
    capsys.readouterr()
    assert main(["inspect", "rich.uk", "--data", "new.csv", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["values"]
    job = {
        "column": "job",
        "missing": 0.25,
        "training_missing": 0.0,
        "unknown": 0.5,
        "training_unknown": 0.0,
    }
    age = {
        "column": "age",
        "missing": 0.25,
        "training_missing": 2 / 82,
        "unknown": None,
        "training_unknown": None,
    }
    assert values == {"records": 4, "training_records": 82, "columns": [job, age]}
    assert main(["inspect", "rich.uk", "--data", "new.csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in lines if "25.0 %" in line] == [
        "job 25.0 % 0.0 % 50.0 % 0.0 %",
        "age 25.0 % 2.4 %",
    ]


def test_data_is_for_models_of_records(tmp_path, capsys):
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 2:1\n")
    assert main(["train", "poly", str(tmp_path / "rows.svm"), "-o", str(tmp_path / "m.uk"), "-q"]) == 0
    assert main(["inspect", str(tmp_path / "m.uk"), "--data", str(tmp_path / "rows.svm")]) == 2
    assert "--data is for models of records" in capsys.readouterr().err
