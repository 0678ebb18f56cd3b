"""From the scores of classifiers to answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from unkernel._core import JsonAnswers, JsonShape
from unkernel.engines.explaining import AND, Explanation
from unkernel.models import Decision
from unkernel.models.curves import Curves, Sigmoid
from unkernel.models.decision import Softmax
from unkernel.serve.answering.base import FieldError, Json, Tensor

_encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
_encode_lines: Callable[[Any], bytes] = msgspec.json.Encoder().encode_lines
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

    def json_of_rows(self, raw: NDArray[np.float64], shape: JsonShape) -> bytes:
        """The same as JSON: a list, or lines."""
        answers = self.of_rows(raw)
        return _encode(answers) if shape == JsonShape.LIST else _encode_lines(answers)

    @cached_property
    def json_writer(self) -> JsonAnswers | None:
        """What makes JSON of the scores of two classes; None for other classifiers."""
        decision = self._decision
        if decision.scheme != "binary" or (self.has_probabilities and self._sigmoid is None):
            return None
        behind = ["}"]
        if self.has_probabilities:
            below, above = (_encode(name).decode() for name in self._names)
            behind = [f',"probabilities":{{{below}:', f",{above}:", "}}"]
        first, second = (
            [f'{{"prediction":{_encode(label).decode()},"score":', *behind]
            for label in decision.classes.tolist()
        )
        return JsonAnswers(first, second, self._sigmoid, decision.zero_is_positive)

    @cached_property
    def _sigmoid(self) -> tuple[float, float] | None:
        """Such a and b that the probability of the second of two classes is 1 / (1 + exp(a * score + b))."""
        given = self._decision.probability
        if isinstance(given, Softmax):
            return (-1.0, 0.0)
        curve = given.of_scores[0] if isinstance(given, Curves) and len(given.of_scores) == 1 else None
        return (curve.a, curve.b) if isinstance(curve, Sigmoid) else None

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
        if self._sigmoid is None:
            return lambda score: self.of_rows(np.array([[score]]))[0]
        a, b = self._sigmoid
        name_below, name_above = self._names

        def answer(score: float) -> Json:
            share = _share(a * score + b)
            return {
                "prediction": above if score > 0 or (zero and score == 0) else below,
                "score": score,
                "probabilities": {name_below: 1.0 - share, name_above: share},
            }

        return answer

    def describe(self) -> Json:
        """A description of the answers."""
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
        raise FieldError("of", f"of must be one of {', '.join(self._names)}, got {label!r}")


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


def _share(exponent: float) -> float:
    """1 / (1 + exp(exponent)), of one number: numpy takes twenty times as long for that."""
    small = math.exp(-abs(exponent))
    return (small if exponent >= 0 else 1.0) / (1.0 + small)


def _label_schema(decision: Decision) -> Json:
    if decision.scheme == "regression":
        return {"type": "number"}
    return {"enum": decision.classes.tolist()}
