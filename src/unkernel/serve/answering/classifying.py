"""From the scores of classifiers to answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from unkernel.engines.explaining import AND, Explanation
from unkernel.models import Decision
from unkernel.models.curves import Curves, Sigmoid
from unkernel.models.decision import Softmax
from unkernel.serve.answering.base import Json, Tensor

_encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
_DATATYPES = {"i": "INT64", "u": "INT64", "f": "FP64", "b": "BOOL"}


class Answers:
    """How a model's scores become answers.

    Parameters
    ----------
    decision : Decision
    """

    def __init__(self, decision: Decision) -> None:
        self._decision = decision
        self._names = [str(label) for label in decision.classes.tolist()]

    @property
    def has_probabilities(self) -> bool:
        return self._decision.probability is not None

    def of_rows(self, raw: NDArray[np.float64]) -> list[Json]:
        """The answers to (inputs, scores)."""
        chosen = self._decision.choose(raw).tolist()
        scores = self._decision.decide(raw).tolist()
        if not self.has_probabilities:
            return [
                {"prediction": label, "score": score} for label, score in zip(chosen, scores, strict=True)
            ]
        names, probabilities = self._names, self._decision.probabilities(raw).tolist()
        return [
            {"prediction": label, "score": score, "probabilities": dict(zip(names, shares, strict=True))}
            for label, score, shares in zip(chosen, scores, probabilities, strict=True)
        ]

    def json_of_rows(self, raw: NDArray[np.float64]) -> list[bytes]:
        """The same as JSON. Numbers are written together, and put where each label has its place for them."""
        if self._decision.n_scores > 1 or self._decision.scheme == "regression":
            return [_encode(answer) for answer in self.of_rows(raw)]
        labels = self._decision.choose(raw).tolist()
        columns = [self._decision.decide(raw)]
        if self.has_probabilities:
            columns += list(self._decision.probabilities(raw).T)
        written = [_encode(column.tolist())[1:-1].split(b",") for column in columns]
        places = self._places
        if not labels:
            return []
        return [
            places[label] % numbers for label, numbers in zip(labels, zip(*written, strict=True), strict=True)
        ]

    @cached_property
    def _places(self) -> dict[Any, bytes]:
        """The JSON of an answer with a label, in which %b stands for each number."""
        behind = b',"score":%b'
        if self.has_probabilities:
            shares = b",".join(_encode(name).replace(b"%", b"%%") + b":%b" for name in self._names)
            behind += b',"probabilities":{' + shares + b"}"
        return {
            label: b'{"prediction":' + _encode(label).replace(b"%", b"%%") + behind + b"}"
            for label in self._decision.classes.tolist()
        }

    @cached_property
    def of_one(self) -> Callable[[Any], Json]:
        """The answer to the score, or the list of scores, of one input."""
        decision = self._decision
        if decision.scheme != "binary":
            return lambda score: self.of_rows(np.array([score], dtype=np.float64).reshape(1, -1))[0]
        below, above = decision.classes.tolist()
        zero = decision.zero_is_positive
        if not self.has_probabilities:
            return lambda score: {
                "prediction": above if score > 0 or (zero and score == 0) else below,
                "score": score,
            }
        curve = _curve(decision)
        if curve is None:
            return lambda score: self.of_rows(np.array([[score]]))[0]
        name_below, name_above = self._names

        def answer(score: float) -> Json:
            share = curve(score)
            return {
                "prediction": above if score > 0 or (zero and score == 0) else below,
                "score": score,
                "probabilities": {name_below: 1.0 - share, name_above: share},
            }

        return answer

    def describe(self) -> Json:
        """What the answers are."""
        return {
            "scheme": self._decision.scheme,
            "classes": self._decision.classes.tolist(),
            "probabilities": self.has_probabilities,
        }

    @property
    def schema(self) -> Json:
        """An answer, for OpenAPI."""
        properties: Json = {
            "prediction": _label_schema(self._decision),
            "score": {"type": "number"}
            if self._decision.n_scores == 1
            else {"type": "array", "items": {"type": "number"}},
        }
        if self.has_probabilities:
            properties["probabilities"] = {
                "type": "object",
                "properties": {name: {"type": "number"} for name in self._names},
            }
        return {"type": "object", "properties": properties, "required": list(properties)}

    # --- The Open Inference Protocol ------------------------------------------------------------------

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors of answers."""
        decision, count = self._decision, len(self._names)
        shape = np.shape(decision.decide(np.zeros((1, decision.n_scores))))[1:]
        kind = "f" if decision.scheme == "regression" else decision.classes.dtype.kind
        found = [
            Tensor("predict", _DATATYPES.get(kind, "BYTES"), (-1,)),
            Tensor("scores", "FP64", (-1, *shape)),
        ]
        return [*found, Tensor("probabilities", "FP64", (-1, count))] if self.has_probabilities else found

    def tensors(self, raw: NDArray[np.float64]) -> Mapping[str, Any]:
        """The tensors of the answers to (inputs, scores)."""
        found: dict[str, Any] = {
            "predict": self._decision.choose(raw),
            "scores": self._decision.decide(raw),
        }
        return found | (
            {"probabilities": self._decision.probabilities(raw)} if self.has_probabilities else {}
        )

    # --- Why ------------------------------------------------------------------------------------------

    def class_called(self, label: str | None) -> Any:
        """The class that an address names."""
        if label is None:
            return None
        for known in self._decision.classes.tolist():
            if label == str(known):
                return known
        raise ValueError(f"of must be one of {', '.join(self._names)}, got {label!r}")


def explained(found: Explanation, answer: Json) -> Json:
    """An explanation, with the answer that it is of."""
    shown = found.comparison.numbers
    return answer | {
        "for_class": found.for_class,
        "against": found.against,
        "intercept": _difference(shown(found.intercept)),
        "contributions": [
            {
                "label": AND.join(part.names),
                "names": list(part.names),
                "value": _difference(shown(part.value)),
            }
            for part in found.contributions
        ],
        "rest": _difference(shown(found.rest)),
        "total": _difference(shown(found.score)),
        "conjunctions": found.n_conjunctions,
    }


def _difference(numbers: Sequence[float]) -> float:
    """What speaks for the winner: its number, or the difference to the runner-up's."""
    return float(numbers[0] - numbers[1]) if len(numbers) > 1 else float(numbers[0])


def _curve(decision: Decision) -> Callable[[float], float] | None:
    """The probability of the second of two classes, as a function of one number, where that is a sigmoid.

    ``Decision.probabilities`` says the same of arrays, and takes twenty times as long for one number.
    """
    given = decision.probability
    if isinstance(given, Softmax):
        a, b = -1.0, 0.0
    elif isinstance(given, Curves) and len(given.of_scores) == 1 and isinstance(given.of_scores[0], Sigmoid):
        a, b = given.of_scores[0].a, given.of_scores[0].b
    else:
        return None

    def share(score: float) -> float:
        exponent = a * score + b
        small = math.exp(-abs(exponent))
        return (small if exponent >= 0 else 1.0) / (1.0 + small)

    return share


def _label_schema(decision: Decision) -> Json:
    if decision.scheme == "regression":
        return {"type": "number"}
    return {"enum": decision.classes.tolist()}
