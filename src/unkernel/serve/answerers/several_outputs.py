"""Make answers from the scores of models of several labels or outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.models import Decision
from unkernel.models.several_outputs import MULTI_LABEL, list_explained, list_predictions
from unkernel.serve.answerers.base import FieldError, Json, Tensor
from unkernel.serve.answerers.classifier_scores import DATATYPES, AnswerFormat, make_label_schema


class OutputsFormat(AnswerFormat):
    """Converts the scores of a model of several labels or outputs to answers.

    The prediction is a list: the labels of the input, or the answer of each output in turn.
    """

    def make_answers(self, raw: NDArray[np.float64]) -> list[Json]:
        decision = self._decision
        predictions = list_predictions(decision, decision.choose(raw))
        answers = [
            {"prediction": prediction, "score": score}
            for prediction, score in zip(predictions, decision.decide(raw).tolist(), strict=True)
        ]
        if self.has_probabilities:
            for answer, shares in zip(answers, decision.probabilities(raw).tolist(), strict=True):
                answer["probabilities"] = self._name_probabilities(shares)
        return answers

    def _name_probabilities(self, shares: list[float]) -> Any:
        """Return the probability of each label by name, or of each class by name for each output."""
        if self._decision.scheme == MULTI_LABEL:
            return dict(zip(self._names, shares, strict=True))
        result, begin = [], 0
        for names in self._names_of_outputs:
            result.append(dict(zip(names, shares[begin : begin + len(names)], strict=True)))
            begin += len(names)
        return result

    @property
    def _names_of_outputs(self) -> list[list[str]]:
        return [[str(label) for label in output.classes.tolist()] for output in self._decision.outputs]

    def describe(self) -> Json:
        description = super().describe()
        if self._decision.scheme == MULTI_LABEL:
            return description
        return description | {"outputs": [_describe_output(output) for output in self._decision.outputs]}

    @property
    def schema(self) -> Json:
        decision = self._decision
        count = len(decision.outputs)
        width = decision.decide(np.zeros((1, decision.n_scores))).shape[1]
        properties: Json = {"score": _make_list_schema({"items": {"type": "number"}}, width)}
        if decision.scheme == MULTI_LABEL:
            labels = {"enum": decision.classes.tolist()}
            properties["prediction"] = {"type": "array", "items": labels, "uniqueItems": True}
        else:
            schemas = [make_label_schema(output) for output in decision.outputs]
            properties["prediction"] = _make_list_schema({"prefixItems": schemas}, count)
        if self.has_probabilities:
            properties["probabilities"] = self._make_probabilities_schema()
        return {"type": "object", "properties": properties, "required": list(properties)}

    def _make_probabilities_schema(self) -> Json:
        if self._decision.scheme == MULTI_LABEL:
            return _make_object_schema(self._names)
        schemas = list(map(_make_object_schema, self._names_of_outputs))
        return _make_list_schema({"prefixItems": schemas}, len(schemas))

    # --- The Open Inference Protocol ------------------------------------------------------------------

    @property
    def outputs(self) -> list[Tensor]:
        tensors = self.make_tensors(np.zeros((1, self._decision.n_scores)))
        return [
            Tensor(name, DATATYPES.get(values.dtype.kind, "BYTES"), (-1, *values.shape[1:]))
            for name, values in tensors.items()
        ]

    # --- Explanations ---------------------------------------------------------------------------------

    def find_class(self, label: str | None) -> Any:
        if label is None:
            return None
        candidates = list_explained(self._decision)
        for candidate in candidates:
            if label == str(candidate):
                return candidate
        raise FieldError("of", f"of must be one of {', '.join(map(str, candidates))}, got {label!r}")


def make_answer_format(decision: Decision) -> AnswerFormat:
    return OutputsFormat(decision) if decision.outputs else AnswerFormat(decision)


def _describe_output(output: Decision) -> Json:
    threshold = {} if output.threshold is None else {"threshold": output.threshold.to_json()}
    return {"scheme": output.scheme, "classes": output.classes.tolist()} | threshold


def _make_list_schema(items: Json, count: int) -> Json:
    return {"type": "array"} | items | {"minItems": count, "maxItems": count}


def _make_object_schema(names: list[str]) -> Json:
    return {"type": "object", "properties": {name: {"type": "number"} for name in names}}
