"""Make answers from the scores of classifiers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from unkernel._core import JsonAnswers, JsonShape
from unkernel.engines.explain.explanation import AND, Explanation
from unkernel.models import Decision
from unkernel.models.curves import Curves, Sigmoid
from unkernel.models.decision import Softmax
from unkernel.serve.answerers.base import Answerer, FieldError, ItemError, Json, Tensor, encode_answers

_encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
DATATYPES = {"i": "INT64", "u": "INT64", "f": "FP64", "b": "BOOL"}


class AnswerFormat:
    """Converts the scores of a model to answers."""

    def __init__(self, decision: Decision) -> None:
        self._decision = decision
        self._names = [str(label) for label in decision.classes.tolist()]

    @property
    def has_probabilities(self) -> bool:
        return self._decision.has_probabilities

    def make_answers(self, raw: NDArray[np.float64]) -> list[Json]:
        """Return the answers for raw scores of shape (inputs, scores)."""
        predictions = self._decision.choose(raw).tolist()
        scores = self._decision.decide(raw).tolist()
        if not self.has_probabilities:
            return [
                {"prediction": label, "score": score}
                for label, score in zip(predictions, scores, strict=True)
            ]
        names, probabilities = self._names, self._decision.probabilities(raw).tolist()
        return [
            {"prediction": label, "score": score, "probabilities": dict(zip(names, shares, strict=True))}
            for label, score, shares in zip(predictions, scores, probabilities, strict=True)
        ]

    def encode(self, raw: NDArray[np.float64], shape: JsonShape) -> bytes:
        """Return the answers for raw scores of shape (inputs, scores), as JSON of the given shape."""
        if self.json_writer is None:
            return encode_answers(self.make_answers(raw), shape)
        return self.json_writer.write(raw[:, 0], shape)

    @cached_property
    def json_writer(self) -> JsonAnswers | None:
        """The core's writer of answers if the classifier predicts by the sign of one score, else None."""
        decision = self._decision
        if not decision.chooses_by_sign or (self.has_probabilities and self._sigmoid is None):
            return None
        # An answer consists of constant texts, which depend on the class, and of numbers between them.
        suffixes = ["}"]
        if self.has_probabilities:
            negative, positive = (_encode(name).decode() for name in self._names)
            suffixes = [f',"probabilities":{{{negative}:', f",{positive}:", "}}"]
        negative_parts, positive_parts = (
            [f'{{"prediction":{_encode(label).decode()},"score":', *suffixes]
            for label in decision.classes.tolist()
        )
        return JsonAnswers(negative_parts, positive_parts, self._sigmoid, decision.zero_is_positive)

    @cached_property
    def _sigmoid(self) -> tuple[float, float, bool] | None:
        """Parameters (a, b, is_log_linear) of the sigmoid that maps scores to probabilities, or None."""
        probability = self._decision.probability
        if isinstance(probability, Softmax):
            return (-1.0, 0.0, True)
        if not isinstance(probability, Curves) or len(probability.of_scores) != 1:
            return None
        curve = probability.of_scores[0]
        return (curve.a, curve.b, False) if isinstance(curve, Sigmoid) else None

    def describe(self) -> Json:
        threshold = self._decision.threshold
        return (
            {
                "scheme": self._decision.scheme,
                "classes": self._decision.classes.tolist(),
                "probabilities": self.has_probabilities,
            }
            | ({} if threshold is None else {"threshold": threshold.to_json()})
            | self._describe_link()
        )

    def _describe_link(self) -> Json:
        return {} if self._decision.link == "identity" else {"link": self._decision.link}

    @property
    def schema(self) -> Json:
        """OpenAPI schema of an answer."""
        properties: Json = {
            "prediction": make_label_schema(self._decision),
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
        decision, count = self._decision, len(self._names)
        shape = np.shape(decision.decide(np.zeros((1, decision.n_scores))))[1:]
        kind = "f" if decision.scheme == "regression" else decision.classes.dtype.kind
        tensors = [
            Tensor("predict", DATATYPES.get(kind, "BYTES"), (-1,)),
            Tensor("scores", "FP64", (-1, *shape)),
        ]
        return [*tensors, Tensor("probabilities", "FP64", (-1, count))] if self.has_probabilities else tensors

    def make_tensors(self, raw: NDArray[np.float64]) -> dict[str, Any]:
        """Return the output tensors for raw scores of shape (inputs, scores)."""
        tensors: dict[str, Any] = {
            "predict": self._decision.choose(raw),
            "scores": self._decision.decide(raw),
        }
        return tensors | (
            {"probabilities": self._decision.probabilities(raw)} if self.has_probabilities else {}
        )

    # --- Explanations ---------------------------------------------------------------------------------

    def find_class(self, label: str | None) -> Any:
        """Return the class whose name is `label`; None if `label` is None."""
        if label is None:
            return None
        for candidate in self._decision.classes.tolist():
            if label == str(candidate):
                return candidate
        raise FieldError("of", f"of must be one of {', '.join(self._names)}, got {label!r}")


class ScoreAnswerer(Answerer):
    """A model whose answers are made from scores."""

    _format: AnswerFormat

    @abstractmethod
    def _compute_scores(self, items: Sequence[Any]) -> NDArray[np.float64]:
        """Return scores of shape (inputs, scores); raise a ValueError or TypeError for an invalid input."""

    def answer_one(self, item: Any) -> Json:
        return self._format.make_answers(self._compute_scores([item]))[0]

    def answer_many(self, items: Sequence[Any]) -> list[Json]:
        return self._format.make_answers(self._score_items(items))

    def answer_items(self, items: Sequence[Any], shape: JsonShape) -> bytes:
        try:
            return self._encode_answers(items, shape)
        except (ValueError, TypeError):
            self._score_items(items)  # raises an ItemError
            raise

    def _encode_answers(self, items: Sequence[Any], shape: JsonShape) -> bytes:
        """Return the answers as JSON; raise a ValueError or TypeError for an invalid input."""
        return self._format.encode(self._compute_scores(items), shape)

    def _score_items(self, items: Sequence[Any]) -> NDArray[np.float64]:
        """Return scores of shape (inputs, scores); raise an ItemError for the first invalid input."""
        try:
            return self._compute_scores(items)
        except (ValueError, TypeError):
            for number, item in enumerate(items):
                try:
                    self._compute_scores([item])
                except (ValueError, TypeError) as error:
                    raise ItemError(number, error) from error
            raise

    @property
    def answer_schema(self) -> Json:
        return self._format.schema

    @property
    def outputs(self) -> list[Tensor]:
        return self._format.outputs


def explanation_to_json(explanation: Explanation, answer: Json) -> Json:
    """Return an answer together with its explanation."""
    get_numbers = explanation.comparison.numbers
    output = {} if explanation.output is None else {"for_output": explanation.output}
    return (
        answer
        | output
        | {
            "for_class": explanation.for_class,
            "against": explanation.against,
            "intercept": _subtract_runner_up(get_numbers(explanation.intercept)),
            "contributions": [
                {
                    "label": AND.join(part.names),
                    "names": list(part.names),
                    "value": _subtract_runner_up(get_numbers(part.value)),
                }
                for part in explanation.contributions
            ],
            "rest": _subtract_runner_up(get_numbers(explanation.rest)),
            "total": _subtract_runner_up(get_numbers(explanation.score)),
            "conjunctions": explanation.n_conjunctions,
        }
    )


def _subtract_runner_up(numbers: Sequence[float]) -> float:
    """Return the winner's number minus the runner-up's, which is the second number if there are two."""
    return float(numbers[0] - numbers[1]) if len(numbers) > 1 else float(numbers[0])


def make_label_schema(decision: Decision) -> Json:
    if decision.scheme == "regression":
        return {"type": "number"}
    return {"enum": decision.classes.tolist()}
