"""The Open Inference Protocol, version 2: tensors in requests and responses.

The specification is KServe's (`open-inference-protocol`, REST). Tensors are JSON or, as in its extension for
binary data, bytes after the JSON. The header `Inference-Header-Content-Length` gives the length of the JSON.
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


def model_metadata(served: ServedModel) -> Json:
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
    """A request to the endpoint infer.

    Parameters
    ----------
    body : bytes
    json_length : int or None
        Length of the JSON before the bytes of tensors; None if the whole body is JSON.
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
            place = f"inputs[{number}]"
            if not isinstance(tensor, dict):
                raise RequestError(400, f"{place} must be an object", field=place)
            name = _get_typed(tensor, "name", str, place)
            if name in inputs:
                raise RequestError(400, f"{place}: a second input {name!r}", field=f"{place}.name")
            inputs[name] = self._read_tensor(tensor, place)
        if self._binary:
            raise RequestError(400, f"there are {len(self._binary)} bytes after the last tensor")
        return inputs

    def _read_tensor(self, tensor: Json, place: str) -> NDArray[Any]:
        datatype = _get_typed(tensor, "datatype", str, place)
        if datatype != _BYTES and datatype not in _NUMPY:
            datatypes = ", ".join([_BYTES, *_NUMPY])
            raise RequestError(
                400,
                f"{place}.datatype must be one of {datatypes}, got {datatype!r}",
                field=f"{place}.datatype",
            )
        shape = _read_shape(tensor, place)
        size = _get_typed(tensor, "parameters", dict, place, default={}).get("binary_data_size")
        values = (
            _parse_data(_get_typed(tensor, "data", list, place), datatype, place)
            if size is None
            else _parse_bytes(self._take_bytes(size, place), datatype, place)
        )
        if len(values) != math.prod(shape):
            reason = f"{place}: the shape {shape} has {math.prod(shape)} values, and there are {len(values)}"
            raise RequestError(400, reason, field=f"{place}.shape")
        try:
            return values.reshape(shape)
        except (ValueError, OverflowError):  # huge axes beside one of length 0
            raise RequestError(400, f"{place}.shape is too large", field=f"{place}.shape") from None

    def _take_bytes(self, size: Any, place: str) -> memoryview:
        if type(size) is not int or not 0 <= size <= len(self._binary):
            reason = f"{place}: binary_data_size must be at most the {len(self._binary)} remaining bytes"
            raise RequestError(400, reason, field=f"{place}.parameters.binary_data_size")
        taken, self._binary = self._binary[:size], self._binary[size:]
        return taken

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
            place = f"outputs[{number}]"
            if not isinstance(output, dict):
                raise RequestError(400, f"{place} must be an object", field=place)
            name = _get_typed(output, "name", str, place)
            if name not in by_name:
                reason = f"{place}: the model has no output {name!r}; it has: {', '.join(by_name)}"
                raise RequestError(400, reason, field=f"{place}.name")
            parameters = _get_typed(output, "parameters", dict, place, default={})
            selected.append((by_name[name], parameters.get("binary_data", as_bytes_by_default) is True))
        return selected


_MISSING = object()
_KINDS: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}


def _get_typed(parent: Json, key: str, kind: type, place: str, *, default: Any = _MISSING) -> Any:
    """Return the value of a key; raise a RequestError if it is missing or of another type."""
    value = parent.get(key, default)
    field = f"{place}.{key}" if place else key
    if value is _MISSING:
        raise RequestError(400, f"{field} is missing", field=field)
    if value is not default and not isinstance(value, kind):
        raise RequestError(400, f"{field} must be {_KINDS[kind]}", field=field)
    return value


def _read_shape(tensor: Json, place: str) -> tuple[int, ...]:
    shape = _get_typed(tensor, "shape", list, place)
    if not 1 <= len(shape) <= _MAX_AXES or not all(type(size) is int and size >= 0 for size in shape):
        raise RequestError(400, f"{place}.shape must be a list of sizes, got {shape}", field=f"{place}.shape")
    return tuple(shape)


def _parse_data(data: list[Any], datatype: str, place: str) -> NDArray[Any]:
    """Convert values from JSON, flat or nested, to a flat array."""
    while data and isinstance(data[0], list):
        if not all(isinstance(part, list) for part in data):
            raise RequestError(400, f"{place}.data is nested unevenly", field=f"{place}.data")
        data = [value for part in data for value in part]
    kinds = _JSON_TYPES.get(datatype, (int, float) if datatype.startswith("FP") else (int,))
    for value in data:
        if type(value) not in kinds and value is not None:
            reason = f"{place}.data: {json.dumps(value)[:60]} is not of type {datatype}"
            raise RequestError(400, reason, field=f"{place}.data")
    if datatype == _BYTES or None in data:
        array = np.empty(len(data), dtype=object)
        array[:] = data
        return array
    try:
        return np.array(data, dtype=_NUMPY[datatype])
    except OverflowError:
        raise RequestError(
            400, f"{place}.data: a value does not fit {datatype}", field=f"{place}.data"
        ) from None


def _parse_bytes(data: memoryview, datatype: str, place: str) -> NDArray[Any]:
    if datatype != _BYTES:
        kind = np.dtype(_NUMPY[datatype])
        if len(data) % kind.itemsize:
            raise RequestError(
                400, f"{place}: {len(data)} bytes are not a whole number of {datatype} values", field=place
            )
        return np.frombuffer(data, dtype=kind)
    texts, begin = [], 0
    while begin < len(data):
        begin += 4
        length = struct.unpack_from("<I", data, begin - 4)[0] if begin <= len(data) else len(data)
        if begin + length > len(data):
            raise RequestError(400, f"{place}: a text is longer than its bytes", field=place)
        try:
            texts.append(str(data[begin : begin + length], "utf-8"))
        except UnicodeDecodeError:
            raise RequestError(400, f"{place}: a text is not UTF-8", field=place) from None
        begin += length
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def check_inputs(inputs: Mapping[str, NDArray[Any]], answerer: Answerer, most: int) -> None:
    """Raise a RequestError if the inputs do not fit the model, or have more than `most` items."""
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
    if max(counts) > most:
        raise RequestError(413, f"there are {max(counts):,} items, and the server's limit is {most:,}")
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
    if datatype != _BYTES:
        return np.ascontiguousarray(values, dtype=_NUMPY[datatype]).tobytes()
    texts = [str(value).encode() for value in values.reshape(-1).tolist()]
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)
