"""The MLServer runtime, used through MLServer."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import unkernel
from unkernel import PolyLogisticRegression, PolySVC, RecordEncoder

try:
    from mlserver.codecs import NumpyCodec, StringCodec
    from mlserver.errors import InferenceError
    from mlserver.settings import ModelParameters, ModelSettings
    from mlserver.types import InferenceRequest, RequestOutput
except (ImportError, TypeError) as error:  # TypeError: KServe in this process claims MLServer's names
    pytest.skip(f"MLServer cannot be imported: {error}", allow_module_level=True)

from unkernel.mlserver import UnkernelRuntime

RECORDS = {"age": [20, 30, 50, 60] * 10, "job": ["a", "b", "a", "c"] * 10}
LABELS = np.array(["no", "yes", "no", "yes"] * 10)


def start_runtime(path) -> UnkernelRuntime:
    settings = ModelSettings(
        name="income", implementation=UnkernelRuntime, parameters=ModelParameters(uri=str(path), version="v1")
    )
    runtime = UnkernelRuntime(settings)
    assert asyncio.run(runtime.load())
    return runtime


@pytest.fixture(scope="module")
def fast():
    return unkernel.compile(
        make_pipeline(RecordEncoder(), PolyLogisticRegression(degree=2)).fit(RECORDS, LABELS)
    )


@pytest.fixture
def runtime(fast, tmp_path) -> UnkernelRuntime:
    fast.save(tmp_path / "model.uk")
    return start_runtime(tmp_path)  # the folder


def make_request(**columns) -> InferenceRequest:
    inputs = [
        StringCodec.encode_input(name, values)
        if isinstance(values[0], str)
        else NumpyCodec.encode_input(name, np.array(values, dtype=np.float64))
        for name, values in columns.items()
    ]
    return InferenceRequest(id="7", inputs=inputs)


def test_records(runtime, fast):
    answer = asyncio.run(runtime.predict(make_request(**RECORDS)))
    result = {output.name: output for output in answer.outputs}
    assert StringCodec.decode_output(result["predict"]) == LABELS.tolist()
    shares = NumpyCodec.decode_output(result["probabilities"])
    assert shares == pytest.approx(fast.predict_proba(RECORDS))
    assert (answer.id, answer.model_name, answer.model_version) == ("7", "income", "v1")


def test_inputs_and_outputs_of_the_model_are_described(runtime):
    message = asyncio.run(runtime.metadata())
    assert [(input_.name, input_.datatype) for input_ in message.inputs] == [
        ("age", "FP64"),
        ("job", "BYTES"),
    ]
    assert [output.name for output in message.outputs] == ["predict", "scores", "probabilities"]


def test_only_requested_outputs_are_returned(runtime):
    request = make_request(**RECORDS)
    request.outputs = [RequestOutput(name="scores")]
    assert [output.name for output in asyncio.run(runtime.predict(request)).outputs] == ["scores"]


def test_rows_are_predicted_and_bad_rows_refused(tmp_path):
    PolySVC(degree=2).fit(np.eye(4), [0, 1, 0, 1]).save(tmp_path / "rows.uk")
    runtime = start_runtime(tmp_path / "rows.uk")
    answer = asyncio.run(runtime.predict(make_request(rows=np.eye(4).tolist())))
    assert NumpyCodec.decode_output(answer.outputs[0]).reshape(-1).tolist() == [0, 1, 0, 1]
    with pytest.raises(InferenceError, match="the input 'rows' is missing"):
        asyncio.run(runtime.predict(make_request(other=[[1.0]])))
    with pytest.raises(InferenceError, match="3 features"):
        asyncio.run(runtime.predict(make_request(rows=np.eye(3).tolist())))
