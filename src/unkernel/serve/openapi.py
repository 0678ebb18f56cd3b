"""OpenAPI, made from the schemas of the models that are served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unkernel._version import __version__
from unkernel.serve.answerers import Json
from unkernel.serve.served_models import Served

_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "field": {"type": "string"}},
    "required": ["error"],
}
_ERRORS = {
    "400": "The body is not JSON, or not an input of the model; `field` names the part that is wrong.",
    "401": "The server asks for a token.",
    "404": "There is no such model, or version.",
    "408": "The body did not come in time.",
    "413": "The body, or the batch, is too large.",
    "429": "Too many requests are being answered.",
    "504": "There was no answer in time.",
}


def document(models: Sequence[Served]) -> Json:
    """All that the server answers."""
    paths: Json = {}
    for served in models:
        paths |= _of_model(served)
    return {
        "openapi": "3.1.0",
        "info": {"title": "unkernel", "version": __version__, "description": "Models, and how to ask them."},
        "paths": paths | _of_server(),
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _of_model(served: Served) -> Json:
    item, answer = served.answerer.item_schema, served.answerer.answer_schema
    example = served.answerer.example
    either = {"oneOf": [item, {"type": "array", "items": item}]}
    answers = {"oneOf": [answer, {"type": "array", "items": answer}]}
    lines = {"schema": {"type": "string"}, "description": "One input, or answer, per line, as they come."}
    predict = _operation(
        f"Ask {served.name} about one {served.answerer.input}, a list, or JSON lines.",
        {"application/json": {"schema": either, "example": example}, "application/x-ndjson": lines},
        {"application/json": {"schema": answers}, "application/x-ndjson": lines},
    )
    explain = _operation(
        f"What decided for one {served.answerer.input}.",
        {"application/json": {"schema": item, "example": example}},
        _some_json(),
    )
    explain["parameters"] = [
        _parameter("top", {"type": "integer", "default": 10}, "How many contributions to list."),
        _parameter("of", {"type": "string"}, "Explain the score of this class."),
    ]
    name = served.name
    return {
        f"/models/{name}/predict": {"post": predict},
        f"/models/{name}/explain": {"post": explain},
        f"/models/{name}/load": {"post": _operation("Load the model's file, if it is whole.")},
        f"/models/{name}": {"get": _operation("What the model is.")},
        f"/v2/models/{name}": {"get": _operation("Its inputs and outputs, in the Open Inference Protocol.")},
        f"/v2/models/{name}/ready": {"get": _operation("Whether it answers.")},
        f"/v2/models/{name}/infer": {
            "post": _operation("The Open Inference Protocol.", _some_json(), _some_json())
        },
    }


def _of_server() -> Json:
    return {
        "/models": {"get": _operation("All models.")},
        "/metrics": {"get": _operation("Counts and times, for Prometheus.", None, {"text/plain": {}})},
        "/v2": {"get": _operation("What the server is.")},
        "/v2/health/live": {"get": _operation("Whether the server runs.")},
        "/v2/health/ready": {"get": _operation("Whether all models answer.")},
    }


def _operation(summary: str, body: Json | None = None, answer: Json | None = None) -> Json:
    error = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    found: Json = {
        "summary": summary,
        "responses": {"200": {"description": "The answer.", "content": answer or _some_json()}}
        | {status: {"description": words} | error for status, words in _ERRORS.items()},
    }
    return found | ({} if body is None else {"requestBody": {"required": True, "content": body}})


def _some_json() -> Json:
    return {"application/json": {"schema": {"type": ["object", "array"]}}}


def _parameter(name: str, schema: Json, description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": description}
