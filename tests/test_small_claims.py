"""Small files that would take much memory or time are refused or read quickly."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from reference import damage, small_claims
from reference.kernels import make_slots_model
from reference.treebanks import CROSSING, bank_of
from unkernel import FormatError, LimitError, PolyLogisticRegression, compile, load, read_model
from unkernel.data import ChunkCorpus, file_memory_limit
from unkernel.engines.tables import builders
from unkernel.engines.tables.builders import Head
from unkernel.parsing import ArcEagerParser, Chunker
from unkernel.parsing.arc_eager.model import new_spec
from unkernel.records import Plan, PlanStep, steps
from unkernel.records.feature_names import JoinedNames, NumberedNames

CHUNKS = ChunkCorpus.from_words(
    [["He", "saw", "the", "man"], ["the", "man", "saw", "Rome"]] * 4,
    [["P", "V", "D", "N"], ["D", "N", "V", "N"]] * 4,
    tags=[["B-NP", "B-VP", "B-NP", "I-NP"], ["B-NP", "I-NP", "B-VP", "B-NP"]] * 4,
)


@pytest.fixture(scope="module")
def parser():
    return ArcEagerParser(min_count=1, min_updates=1, epochs=2).fit(bank_of([CROSSING] * 5))


@pytest.fixture(scope="module")
def chunker():
    return Chunker().fit(CHUNKS)


def refused(path, what):
    """Check that the file is refused before memory is allocated, and that the message names the need."""
    with pytest.raises(LimitError, match=rf"{what} would take .*read it with limit='\d+G'") as caught:
        load(path)
    assert isinstance(caught.value, FormatError) and isinstance(caught.value, MemoryError)
    assert caught.value.file == str(path)


def test_columns_times_classes(tmp_path):
    path = tmp_path / "model.uk"
    small_claims.columns_without_weights(path)
    assert path.stat().st_size < 500_000
    refused(path, "the tables of conjunctions")
    with pytest.raises(MemoryError, match="no engine fits into 100,000,000 bytes"):
        compile(path, memory="100M")


def test_columns_times_classes_in_16_bits(tmp_path):
    path = tmp_path / "model.uk"
    small_claims.columns_without_weights(path, unit=1.0)
    refused(path, "the tables of 16-bit weights")


def test_zeros_that_are_not_in_the_file(tmp_path, parser):
    path = tmp_path / "parser.uk"
    small_claims.write_zeros(parser, path)
    assert path.stat().st_size < 1_000_000
    refused(path, "weights that the file stores in compact form")


def test_a_chunker_that_compiles_to_gigabytes(tmp_path, chunker):
    path = tmp_path / "chunker.uk"
    small_claims.write_vast_model(chunker, path, features=420)
    assert path.stat().st_size < 20_000
    refused(path, "the tables of its classifier")


def test_a_limit_allows_more(tmp_path, chunker, monkeypatch):
    path = tmp_path / "chunker.uk"
    small_claims.write_vast_model(chunker, path, features=76)
    monkeypatch.setattr(file_memory_limit, "BASE_BYTES", 1 << 20)
    refused(path, "the tables of its classifier")
    assert load(path, limit="1G").nbytes > 1 << 20
    assert type(chunker.model_).load(path, limit=np.int64(10**9)).nbytes > 1 << 20
    with pytest.raises(LimitError):
        load(path, limit=1000)


def test_the_environment_allows_more(tmp_path, chunker, monkeypatch):
    path = tmp_path / "chunker.uk"
    small_claims.write_vast_model(chunker, path, features=76)
    monkeypatch.setattr(file_memory_limit, "BASE_BYTES", 1 << 20)
    monkeypatch.setenv("UNKERNEL_LIMIT", "1G")
    assert load(path).nbytes > 1 << 20
    with pytest.raises(LimitError, match=r"set UNKERNEL_LIMIT=\d+G"):
        load(path, limit="1M")  # the argument takes precedence
    monkeypatch.setenv("UNKERNEL_LIMIT", "much")
    with pytest.raises(ValueError, match="UNKERNEL_LIMIT must be bytes"):
        load(path)


@pytest.mark.parametrize("limit", ["", "much", "-1", 0, -5, True, [1]])
def test_invalid_limits_are_refused(tmp_path, limit):
    path = tmp_path / "model.uk"
    small_claims.columns_without_weights(path, 2, 3)
    for read in (load, read_model):
        with pytest.raises(ValueError, match="limit must be"):
            read(path, limit=limit)


def test_an_allowance_ends_with_its_file(tmp_path):
    path = tmp_path / "model.uk"
    small_claims.columns_without_weights(path, 2, 3)
    load(path)
    assert file_memory_limit.get_allowance() is None
    file_memory_limit.claim(1e18, "whatever")  # no file is being read, so no limit applies
    with pytest.raises(LimitError), file_memory_limit.limit_file(path):
        file_memory_limit.claim(3e7, "one thing")
        file_memory_limit.claim(3e7, "another")
        file_memory_limit.claim(3e7, "a third")  # claims add up
    assert file_memory_limit.get_allowance() is None


def test_limit_errors_travel():
    error = LimitError("file", 0, 0, "too much")
    unpickled = pickle.loads(pickle.dumps(error))
    assert type(unpickled) is LimitError and str(unpickled) == str(error) and unpickled.reason == "too much"


def test_trained_models_need_no_raised_limit(tmp_path):
    """A trained model of many classes and few rows stays within the memory limit of its file."""
    rng = np.random.default_rng(0)
    X, y = (rng.random((300, 40)) < 0.2).astype(float), np.arange(300) % 60
    fitted = PolyLogisticRegression(degree=2, max_iter=20, tol=1e-1).fit(X, y)
    path = tmp_path / "model.uk"
    compile(fitted.to_model(), measure=False).save(path)
    np.testing.assert_array_equal(load(path).predict(X), fitted.predict(X))


def test_records_with_all_their_zeros(tmp_path):
    """As a dense array, hashes of 31 bits would take 34 GB per record."""
    path = tmp_path / "records.uk"
    width = 2**31 - 1
    hashed = steps.vocabulary([]) | {"hashed": True, "alternate_sign": True, "width": width, "separator": "="}
    names = NumberedNames("hash", width)
    plan = Plan(
        ["more"],
        [
            PlanStep("pairs", {"columns": steps.int32([0])} | hashed, names),
            PlanStep("densify", {"input": 0}, names),
        ],
    )
    path.write_bytes(bytes(1000))
    with (
        pytest.raises(LimitError, match=r"a record with all its zeros would take 34\.4 GB"),
        file_memory_limit.limit_file(path),
    ):
        Plan.from_container(str(path), *plan.to_container("plan."))


def save_and_load(tmp_path, plan):
    """Return the plan as read from a file of 1,000 bytes."""
    path = tmp_path / "records.uk"
    path.write_bytes(bytes(1000))
    with file_memory_limit.limit_file(path):
        return Plan.from_container(str(path), *plan.to_container("plan."))


def hashed_words(width, column=0):
    table = steps.text_table(column) | steps.vocabulary([]) | {"hashed": True, "width": width}
    return PlanStep("text", table, NumberedNames("hash", width))


def double_steps(first_step, times):
    """Return a plan in which each step uses the vector of the previous one twice."""
    result = [first_step]
    for number in range(times):
        result.append(steps.concatenate([number] * 2, JoinedNames([result[-1].names] * 2)))
    return Plan(["a"], result)


@pytest.mark.parametrize(
    "first_step",
    [
        steps.numbers([0], ["a"]),
        steps.one_hot([0], [steps.categories({"x": 0}, unknown=-1)], ["a = x"]),
        PlanStep("text", steps.text_table(0) | steps.vocabulary(["x"]), ["x"]),
        hashed_words(4),
    ],
    ids=["numbers", "one_hot", "words", "hashed"],
)
def test_vectors_that_are_used_twice_again_and_again(tmp_path, first_step):
    """29 steps, each stored in a few bytes, would take gigabytes per record."""
    with pytest.raises(LimitError, match=r"the vectors of a record would take [\d.e+]+ GB"):
        save_and_load(tmp_path, double_steps(first_step, 28))
    restored = save_and_load(tmp_path, double_steps(first_step, 4))
    assert restored.n_features == 16 * len(first_step.names)


def test_an_endless_number_of_doublings(tmp_path):
    """Sizes that double endlessly are refused before they become long integers."""
    result = [steps.numbers([0], ["a"])]
    result += [steps.concatenate([number] * 2, NumberedNames("x", 9)) for number in range(3000)]
    with pytest.raises(LimitError, match="the vectors of a record would take"):
        save_and_load(tmp_path, Plan(["a"], result))


def test_an_array_that_many_steps_use(tmp_path):
    path = tmp_path / "records.uk"
    path.write_bytes(bytes(1000))
    columns = np.zeros(100_000, np.int32)
    step = {"kind": "numbers", "names": {"numbered": "x", "count": len(columns)}}
    settings = {"columns": ["a"], "required": False, "whole": False, "ignores_unknown_keys": True}
    settings["steps"] = [step | {"table": {"columns": {"array": "plan.0.columns"}}}] * 200
    with (
        pytest.raises(LimitError, match="the tables of the plan would take 640 MB"),
        file_memory_limit.limit_file(path),
    ):
        Plan.from_container(str(path), {"plan.0.columns": columns}, settings)


def test_plans_of_hashed_words_need_no_raised_limit(tmp_path):
    """Fifty columns of 2^20 features each, which stay sparse, and their union, normalized in two ways."""
    plan_steps, parts = [], []
    for column in range(50):
        words = hashed_words(2**20, column)
        plan_steps += [words, PlanStep("normalize", {"input": len(plan_steps), "norm": "l2"}, words.names)]
        parts.append(len(plan_steps) - 1)
    names = JoinedNames([plan_steps[part].names for part in parts])
    plan_steps.append(steps.concatenate(parts, names))
    union = len(plan_steps) - 1
    plan_steps += [PlanStep("normalize", {"input": union, "norm": norm}, names) for norm in ("l1", "max")]
    plan = Plan([f"c{column}" for column in range(50)], plan_steps)
    assert save_and_load(tmp_path, plan).n_features == 50 * 2**20
    twice = [plan_steps[1], steps.concatenate([0, 0, 0], JoinedNames([plan_steps[0].names] * 3))]
    restored = save_and_load(tmp_path, Plan(["c0"], [plan_steps[0], *twice]))
    assert restored.n_features == 3 * 2**20


# --- Templates --------------------------------------------------------------------------------------------


def many_templates(count):
    """Return templates that all differ."""
    steps = ["head", "left", "left2", "right", "right2", "before", "after"]
    lines = (
        f"stack[{n % 1000}].{steps[n // 1000 % 7]}.{steps[n // 7000]}.word + input.word" for n in range(count)
    )
    return "[moves]\n" + "\n".join(lines) + "\n[labels]\nhead.word\n"


def test_templates_are_compared_in_less_than_quadratic_time():
    """Comparing all pairs of templates would take minutes."""
    text = many_templates(40_000)
    new_spec(text, "templates", "none")
    first_template = text.splitlines()[1]
    with pytest.raises(FormatError, match="occurs twice"):
        new_spec(text.replace("[labels]", f"{first_template}\n[labels]"), "templates", "none")


def test_a_number_of_features_that_is_only_claimed(tmp_path, chunker):
    path = tmp_path / "chunker.uk"
    chunker.save(path)
    damage.rewrite(path, lambda settings, arrays: settings.update(features=2**31 - 1))
    with pytest.raises(FormatError, match="the number of features is out of range"):
        load(path)


# --- Groups -----------------------------------------------------------------------------------------------


def test_equal_states():
    """Comparing all pairs of n states would take n * n steps."""
    tables = builders.build_expanded(
        builders.Machine(make_slots_model(0, 2)), head=Head(grouped=8, sum_bytes=1e6)
    )
    group = np.diff(tables.arrays["state_begins"]).argmax()
    begin, end = tables.arrays["state_begins"][group : group + 2]
    tables.arrays["states"] = tables.arrays["states"].copy()
    tables.arrays["states"][begin:end] = tables.arrays["states"][begin]
    assert end > begin + 1
    with pytest.raises(ValueError, match="a state occurs twice"):
        tables.engine()
