"""The KServe predictor, used through KServe."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import unkernel
from unkernel import PolyLogisticRegression, RecordEncoder

try:
    from kserve import InferInput, InferRequest
    from kserve.errors import InvalidInput, ModelMissingError
except (ImportError, TypeError) as error:  # TypeError: MLServer in this process claims KServe's names
    pytest.skip(f"KServe cannot be imported: {error}", allow_module_level=True)

from unkernel.kserve import UnkernelModel

RECORDS = [{"age": 20, "job": "a"}, {"age": 30, "job": "b"}, {"age": 50, "job": "a"}] * 10
LABELS = ["no", "yes", "no"] * 10


@pytest.fixture(scope="module")
def fast():
    return unkernel.compile(
        make_pipeline(RecordEncoder(), PolyLogisticRegression(degree=2)).fit(RECORDS, LABELS)
    )


@pytest.fixture
def model(fast, tmp_path) -> UnkernelModel:
    fast.save(tmp_path / "income.uk")
    result = UnkernelModel("income", tmp_path)
    assert not result.ready
    assert result.load()
    return result


def test_instances(model, fast):
    answer = asyncio.run(model.predict({"instances": RECORDS}))
    assert [prediction["prediction"] for prediction in answer["predictions"]] == LABELS
    shares = [list(prediction["probabilities"].values()) for prediction in answer["predictions"]]
    assert np.array(shares) == pytest.approx(fast.predict_proba(RECORDS))
    with pytest.raises(InvalidInput, match=r'expected an object with a list of "instances"'):
        asyncio.run(model.predict({"rows": []}))
    with pytest.raises(InvalidInput, match=r"instances\[1\]: "):
        asyncio.run(model.predict({"instances": [RECORDS[0], 7]}))


def test_tensors(model):
    ages, jobs = (np.array([record[name] for record in RECORDS]) for name in ("age", "job"))
    numbers, texts = InferInput("age", [len(ages)], "FP64"), InferInput("job", [len(jobs)], "BYTES")
    numbers.set_data_from_numpy(ages.astype(np.float64), binary_data=False)
    texts.set_data_from_numpy(jobs.astype(object), binary_data=False)
    request = InferRequest(model_name="income", infer_inputs=[numbers, texts], request_id="7")
    answer = asyncio.run(model.predict(request))
    assert (answer.id, answer.model_name) == ("7", "income")
    without_id = InferRequest(model_name="income", infer_inputs=[numbers, texts])
    assert isinstance(asyncio.run(model.predict(without_id)).id, str)
    result = {output.name: output for output in answer.outputs}
    assert [str(label) for label in result["predict"].data] == LABELS
    assert result["probabilities"].shape == [len(RECORDS), 2]
    assert [input_type["name"] for input_type in model.get_input_types()] == ["age", "job"]
    assert [output_type["name"] for output_type in model.get_output_types()] == [
        "predict",
        "scores",
        "probabilities",
    ]


def test_folders_without_a_model(tmp_path, fast):
    with pytest.raises(ModelMissingError):
        UnkernelModel("income", tmp_path).load()
    for name in ("a.uk", "b.uk"):
        fast.save(tmp_path / name)
    with pytest.raises(ModelMissingError):
        UnkernelModel("income", tmp_path).load()
