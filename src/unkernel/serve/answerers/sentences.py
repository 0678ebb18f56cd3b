"""Answerers for parsers, taggers, chunkers and tokenizers."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator, Mapping
from typing import Any

from unkernel.data.text.bunsetsu import BunsetsuSentence
from unkernel.data.text.chunks import ChunkSentence
from unkernel.data.text.conll_sentence import Sentence, sentence_to_json
from unkernel.parsing import ChunkModel, Parsed, TextParserModel, TokenizerModel, parse_stream
from unkernel.parsing.parser_model import ParserModel, SavedModel
from unkernel.serve.answerers.base import Answerer, FieldError, Json, Tensor, check_characters

_EXAMPLES = {
    "text": "They didn't see it. Why not?",
    "chunker": "He PRP\nreckons VBZ\nthe DT\ndeficit NN\n\n",
    "bunsetsu_parser": "* 0 1D\n太郎 名詞,固有名詞\nは 助詞,係助詞\n* 1 -1D\n来た 動詞,自立\nEOS\n",
}
_CONLLU_EXAMPLE = (
    "1\tDogs\tdog\tNOUN\tNNS\t_\t_\t_\t_\t_\n2\tbark\tbark\tVERB\tVBP\t_\t_\t_\t_\t_\n\n"  # in CoNLL-U
)


class SentenceAnswerer(Answerer):
    """Answers for a parser, tagger, chunker or tokenizer. An input is a text, or sentences in its format."""

    def __init__(self, model: SavedModel) -> None:
        self._model = model
        self.input = "text" if isinstance(model, TextParserModel | TokenizerModel) else "sentences"

    def describe(self) -> Json:
        return {"description": f"a {self._model.noun}", "format": self._format}

    @property
    def _format(self) -> str:
        return {"chunker": "columns", "bunsetsu_parser": "bunsetsu"}.get(self._model.kind, "conllu")

    @property
    def item_schema(self) -> Json:
        return {"type": "string", "examples": [self.example]}

    @property
    def answer_schema(self) -> Json:
        sentences = {"type": "array", "items": {"type": "object"}}
        properties = {"sentences": sentences, "output": {"type": "string"}}
        return {"type": "object", "properties": properties, "required": list(properties)}

    @property
    def example(self) -> Any:
        return _EXAMPLES.get(self.input) or _EXAMPLES.get(self._model.kind, _CONLLU_EXAMPLE)

    def answer_one(self, item: Any) -> Json:
        parts = list(self._parse(item))
        return {
            "sentences": [_to_json(sentence) for part in parts for sentence in part.corpus],
            "output": b"".join(part.data for part in parts).decode(),
        }

    def explain(self, item: Any, top: int, of: str | None) -> Json:
        if of is not None:
            raise FieldError(
                "of", "'of' selects a class, but this model is a parser, which has none; leave 'of' out"
            )
        parts = list(self._parse(item))
        return {
            "sentences": [_to_json(sentence) | _draw(sentence) for part in parts for sentence in part.corpus],
            "output": b"".join(part.data for part in parts).decode(),
            "decisions": [decision for part in parts for decision in self._explain_decisions(part, top)],
        }

    def _parse(self, item: Any) -> Iterator[Parsed]:
        if not isinstance(item, str):
            content = "the text to parse" if self.input == "text" else "sentences in columns"
            raise ValueError(f"expected a string with {content}")
        check_characters(item)
        return parse_stream(self._model, _Body(item.encode()), n_jobs=1)

    def _explain_decisions(self, part: Parsed, top: int) -> Iterator[Json]:
        """Yield the explained decisions on parsed sentences; those of a tokenizer cannot be explained."""
        model: Any = self._model.parser if isinstance(self._model, TextParserModel) else self._model
        if not isinstance(model, ParserModel):
            return
        corpus: Any = part.corpus
        for number in range(len(corpus)):
            for decision in model.explain(corpus[number : number + 1], top=top):
                yield dataclasses.asdict(decision) | {"sentence": number, "question": decision.question}

    @property
    def inputs(self) -> list[Tensor]:
        return [Tensor(self.input, "BYTES", (-1,))]

    @property
    def outputs(self) -> list[Tensor]:
        return [Tensor("output", "BYTES", (-1,))]

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            "output": [
                answer["output"] for answer in self.answer_many(inputs[self.input].reshape(-1).tolist())
            ]
        }


class _Body(io.BytesIO):
    """A request body that can be read like a file, with a name for error messages."""

    name = "the input"


def _to_json(sentence: Any) -> Json:
    if isinstance(sentence, Sentence):
        return sentence_to_json(sentence)
    if isinstance(sentence, ChunkSentence):
        return {"text": " ".join(sentence.words), "words": sentence.words, "tags": sentence.tags}
    assert isinstance(sentence, BunsetsuSentence)
    return {"text": sentence.text, "bunsetsu": list(sentence.surfaces), "heads": list(sentence.heads)}


def _draw(sentence: Any) -> Json:
    """Return a drawing of the chunks or the dependencies of a sentence; nothing if it has neither."""
    if isinstance(sentence, ChunkSentence):
        return {"drawn": sentence.draw()}
    has_heads = isinstance(sentence, BunsetsuSentence) or any(sentence.heads)
    return {"svg": sentence.to_svg()} if has_heads else {}


def is_sentence_model(model: Any) -> bool:
    """Return whether a model is a parser, tagger, chunker or tokenizer."""
    return isinstance(model, ParserModel | TextParserModel | TokenizerModel | ChunkModel)
