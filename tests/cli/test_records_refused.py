"""Commands on malformed files of records: one clear line, and no partial output."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

HEAD = "age,job,member,rich\n"
GOOD = HEAD + "39,clerk,true,no\n" * 3


@pytest.fixture
def train(run, tmp_path):
    """Return a function that trains on the bytes of a file, and returns the error message."""

    def train_error(data: str | bytes, *options, name: str = "d.csv", target: str | None = "rich") -> str:
        (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
        target_options = [] if target is None else ["--target", target]
        line = run(
            "train", "poly", tmp_path / name, *target_options, "-o", tmp_path / "m.uk", *options
        ).error()
        assert not (tmp_path / "m.uk").exists()
        assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".tmp") == []
        return line.removeprefix(f"{tmp_path}/")

    return train_error


@pytest.fixture
def predict(run, tmp_path, people_model):
    """Return a function that predicts the bytes of a file, and returns the error message."""

    def predict_error(data: str | bytes, name: str = "d.csv") -> str:
        (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
        line = run("predict", people_model, tmp_path / name, "-o", tmp_path / "a.csv").error()
        assert sorted(path.name for path in tmp_path.iterdir()) == [name]
        return line.removeprefix(f"{tmp_path}/")

    return predict_error


# --- Training -----------------------------------------------------------------------------------------


def test_a_target_must_be_named(train):
    assert train(GOOD, target=None) == (
        "d.csv: name the column to predict with --target; there are age, job, member, rich"
    )
    assert train('{"age": 1, "b": 2}\n', name="d.jsonl", target=None).endswith("there are age, b")


def test_missing_targets_are_refused_with_a_suggestion(train):
    assert train(GOOD, target="ritch") == "d.csv: there is no column --target 'ritch'; did you mean 'rich'?"
    assert train(GOOD, target="zzz").endswith("it has age, job, member, rich")
    assert "no column 'zzz'" in train(GOOD, "--drop", "zzz")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "d.csv: the file is empty: its first line must name the columns"),
        (HEAD, "d.csv: there is no record: nothing to learn from"),
        (GOOD, "d.csv: column 'rich' has a single value, no: training needs two classes"),
        ("rich\na\nb\n", "d.csv: there is no column beside 'rich': nothing to learn from"),
        (GOOD + "1,a,true,\n", "d.csv:5: column 'rich': a record to learn from needs a label"),
        (GOOD + "1,a,true\n", "d.csv:5: expected 4 fields, as the first line has, got 3"),
        ("a,a,rich\n1,2,3\n", "d.csv:1: two columns have the name 'a'"),
        (
            GOOD.encode() + b"1,\xfe,true,yes\n",
            "d.csv:5: byte 0xFE is not UTF-8: convert the text first",
        ),
        (GOOD + "inf,a,true,yes\n", "d.csv: Input X contains infinity: column 'age'"),
        ("n,rich\n" + "".join(f"1,{k}.5\n" for k in range(9)), "d.csv: column 'rich' has fractions"),
        ("n,rich\n" + "".join(f"1,{k}\n" for k in range(1200)), "d.csv: column 'rich' has 1,200 different"),
    ],
)
def test_tables_that_cannot_be_learned_from(train, data, words):
    assert train(data).startswith(words)


def test_json_that_cannot_be_learned_from(train):
    line = '{"a": {"b": 1}, "rich": 1}\n{"a": {"b": 2}, "rich": 2}\n'
    assert "column 'a' holds values of type dict" in train(line, name="d.jsonl")
    assert train('{"a": 1, "rich": [1]}\n', name="d.jsonl").startswith("d.jsonl:1: column 'rich': a label is")
    assert train('{"a": 1}\n{"a"\n', name="d.jsonl").startswith("d.jsonl:2:5: not a JSON object")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ('{"job": "number"}', "d.csv:2: column 'job': expected a number, got 'clerk', as the schema asks"),
        ('{"jop": "category"}', "d.csv: there is no column 'jop'; did you mean 'job'?"),
        ('{"job": "colour"}', "s.json: the kind of column 'job' must be one of category"),
        ('{"job": ["text"]}', "s.json: the kind of column 'job' must be one of"),
        ('["job"]', "s.json: a schema is an object such as"),
        ('{"job"', "s.json:1:7: a schema is JSON such as"),
        (b"\xff\xfe\x00", "s.json: a schema is JSON such as"),
    ],
)
def test_schemas_that_do_not_fit(train, tmp_path, schema, words):
    (tmp_path / "s.json").write_bytes(schema.encode() if isinstance(schema, str) else schema)
    assert train(GOOD + "1,a,true,yes\n", "--schema", tmp_path / "s.json").startswith(words)


def test_options_that_do_not_go_together(run, train, train_file, tmp_path):
    assert "--zero-based is for rows" in train(GOOD, "--zero-based")
    assert "--calibrate needs at least 2 folds" in train(GOOD, "--calibrate", 1)
    assert "--n-bins must be" in train(GOOD, "--n-bins", 1)
    line = run("train", "poly", train_file, "-o", tmp_path / "m.uk", "--n-bins", 4).error()
    assert line.startswith("--n-bins is for records")


@pytest.mark.parametrize(
    ("other_file", "content", "words"),
    [
        ("e.csv", "age,job,rich\n1,a,yes\n", "e.csv: there is no column 'member', which"),
        ("e.csv", "age,job,member,rich,shoes\n1,a,true,yes,2\n", "d.csv: there is no column 'shoes', which"),
        ("e.csv", "age,job,member,rich\n", "e.csv: there is no record"),
        ("e.csv", "age,job,member,rich\n1,a,true,\n", "e.csv:2: column 'rich': a record to learn from"),
        ("e.jsonl", '{"age": 1}\n', "e.jsonl: is jsonl, and"),
        ("d.csv", None, "d.csv is given twice; name each file only once"),
        ("-", None, "-: stdin cannot be combined"),
        ("none-*.csv", None, "No file matches the pattern"),
    ],
)
def test_several_files_that_do_not_fit(
    *, run, people_file, tmp_path, monkeypatch, other_file, content, words
):
    monkeypatch.chdir(tmp_path)
    shutil.copy(people_file, tmp_path / "d.csv")
    if content is not None:
        (tmp_path / other_file).write_text(content)
    assert words in run("train", "linear", "d.csv", other_file, "-o", "m.uk", "--target", "rich").error()


def test_inputs_are_not_replaced(run, people_file, tmp_path):
    (tmp_path / "s.json").write_text("{}")
    for output in (people_file, tmp_path / "s.json"):
        line = run(
            "train", "poly", people_file, "--target", "rich", "-o", output, "--schema", tmp_path / "s.json",
            "--force",
        ).error()  # fmt: skip
        assert "is also an input" in line


# --- Predictions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "d.csv: the file is empty"),
        ("age,jobs,member\n1,a,true\n", "d.csv: there is no column 'job', which the model"),
        ("age,job,member,age\n1,a,true,1\n", "d.csv:1: two columns have the name 'age'"),
        (GOOD + "old,a,true,no\n", "d.csv:5: column 'age': expected a number, got 'old'"),
        (GOOD + "1,a,perhaps,no\n", "d.csv:5: column 'member': expected true or false, got 'perhaps'"),
        (GOOD + "inf,a,true,no\n", "d.csv:5: column 'age': the number is infinite"),
        (GOOD + "1,a\n", "d.csv:5: expected 4 fields"),
        (GOOD + '1,"a\n', "d.csv:5: a quotation mark is opened here, and never closed"),
        (GOOD.encode() + b"1,\xff,true,no\n", "d.csv:5: byte 0xFF is not UTF-8"),
        ("1 1:1 2:1\n-1 2:1\n", "d.csv: holds rows of features, and the model"),
    ],
)
def test_tables_that_cannot_be_answered(predict, data, words):
    assert predict(data).startswith(words)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ('{"age": 1}\n{"age": "old"}\n', "d.jsonl:2: column 'age': expected a number, got the string 'old'"),
        ('{"age": {"n": 1}}\n', "d.jsonl:1: column 'age': expected a number, got a list or a dict"),
        ('{"job": [["a"]]}\n', "d.jsonl:1: column 'job': expected one value, or a list of strings, got"),
        ('{"age": Infinity}\n', "d.jsonl:1: column 'age': the number is infinite"),
        ('{"age": 1}\n7\n', "d.jsonl:2: expected an object such as"),
        ('{"age": 1,}\n', "d.jsonl:1:"),
    ],
)
def test_lines_of_json_that_cannot_be_answered(predict, data, words):
    assert predict(data, "d.jsonl").startswith(words)


def test_damaged_files(predict, tmp_path):
    for name, data in (
        ("d.csv.gz", gzip.compress(GOOD.encode() * 50)[:-9]),
        ("d.csv.xz", lzma.compress(GOOD.encode() * 50)[:-9]),
    ):
        assert predict(data, name) == f"{name}: the compressed file ends early; get or write it again"
        (tmp_path / name).unlink()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"age": [1.0], "job": ["a"], "member": [True]}), sink)
    parquet = sink.getvalue().to_pybytes()
    assert predict(parquet[:-3], "d.parquet").startswith("d.parquet: not a Parquet file, or a damaged one")
    (tmp_path / "d.parquet").unlink()
    assert predict(b"", "e.parquet").startswith("e.parquet: not a Parquet file, or a damaged one")


def test_unexpected_types_of_parquet_columns_are_refused(predict):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"age": ["x"], "job": ["a"], "member": [True]}), sink)
    line = predict(sink.getvalue().to_pybytes(), "d.parquet")
    assert line == "d.parquet: record 0: column 'age': expected a number, got the string 'x'"


def test_nan_is_a_missing_value_and_long_strings_are_answered(run, people_model, tmp_path):
    (tmp_path / "d.csv").write_text(HEAD + f"nan,{'x' * 10_000_000},true,no\nNA,,,no\n")
    result = run("predict", people_model, tmp_path / "d.csv", "-o", tmp_path / "a.csv", "--json")
    assert result.code == 0, result.err
    assert result.json["rows"] == 2
    (tmp_path / "d.jsonl").write_text(json.dumps({"age": None, "job": "x" * 10_000_000}) + "\n")
    assert run("predict", people_model, tmp_path / "d.jsonl", "-o", tmp_path / "b.csv").code == 0


def test_header_alone_has_no_answers(run, people_model, tmp_path):
    (tmp_path / "d.csv").write_text(HEAD)
    result = run("predict", people_model, tmp_path / "d.csv", "-o", tmp_path / "a.csv", "--json")
    assert (result.code, result.json["rows"]) == (0, 0)
    assert (tmp_path / "a.csv").read_text() == "prediction\n"


def test_labels_that_the_model_does_not_know(run, people_model, tmp_path):
    (tmp_path / "d.csv").write_text(GOOD + "1,a,true,perhaps\n")
    result = run("predict", people_model, tmp_path / "d.csv")
    assert "1 record of 4 have labels that the model does not know (perhaps)" in result.err


def test_stdout_has_the_answers_before_a_bad_line(run, stdin, people_model):
    stdin(b'{"age": 60, "job": "pilot"}\n' + b"{}\n" * 3 + b"[]\n")
    result = run("predict", people_model, "-", "-o", "-")
    assert result.code == 2
    assert "stdin:5: expected an object" in result.err


def test_models_and_files_that_were_mixed_up(run, people_model, people_file, model_file, tmp_path):
    for command in ("predict", "evaluate", "explain", "bench"):
        assert "holds records" in run(command, model_file, people_file).error()
        assert "model of unkernel, not records" in run(command, people_model, people_model).error()
    assert "is for models of rows" in run("predict", people_model, people_file, "--zero-based").error()
    assert (
        "predictions are written as CSV"
        in run("predict", people_model, people_file, "-o", tmp_path / "a.parquet").error()
    )
    for name in ("a.json", "a.xlsx"):
        line = run("predict", people_model, people_file, "-o", tmp_path / name).error()
        assert "JSON lines (.jsonl)" in line
    assert not list(tmp_path.glob("a.*"))
    line = run("parse", people_model, people_file).error()
    assert line == f"{people_model}: a model of records, not a parser: unkernel predict takes it"
    assert "a model of rows, not a parser" in run("parse", model_file, people_file).error()
    assert "--of must be one of no, yes" in run("explain", people_model, people_file, "--of", "x").error()
    line = run("explain", people_model, '{"age": "old"}').error()
    assert line == "{\"age\": \"old\"}: column 'age': expected a number, got the string 'old'"
    assert "not a JSON object" in run("explain", people_model, '{"age"').error()


def test_a_damaged_model(run, people_model, people_file, tmp_path):
    data = people_model.read_bytes()
    (tmp_path / "cut.uk").write_bytes(data[: len(data) // 2])
    (tmp_path / "changed.uk").write_bytes(
        data.replace(b'"one_hot"', b'"one_cat"').replace(b"one_hot", b"one_cat")
    )
    for name in ("cut.uk", "changed.uk"):
        for command in ("predict", "inspect", "evaluate", "bench", "explain", "compile"):
            inputs = [] if command in ("inspect", "compile") else [people_file]
            output = ["-o", tmp_path / "new.uk"] if command == "compile" else []
            line = run(command, tmp_path / name, *inputs, *output).error()
            assert line.startswith(str(tmp_path / name)), (command, line)
    assert not (tmp_path / "new.uk").exists()


def test_without_pyarrow(run, people_model, people_file, tmp_path, monkeypatch):
    monkeypatch.setattr("unkernel.records.files.delimited.arrow_csv", lambda: None)
    result = run("predict", people_model, people_file, "-o", tmp_path / "slow.csv", "--json")
    assert result.code == 0, result.err
    monkeypatch.undo()
    fast = run("predict", people_model, people_file, "-o", tmp_path / "fast.csv", "--json")
    assert (tmp_path / "slow.csv").read_text() == (tmp_path / "fast.csv").read_text()
    assert fast.json["accuracy"] == result.json["accuracy"]


def test_a_quotation_mark_that_is_never_closed(run, people_model, tmp_path):
    path = tmp_path / "open.csv"
    path.write_text('age,job,member\n50,pilot,true\n51,"pilot,true\n52,clerk,true\n')
    result = run("predict", people_model, path, "-o", tmp_path / "a.csv")
    assert f"{path}:3: a quotation mark is opened here, and never closed" in result.error()
    assert not (tmp_path / "a.csv").exists()


def test_kinds_of_columns_are_inferred_from_all_records(run, tmp_path):
    path = tmp_path / "odd.jsonl"
    records = [{"a": k if k != 123 else "n/a", "y": k % 2} for k in range(300)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    for command in (["train", "poly"], ["tune", "poly", "--C", "0.1,1"]):
        result = run(*command, path, "--target", "y", "--cv", 3, "-o", tmp_path / "m.uk", "--force")
        assert result.code == 0, result.err


def test_too_few_records_of_a_class_for_probabilities(run, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("a,y\n" + "".join(f"{k},{'z' if k < 2 else 'xy'[k % 2]}\n" for k in range(40)))
    result = run("train", "poly", path, "--target", "y", "-o", tmp_path / "m.uk")
    assert result.code == 0
    assert "gets no probabilities: --calibrate 3 needs 3 records of each class, and z has 2" in result.err


def test_weights_of_classes_whose_names_have_signs(run, tmp_path):
    path = tmp_path / "signs.csv"
    path.write_text("a,y\n" + "".join(f"{k},{'<=50K' if k < 20 else '>50K'}\n" for k in range(40)))
    weights = ["--class-weight", ">50K=2,<=50K=1"]
    assert run("train", "poly", path, "--target", "y", *weights, "-o", tmp_path / "m.uk").code == 0


@pytest.mark.parametrize("name", ["people.csv", "people.jsonl"])
def test_a_cell_that_is_not_a_number_is_named(run, people_records, tmp_path, name):
    """A column of a thousand numbers and one other text is read as categories, with a warning."""
    records = [dict(record) for record in people_records]
    records[41]["age"] = "abc"
    file = tmp_path / name
    if name.endswith("csv"):
        lines = [",".join(str(value) for value in record.values()) for record in records]
        file.write_text("\n".join([",".join(records[0]), *lines]) + "\n")
    else:
        file.write_text("".join(json.dumps(record) + "\n" for record in records))
    train = ("train", "linear", file, "--target", "rich", "-o", tmp_path / "m.uk")
    result = run(*train, "-q")
    assert result.code == 0
    line = 43 if name.endswith("csv") else 42
    (warning,) = result.err.splitlines()
    assert f"{file}:{line}: column 'age' is taken for categories: 299 of its 300 values (99.67 %)" in warning
    assert "are numbers, but not 'abc'" in warning and '--schema: {"age": "category"}' in warning
    schema = tmp_path / "schema.json"
    schema.write_text('{"age": "category"}')
    assert run(*train, "-q", "--schema", schema, "--force").err == ""
    schema.write_text('{"age": "number"}')
    assert "got 'abc'" in run(*train, "--schema", schema).error()
