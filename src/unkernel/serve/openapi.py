"""The OpenAPI document of a server, from the schemas of its models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unkernel._version import __version__
from unkernel.serve.answerers import Json
from unkernel.serve.served_models import ServedModel

_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "field": {"type": "string"}},
    "required": ["error"],
}
_ERRORS = {
    "400": "The body is not JSON, or not an input of the model; `field` names the invalid part.",
    "401": "A token is missing or invalid.",
    "404": "The model or version does not exist.",
    "408": "The body did not arrive in time.",
    "413": "The body or the batch is too large.",
    "429": "The server is busy with too many requests.",
    "504": "The answer took too long.",
}


def make_document(models: Sequence[ServedModel]) -> Json:
    """Return the OpenAPI document with all endpoints of the server."""
    paths: Json = {}
    for served in models:
        paths |= _make_model_paths(served)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "unkernel",
            "version": __version__,
            "description": "Models, and how to query them.",
        },
        "paths": paths | _make_server_paths(),
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _make_model_paths(served: ServedModel) -> Json:
    item, answer = served.answerer.item_schema, served.answerer.answer_schema
    example = served.answerer.example
    inputs = {"oneOf": [item, {"type": "array", "items": item}]}
    answers = {"oneOf": [answer, {"type": "array", "items": answer}]}
    lines = {"schema": {"type": "string"}, "description": "One input or answer per line."}
    predict = _make_operation(
        f"Predict for one {served.answerer.input}, a list, or JSON lines.",
        {"application/json": {"schema": inputs, "example": example}, "application/x-ndjson": lines},
        {"application/json": {"schema": answers}, "application/x-ndjson": lines},
    )
    explain = _make_operation(
        f"Explain the answer to one {served.answerer.input}.",
        {"application/json": {"schema": item, "example": example}},
        _make_json_content(),
    )
    explain["parameters"] = [
        _make_parameter("top", {"type": "integer", "default": 10}, "How many contributions to list."),
        _make_parameter("of", {"type": "string"}, "Explain the score of this class."),
    ]
    name = served.name
    return {
        f"/models/{name}/predict": {"post": predict},
        f"/models/{name}/explain": {"post": explain},
        f"/models/{name}/load": {"post": _make_operation("Load the model's file if it is valid.")},
        f"/models/{name}": {"get": _make_operation("Describe the model.")},
        f"/v2/models/{name}": {
            "get": _make_operation("Describe its inputs and outputs (Open Inference Protocol).")
        },
        f"/v2/models/{name}/ready": {"get": _make_operation("Check that the model is ready.")},
        f"/v2/models/{name}/infer": {
            "post": _make_operation(
                "Predict for tensors (Open Inference Protocol).", _make_json_content(), _make_json_content()
            )
        },
    }


def _make_server_paths() -> Json:
    return {
        "/models": {"get": _make_operation("Describe all models.")},
        "/metrics": {"get": _make_operation("Counts and times for Prometheus.", None, {"text/plain": {}})},
        "/v2": {"get": _make_operation("Describe the server.")},
        "/v2/health/live": {"get": _make_operation("Check that the server runs.")},
        "/v2/health/ready": {"get": _make_operation("Check that all models are ready.")},
    }


def _make_operation(summary: str, body: Json | None = None, answer: Json | None = None) -> Json:
    error = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    operation: Json = {
        "summary": summary,
        "responses": {"200": {"description": "The answer.", "content": answer or _make_json_content()}}
        | {status: {"description": reason} | error for status, reason in _ERRORS.items()},
    }
    return operation | ({} if body is None else {"requestBody": {"required": True, "content": body}})


def _make_json_content() -> Json:
    return {"application/json": {"schema": {"type": ["object", "array"]}}}


def _make_parameter(name: str, schema: Json, description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": description}
