"""The servers that benchmarks/serve.py compares with: a pipeline of scikit-learn, and ONNX Runtime.

Run by uvicorn, with the folder of models in ``SERVE_MODELS``. Both take a record, or a list of records, at
``/predict``, and answer with labels and probabilities, as ours does.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("SERVE_MODELS", "."))


def fastapi_sklearn() -> Any:
    """Return an application as tutorials show it: FastAPI, a pandas DataFrame, and the pipeline."""
    import joblib
    import pandas as pd
    from fastapi import Body, FastAPI

    pipeline = joblib.load(FOLDER / "pipeline.joblib")
    names = [str(name) for name in pipeline.classes_]
    app = FastAPI()

    @app.post("/predict")
    def predict(body: Any = Body()) -> Any:  # noqa: B008 (as FastAPI has it)
        records = body if isinstance(body, list) else [body]
        frame = pd.DataFrame(records)
        labels, shares = pipeline.predict(frame), pipeline.predict_proba(frame)
        answers = [
            {"prediction": str(label), "probabilities": dict(zip(names, row, strict=True))}
            for label, row in zip(labels, shares.tolist(), strict=True)
        ]
        return answers if isinstance(body, list) else answers[0]

    return app


def onnx() -> Any:
    """Return an ASGI application of ONNX Runtime without a framework, with msgspec for JSON, as in ours."""
    import msgspec
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(FOLDER / "pipeline.onnx"), options)
    kinds = {
        input_.name: object if "string" in input_.type else np.float32 for input_ in session.get_inputs()
    }
    names = json.loads((FOLDER / "classes.json").read_text())
    decode, encode = msgspec.json.decode, msgspec.json.encode
    headers = [(b"content-type", b"application/json")]

    def answered(body: bytes) -> bytes:
        inputs = decode(body)
        records = inputs if isinstance(inputs, list) else [inputs]
        feed = {
            name: np.array([[record[name]] for record in records], dtype=kind) for name, kind in kinds.items()
        }
        labels, shares = session.run(None, feed)
        answers = [
            {"prediction": label, "probabilities": dict(zip(names, row, strict=True))}
            for label, row in zip(labels.tolist(), shares.tolist(), strict=True)
        ]
        return encode(answers if isinstance(inputs, list) else answers[0])

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        answer = answered(body)
        length = (b"content-length", str(len(answer)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": answer})

    return app
