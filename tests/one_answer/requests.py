"""Predictions by a server: JSON (by both readers), JSON lines, tensors, and requests of the page."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

from one_answer.answers import Answer, answer_of_json
from one_answer.limits import CannotExpressError, Limit, is_utf8, json_value
from one_answer.server import EXPLAIN, INFER, PREDICT, Reply
from one_answer.ways import Record, Session, Way, list_columns
from unkernel.serve.http_messages import SHORT_BODY_BYTES

_LINES = (b"content-type", b"application/x-ndjson")


# --- JSON ---------------------------------------------------------------------------------------------


def express_in_json(session: Session, records: list[Record]) -> list[Record]:
    """Return the records as Python's json reads them back."""
    if session.subject.whole and any(
        isinstance(value, list) for record in records for value in record.values()
    ):
        raise CannotExpressError(Limit.LIST_OF_INPUTS)
    return [json.loads(json.dumps({k: json_value(v) for k, v in record.items()})) for record in records]


def write_plain_json(item: Any) -> bytes:
    """Return JSON like most programs: UTF-8, with only the necessary escapes."""
    try:
        return json.dumps(item, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate must be escaped
        return json.dumps(item).encode()


def write_escaped_json(item: Any) -> bytes:
    """Return JSON in which all letters of keys and texts are escaped; fast readers do not support escapes."""
    if isinstance(item, dict):
        return (
            b"{"
            + b", ".join(
                write_escaped_json(key) + b" :" + write_escaped_json(value) for key, value in item.items()
            )
            + b"}"
        )
    if isinstance(item, list):
        return b"[" + b",".join(map(write_escaped_json, item)) + b"]"
    if isinstance(item, str):
        units = struct.unpack(
            f"<{len(item.encode('utf-16-le', 'surrogatepass')) // 2}H",
            item.encode("utf-16-le", "surrogatepass"),
        )
        return b'"' + b"".join(b"\\u%04x" % unit for unit in units) + b'"'
    return json.dumps(item).encode()


def write_keys_twice(item: Any) -> bytes:
    """Return a record that has each key twice; the second one counts."""
    if not isinstance(item, dict) or not item:
        return write_plain_json(item)
    return (
        write_plain_json(dict.fromkeys(item, "no")).removesuffix(b"}")
        + b","
        + write_plain_json(item).removeprefix(b"{")
    )


def read(session: Session, reply: Reply) -> Any:
    status, body = reply
    parsed = json.loads(body)
    if status != 200:
        assert 400 <= status < 500, (status, body)
        raise ValueError(parsed["error"])
    return parsed


def _ask_each(send: Any, write: Any, path: str = PREDICT) -> Any:
    def ask(session: Session, records: list[Record]) -> list[Answer]:
        answers = [read(session, send(session.server, path, write(item))) for item in session.items(records)]
        return [answer_of_json(session.model, answer) for answer in answers]

    return ask


def _ask_list(write: Any, *, long: bool = False) -> Any:
    def ask(session: Session, records: list[Record]) -> list[Answer]:
        padding = b" " * (SHORT_BODY_BYTES * long)
        body = b"[" + b" , ".join(map(write, session.items(records))) + b"]" + padding
        answers = read(session, session.server.ask_connection(PREDICT, body))
        return [answer_of_json(session.model, answer) for answer in answers]

    return ask


def _ask_lines(write: Any) -> Any:
    def ask(session: Session, records: list[Record]) -> list[Answer]:
        body = b"\n".join(map(write, session.items(records)))
        status, answer = session.server.ask_application(PREDICT, body, _LINES)
        assert status == 200, answer
        result = [json.loads(line) for line in answer.splitlines()]
        for line_answer in result:
            if "error" in line_answer:
                raise ValueError(line_answer["error"])
        return [answer_of_json(session.model, line_answer) for line_answer in result]

    return ask


def _connection(server: Any, path: str, body: bytes) -> Reply:
    return server.ask_connection(path, body)


def _application(server: Any, path: str, body: bytes) -> Reply:
    return server.ask_application(path, body)


def _express_on_page(session: Session, records: list[Record]) -> list[Record]:
    if not session.explains:
        raise CannotExpressError(Limit.NOT_EXPLAINED)
    return express_in_json(session, records)


_ask_page = _ask_each(_application, write_plain_json, EXPLAIN)


# --- Tensors ------------------------------------------------------------------------------------------


def express_in_tensors(session: Session, records: list[Record]) -> list[Record]:
    """Return records as tensors express them: every column has one type, and missing values are null."""
    types = {tensor.name: tensor.datatype for tensor in session.server.tensors}
    names = [name for name in list_columns(records) if name in types]
    if len(names) < len(list_columns(records)):
        raise CannotExpressError(Limit.OTHER_INPUT)
    if not names:
        raise CannotExpressError(Limit.NO_COLUMNS)
    message = express_in_json(session, [{name: record.get(name) for name in names} for record in records])
    for record in message:
        for name, value in record.items():
            kinds = (int, float) if types[name] == "FP64" else (str,)
            if value is not None and type(value) not in kinds:
                raise CannotExpressError(Limit.TENSOR_TYPE)
    return message


def _ask_tensors(session: Session, records: list[Record]) -> list[Answer]:
    inputs = [
        {
            "name": tensor.name,
            "datatype": tensor.datatype,
            "shape": [len(records)],
            "data": [record[tensor.name] for record in records],
        }
        for tensor in session.server.tensors
        if tensor.name in records[0]
    ]
    result = read(session, session.server.ask_connection(INFER, write_plain_json({"inputs": inputs})))
    return _read_tensors(session, result["outputs"], len(records))


def _read_tensors(session: Session, tensors: list[dict[str, Any]], count: int) -> list[Answer]:
    outputs: dict[str, list[Any]] = {tensor["name"]: tensor["data"] for tensor in tensors}

    def rows(name: str) -> list[Any]:
        width = len(outputs[name]) // count
        return [outputs[name][width * row : width * (row + 1)] for row in range(count)]

    labels = rows("predict") if session.model.decision.outputs else outputs["predict"]
    shares = rows("probabilities") if "probabilities" in outputs else [None] * count
    return [Answer.from_parts(*parts) for parts in zip(labels, rows("scores"), shares, strict=True)]


def _express_in_bytes(session: Session, records: list[Record]) -> list[Record]:
    """Return records as binary tensors express them: infinities and NaN, but no null; texts are UTF-8."""
    finite = [
        {name: 0.0 if value in (math.inf, -math.inf) else value for name, value in record.items()}
        for record in records
    ]
    message = express_in_tensors(session, finite)
    types = {tensor.name: tensor.datatype for tensor in session.server.tensors}
    for record, original in zip(message, records, strict=True):
        for name in record:
            if types[name] == "FP64":
                record[name] = math.nan if record[name] is None else _to_double(original[name])
            elif record[name] is None or not is_utf8(record[name]):
                raise CannotExpressError(Limit.TENSOR_BYTES)
    return message


def _to_double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise CannotExpressError(Limit.TENSOR_BYTES) from None


def _ask_bytes(session: Session, records: list[Record]) -> list[Answer]:
    inputs, data = [], b""
    for tensor in session.server.tensors:
        if tensor.name not in records[0]:
            continue
        values = [record[tensor.name] for record in records]
        part = (
            struct.pack(f"<{len(values)}d", *values)
            if tensor.datatype == "FP64"
            else b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in values)
        )
        inputs.append(
            {
                "name": tensor.name,
                "datatype": tensor.datatype,
                "shape": [len(records), 1],
                "parameters": {"binary_data_size": len(part)},
            }
        )
        data += part
    head = write_plain_json({"inputs": inputs})
    length = (b"inference-header-content-length", b"%d" % len(head))
    result = read(session, session.server.ask_application(INFER, head + data, length))
    return _read_tensors(session, result["outputs"], len(records))


def _way(name: str, ask: Any) -> Way:
    return Way(f"the server, {name}", ask, express_in_json, none_is_nan=True, takes_whole=True)


WAYS_OF_THE_SERVER = [
    _way("at once", _ask_each(_connection, write_plain_json)),
    _way("at once, escapes", _ask_each(_connection, write_escaped_json)),
    _way("at once, keys twice", _ask_each(_connection, write_keys_twice)),
    _way("ASGI", _ask_each(_application, write_plain_json)),
    Way(
        "the server, its page",
        _ask_page,
        _express_on_page,
        none_is_nan=True,
        takes_whole=True,
    ),
    _way("a list", _ask_list(write_plain_json)),
    _way("a list, escapes", _ask_list(write_escaped_json)),
    _way("a long list", _ask_list(write_plain_json, long=True)),
    _way("lines", _ask_lines(write_plain_json)),
    _way("lines, escapes", _ask_lines(write_escaped_json)),
    Way(
        "the server, tensors",
        _ask_tensors,
        express_in_tensors,
        none_is_nan=True,
        takes_whole=True,
    ),
    Way("the server, tensors in bytes", _ask_bytes, _express_in_bytes, none_is_nan=True, takes_whole=True),
]
