"""The Open Inference Protocol, version 2: tensors in requests and responses.

KServe publishes the specification (`open-inference-protocol`, REST). Tensors are JSON or, with the extension
for binary data, bytes after the JSON. The header `Inference-Header-Content-Length` has the length of the
JSON.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._version import __version__
from unkernel.serve.answerers import Answerer, Json, Tensor
from unkernel.serve.errors import RequestError
from unkernel.serve.request_bodies import decode_json, encode_json
from unkernel.serve.served_models import ServedModel

JSON_LENGTH = b"inference-header-content-length"
EXTENSIONS = ["binary_tensor_data", "model_repository"]
SERVER = {"name": "unkernel", "version": __version__, "extensions": EXTENSIONS}
_BYTES = "BYTES"
_NUMPY: dict[str, Any] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
}
_JSON_TYPES: dict[str, tuple[type, ...]] = {_BYTES: (str,), "BOOL": (bool,)}
_MAX_AXES = 8


def describe_metadata(served: ServedModel) -> Json:
    """Return the metadata of a model: its name, version, inputs and outputs."""
    return {
        "name": served.name,
        "versions": [served.version],
        "platform": "unkernel",
        "inputs": [tensor.to_json() for tensor in served.answerer.inputs],
        "outputs": [tensor.to_json() for tensor in served.answerer.outputs],
    }


# --- Requests -----------------------------------------------------------------------------------------


class Request:
    """A request to the endpoint ``infer``.

    Parameters
    ----------
    body : bytes
    json_length : int or None
        Length of the JSON, which is followed by the bytes of tensors; None if the body is only JSON.
    """

    def __init__(self, body: bytes, json_length: int | None) -> None:
        if json_length is not None and not 0 <= json_length <= len(body):
            raise RequestError(400, f"{JSON_LENGTH.decode()} is not a length within the body")
        self._binary = memoryview(b"" if json_length is None else body[json_length:])
        self._json = decode_json(body if json_length is None else body[:json_length])
        if not isinstance(self._json, dict):
            raise RequestError(400, 'expected an object with "inputs"')
        self.id = _get_typed(self._json, "id", str, "", default=None)
        self.inputs = self._read_inputs()

    def _read_inputs(self) -> dict[str, NDArray[Any]]:
        inputs: dict[str, NDArray[Any]] = {}
        for number, tensor in enumerate(_get_typed(self._json, "inputs", list, "")):
            path = f"inputs[{number}]"
            if not isinstance(tensor, dict):
                raise RequestError(400, f"{path} must be an object", field=path)
            name = _get_typed(tensor, "name", str, path)
            if name in inputs:
                raise RequestError(400, f"{path}: a second input {name!r}", field=f"{path}.name")
            inputs[name] = self._read_tensor(tensor, path)
        if self._binary:
            raise RequestError(400, f"there are {len(self._binary)} bytes after the last tensor")
        return inputs

    def _read_tensor(self, tensor: Json, path: str) -> NDArray[Any]:
        """Return an input tensor as an array; `path` is its place in the JSON, for messages."""
        datatype = _get_typed(tensor, "datatype", str, path)
        if datatype != _BYTES and datatype not in _NUMPY:
            datatypes = ", ".join([_BYTES, *_NUMPY])
            raise RequestError(
                400,
                f"{path}.datatype must be one of {datatypes}, got {datatype!r}",
                field=f"{path}.datatype",
            )
        shape = _read_shape(tensor, path)
        size = _get_typed(tensor, "parameters", dict, path, default={}).get("binary_data_size")
        values = (
            _parse_data(_get_typed(tensor, "data", list, path), datatype, path)
            if size is None
            else _parse_bytes(self._take_bytes(size, path), datatype, path)
        )
        if len(values) != math.prod(shape):
            reason = f"{path}: the shape {shape} has {math.prod(shape)} values, and there are {len(values)}"
            raise RequestError(400, reason, field=f"{path}.shape")
        try:
            return values.reshape(shape)
        except (ValueError, OverflowError):  # huge axes, and an axis of length 0
            raise RequestError(400, f"{path}.shape is too large", field=f"{path}.shape") from None

    def _take_bytes(self, size: Any, path: str) -> memoryview:
        if type(size) is not int or not 0 <= size <= len(self._binary):
            reason = f"{path}: binary_data_size must be at most the {len(self._binary)} remaining bytes"
            raise RequestError(400, reason, field=f"{path}.parameters.binary_data_size")
        data, self._binary = self._binary[:size], self._binary[size:]
        return data

    def select_outputs(self, answerer: Answerer) -> list[tuple[Tensor, bool]]:
        """Return the requested outputs, each with a flag: whether to send it as bytes."""
        by_name = {tensor.name: tensor for tensor in answerer.outputs}
        as_bytes_by_default = (
            _get_typed(self._json, "parameters", dict, "", default={}).get("binary_data_output") is True
        )
        if "outputs" not in self._json:
            return [(tensor, as_bytes_by_default) for tensor in by_name.values()]
        selected = []
        for number, output in enumerate(_get_typed(self._json, "outputs", list, "")):
            path = f"outputs[{number}]"
            if not isinstance(output, dict):
                raise RequestError(400, f"{path} must be an object", field=path)
            name = _get_typed(output, "name", str, path)
            if name not in by_name:
                reason = f"{path}: the model has no output {name!r}; it has: {', '.join(by_name)}"
                raise RequestError(400, reason, field=f"{path}.name")
            parameters = _get_typed(output, "parameters", dict, path, default={})
            selected.append((by_name[name], parameters.get("binary_data", as_bytes_by_default) is True))
        return selected


_MISSING = object()
_KINDS: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}


def _get_typed(parent: Json, key: str, kind: type, path: str, *, default: Any = _MISSING) -> Any:
    """Return the value of a key; raise a RequestError if it is missing or of another type."""
    value = parent.get(key, default)
    field = f"{path}.{key}" if path else key
    if value is _MISSING:
        raise RequestError(400, f"{field} is missing", field=field)
    if value is not default and not isinstance(value, kind):
        raise RequestError(400, f"{field} must be {_KINDS[kind]}", field=field)
    return value


def _read_shape(tensor: Json, path: str) -> tuple[int, ...]:
    shape = _get_typed(tensor, "shape", list, path)
    if not 1 <= len(shape) <= _MAX_AXES or not all(type(size) is int and size >= 0 for size in shape):
        raise RequestError(400, f"{path}.shape must be a list of sizes, got {shape}", field=f"{path}.shape")
    return tuple(shape)


def _parse_data(data: list[Any], datatype: str, path: str) -> NDArray[Any]:
    """Return a flat array of values from flat or nested JSON."""
    while data and isinstance(data[0], list):
        if not all(isinstance(part, list) for part in data):
            raise RequestError(400, f"{path}.data is nested unevenly", field=f"{path}.data")
        data = [value for part in data for value in part]
    kinds = _JSON_TYPES.get(datatype, (int, float) if datatype.startswith("FP") else (int,))
    for value in data:
        if type(value) not in kinds and value is not None:
            reason = f"{path}.data: {json.dumps(value)[:60]} is not of type {datatype}"
            raise RequestError(400, reason, field=f"{path}.data")
    if datatype == _BYTES or None in data:
        array = np.empty(len(data), dtype=object)
        array[:] = data
        return array
    try:
        return np.array(data, dtype=_NUMPY[datatype])
    except OverflowError:
        raise RequestError(
            400, f"{path}.data: a value does not fit {datatype}", field=f"{path}.data"
        ) from None


def _parse_bytes(data: memoryview, datatype: str, path: str) -> NDArray[Any]:
    """Return a flat array of values from bytes. The length of each text, a uint32, precedes its bytes."""
    if datatype != _BYTES:
        kind = np.dtype(_NUMPY[datatype])
        if len(data) % kind.itemsize:
            raise RequestError(
                400, f"{path}: {len(data)} bytes are not a whole number of {datatype} values", field=path
            )
        return np.frombuffer(data, dtype=kind)
    texts, begin = [], 0
    while begin < len(data):
        begin += 4
        length = struct.unpack_from("<I", data, begin - 4)[0] if begin <= len(data) else len(data)
        if begin + length > len(data):
            raise RequestError(400, f"{path}: a text is longer than its bytes", field=path)
        try:
            texts.append(str(data[begin : begin + length], "utf-8"))
        except UnicodeDecodeError:
            raise RequestError(400, f"{path}: a text is not UTF-8", field=path) from None
        begin += length
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def check_inputs(inputs: Mapping[str, NDArray[Any]], answerer: Answerer, limit: int) -> None:
    """Raise a RequestError if the inputs do not match the model, or have more than `limit` items."""
    known_names = [tensor.name for tensor in answerer.inputs]
    unknown = next((name for name in inputs if name not in known_names), None)
    if unknown is not None:
        first_names = ", ".join(known_names[:20]) + (", ..." if len(known_names) > 20 else "")
        raise RequestError(400, f"the model has no input {unknown!r}; it has: {first_names}", field="inputs")
    if not inputs:
        raise RequestError(400, f'"inputs" is empty: give {known_names[0]!r}, for example', field="inputs")
    if len(known_names) == 1 and known_names[0] not in inputs:
        raise RequestError(400, f"the input {known_names[0]!r} is missing", field="inputs")
    counts = {array.shape[0] for array in inputs.values()}
    if len(counts) > 1:
        raise RequestError(400, "the inputs have different numbers of items", field="inputs")
    if max(counts) > limit:
        raise RequestError(413, f"there are {max(counts):,} items, and the server's limit is {limit:,}")
    flat_inputs = {tensor.name for tensor in answerer.inputs if len(tensor.shape) == 1}
    for name, array in inputs.items():
        if name in flat_inputs and array.size != array.shape[0]:
            raise RequestError(
                400,
                f"the input {name!r} must have the shape [n] or [n, 1], got {list(array.shape)}",
                field=name,
            )


# --- Responses ----------------------------------------------------------------------------------------


def encode_answer(
    served: ServedModel, request: Request, values_by_name: Mapping[str, Any]
) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return the body of a response, and its headers."""
    outputs: list[Json] = []
    binary_parts: list[bytes] = []
    for tensor, as_bytes in request.select_outputs(served.answerer):
        values = np.asarray(values_by_name[tensor.name])
        output: Json = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(values.shape)}
        if as_bytes:
            data = _encode_bytes(values, tensor.datatype)
            output["parameters"] = {"binary_data_size": len(data)}
            binary_parts.append(data)
        else:
            output["data"] = values.reshape(-1).tolist()
        outputs.append(output)
    answer = {"model_name": served.name, "model_version": served.version, "outputs": outputs}
    head = encode_json(answer if request.id is None else answer | {"id": request.id})
    if not binary_parts:
        return head, [(b"content-type", b"application/json")]
    headers = [(b"content-type", b"application/octet-stream"), (JSON_LENGTH, b"%d" % len(head))]
    return b"".join([head, *binary_parts]), headers


def _encode_bytes(values: NDArray[Any], datatype: str) -> bytes:
    """Return values as the bytes that `_parse_bytes` reads."""
    if datatype != _BYTES:
        return np.ascontiguousarray(values, dtype=_NUMPY[datatype]).tobytes()
    texts = [str(value).encode() for value in values.reshape(-1).tolist()]
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)
