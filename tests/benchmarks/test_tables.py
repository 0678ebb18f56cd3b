"""The tables of the benchmark of tables: their parts, their columns, and what is left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pandas.api.types import is_numeric_dtype

from reference.selection import slow_after

OF_SCIKIT_LEARN = {"breast_cancer", "wine", "digits", "diabetes"}


@pytest.fixture(scope="module")
def tables_data(on_path):
    import tables_data

    return tables_data


@pytest.fixture(scope="module")
def loaded(tables_data):
    """Return the parts of all tables that are here: those of scikit-learn always are."""
    found = {}
    for name, table in tables_data.TABLES.items():
        try:
            found[name] = table.load()
        except (ImportError, FileNotFoundError):
            assert name not in OF_SCIKIT_LEARN
    return found


def make_table(tables_data, frame, **options):
    return tables_data.table(
        "made", options.pop("target", "classes"), "here", "a test", lambda: frame, **options
    )


def test_columns_are_numbers_or_strings_without_the_target(tables_data, loaded):
    for name, parts in loaded.items():
        table = tables_data.TABLES[name]
        unused = {"target", *table.left_out}
        for frame, y in ((parts.train, parts.y_train), (parts.test, parts.y_test)):
            assert len(frame) == len(y) > 0 and not unused & set(frame.columns)
            assert list(frame.columns) == list(parts.train.columns) and set(table.texts) <= set(frame.columns)
            for column in frame:
                values = frame[column]
                strings = values.map(type).isin([str, type(None)]).all()
                assert is_numeric_dtype(values.dtype) or strings, (name, column)


def test_targets_are_complete(tables_data, loaded):
    for name, parts in loaded.items():
        for y in (parts.y_train, parts.y_test):
            if tables_data.TABLES[name].target == tables_data.CLASSES:
                assert y.dtype.kind == "U" and set(y) == set(parts.y_train)
            else:
                assert np.isfinite(y).all() and y.std() > 0


def test_splits_do_not_change_between_calls(tables_data, loaded):
    for name in OF_SCIKIT_LEARN:
        again = tables_data.TABLES[name].load()
        pd.testing.assert_frame_equal(again.test, loaded[name].test)
        assert (again.y_train == loaded[name].y_train).all()


def test_parts_are_disjoint_and_have_equal_shares_of_classes(tables_data):
    frame = pd.DataFrame({"row": np.arange(400), "target": ["rare"] * 40 + ["usual"] * 360})
    parts = make_table(tables_data, frame).load()
    assert set(parts.train["row"]) | set(parts.test["row"]) == set(range(400))
    assert len(parts.test) == 100 and Counter(parts.y_test) == {"rare": 10, "usual": 90}


def test_large_tables_are_cut_and_rows_without_target_dropped(tables_data, monkeypatch):
    monkeypatch.setattr(tables_data, "MAX_ROWS", 80)
    frame = pd.DataFrame({"row": range(200), "target": [np.nan] * 100 + list(range(100))})
    parts = make_table(tables_data, frame, target="numbers").load()
    assert len(parts.train) == 60 and len(parts.test) == 20
    assert min(parts.train["row"].min(), parts.test["row"].min()) >= 100


def test_given_parts_are_kept(tables_data):
    frame = pd.DataFrame({"row": range(3), "useless": 0, "target": ["a", "b", "a"]})
    parts = make_table(tables_data, (frame, frame[:2]), useless="is always 0").load()
    assert list(parts.train.columns) == ["row"] and list(parts.y_test) == ["a", "b"]


def test_categories_are_strings_that_are_not_texts(tables_data):
    values = pd.DataFrame({"flag": [True, False], "job": pd.Categorical(["a", None]), "note": ["x", "y"]})
    frame = pd.concat([values] * 20, ignore_index=True).assign(target=["a", "b"] * 20)
    table = make_table(tables_data, frame, texts=("note",))
    train = table.load().train
    assert table.categories(train) == ["job"]
    assert set(train["flag"]) == {0, 1} and set(train["job"]) == {"a", None}


def test_words_of_a_question_equal_the_leaves_of_its_tree(tables_data):
    tree = "(ROOT (SBARQ (WHNP (WP What))(SQ (VBZ is)(NP (NN love)))(. ?)))"
    assert tables_data._WORD_OF_TREE.findall(tree) == ["What", "is", "love", "?"]


def test_the_suite_has_many_kinds_of_tables(tables_data):
    tables = tables_data.TABLES.values()
    assert len(tables) >= 12 and len({table.name for table in tables}) == len(tables_data.ALL)
    assert sum(table.target == tables_data.NUMBERS for table in tables) >= 4
    assert sum(bool(table.texts) for table in tables) >= 2


@pytest.fixture(scope="module")
def houses(tables_data):
    """Return a table with a number, a category of many values and a text, and its parts, for each target."""
    rng = np.random.default_rng(0)
    streets = rng.choice([f"street {k}" for k in range(300)], 600)
    sizes = rng.normal(100, 20, 600)
    notes = rng.choice(["a garden and a large cellar", "no garden but a balcony"], 600)
    frame = pd.DataFrame({"size": sizes, "street": streets, "note": notes})
    frame.loc[0, "street"] = None
    price = sizes + 30 * (frame["note"].str.len() > 25) + rng.normal(0, 1, 600)
    targets = {"numbers": price, "classes": np.where(price > price.median(), "dear", "cheap")}
    tables = {
        kind: make_table(tables_data, frame.assign(target=y), target=kind, texts=("note",))
        for kind, y in targets.items()
    }
    return {kind: (table, table.load()) for kind, table in tables.items()}


@pytest.mark.parametrize("kind", slow_after(1, ["classes", "numbers"]))
@pytest.mark.slow
def test_contenders_are_judged_by_the_same_measures(houses, kind):
    import tables
    import tables_contenders

    table, parts = houses[kind]
    without_texts = replace(table, texts=())
    seen = 0
    for contender in tables_contenders.CONTENDERS:
        if not contender.is_here() or contender.name == "EBM":  # which takes long
            continue
        seen += 1
        found = tables.judge_contender(contender, table if contender.takes_texts else without_texts, parts)
        assert 0 <= found["error"] < (1.0 if kind == "numbers" else np.log(2)), contender.name
        assert found["training"] > 0 and found["one record"] > 0 and found["stored"] > 0
        assert found.get("ROC area", 1.0) > 0.9
    assert seen >= 4


def test_boosters_keep_the_categories_of_training(tables_data):
    import tables_contenders

    train = pd.DataFrame({"n": [1.0, 2.0, np.nan, 4.0], "c": ["a", "a", "b", "d"]})
    table = make_table(tables_data, train.assign(target=["x", "y", "x", "y"]))
    test = pd.DataFrame({"n": [1.0, 1.0, 1.0], "c": ["new", None, "a"]})
    columns = tables_contenders.TypedColumns(table, train)
    assert columns.transform(test)["c"].cat.codes.tolist() == [-1, -1, 0]
    pooled = tables_contenders.TypedColumns(table, train, most_values=1)
    assert pooled.values["c"].tolist() == ["a", "(rare)"]
    assert pooled.transform(test)["c"].cat.codes.tolist() == [1, -1, 0]


def test_errors_are_log_loss_and_relative_deviations(tables_data):
    import tables

    numbers = make_table(tables_data, None, target="numbers")
    y = np.array([1.0, 2.0, 3.0, 6.0])
    assert tables.quality(numbers, y, np.full(4, 3.0)) == {"error": pytest.approx(1.0)}
    found = tables.quality(
        make_table(tables_data, None), np.array(["a", "b"]), np.array([[0.5, 0.5], [0.2, 0.8]])
    )
    assert found == {"error": pytest.approx(-(np.log(0.5) + np.log(0.8)) / 2), "ROC area": 1.0}


def test_the_summary_counts_tables():
    import tables
    from harness import Report

    report = Report("tables", quick=True)
    for task, error, peer_error in (("one", 0.5, 0.4), ("two", 0.403, 0.4), ("three", 0.3, 0.4)):
        report.add(task, "unkernel", "error", "", error)
        report.add(task, "LightGBM", "error", "", peer_error)
    tables.add_summary(report)
    found = {(one.contender, one.figure): one.value for one in report.figures if one.task == "all tables"}
    assert found == {
        ("unkernel", "tables"): 3,
        ("unkernel", "error within 1 % of LightGBM's, or better"): 2,
        ("unkernel", "better than LightGBM"): 1,
        ("LightGBM", "tables"): 3,
    }


def test_contenders_that_are_missing_are_named(capsys):
    import tables
    import tables_contenders
    from harness import Report

    def fail(table, parts):
        raise ValueError("it fails")

    report = Report("tables", quick=True)
    contenders = [
        tables_contenders.Contender("absent", "no_such_package", fail, quick=True),
        tables_contenders.Contender("faulty", "sklearn", fail, quick=True),
    ]
    tables.measure(report, ["wine"], contenders)
    assert report.left_out == {
        "absent": "it is not installed",
        "wine, faulty": "ValueError: it fails",
    }
