"""What a fitted chunker knows, apart from how it was learned."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unkernel._core import ChunkFeatures, chunk_tag_names, chunk_text, restored_chunk_features
from unkernel.data import ChunkCorpus
from unkernel.engines import CompiledClassifier, compile
from unkernel.errors import FormatError
from unkernel.models import KernelModel, TreeModel, container
from unkernel.models.load import COMPILED, model_from, model_part

SCHEMES = ("IOB1", "IOB2", "IOE1", "IOE2", "IOBES")
DIRECTIONS = ("forward", "backward")
ENGINES = ("auto", "inverted", "bitsliced", "expanded", "split")  # exact ones
_FEATURES = "features."
_TAG = re.compile("O|[BIES](-.*)?")
# Features of fewer support vectors stay with these: their conjunctions, at a weight for every tag, would be
# most of the tables. A smaller number makes larger tables that are no faster, a larger one slower ones.
_RARE = 32

Arrays = dict[str, NDArray[Any]]


def compiled(model: Any, engine: str, n_jobs: int | None = None) -> CompiledClassifier:
    """A model ready to answer; not by a measurement, so that the same model always gives the same tables."""
    if engine == "auto":
        engine = "split" if isinstance(model, KernelModel) and model.kernel.degree > 1 else "expanded"
    made = compile(model, engine=engine, rare=_RARE, n_jobs=n_jobs)
    assert isinstance(made, CompiledClassifier)
    return made


@dataclass(frozen=True, eq=False)
class ChunkModel:
    """Finds chunks. Never changes, and is safe to use from many threads.

    Attributes
    ----------
    templates : str
        The text that says which features there are.
    features : ChunkFeatures
        Those that training has seen.
    types : list of str
        The types of chunks.
    classes : ndarray of int32
        The tags that the classifier decides among, as numbers in ``chunk_tag_names(types)``.
    scheme, direction : str
    columns : int
        Columns of the training text, the tag included.
    engine : str
        What the classifier was compiled to.
    classifier : CompiledClassifier
    """

    templates: str
    features: ChunkFeatures
    types: list[str]
    classes: NDArray[np.int32]
    scheme: str
    direction: str
    columns: int
    engine: str
    classifier: CompiledClassifier

    @property
    def tag_names(self) -> list[str]:
        """The names of all tags that these types have, by number."""
        return chunk_tag_names(self.types)

    def prepare(self) -> None:
        """Make the engine now, so that what comes next is answering alone."""
        _ = self.classifier._engine

    def tags(self, corpus: ChunkCorpus, threads: int) -> NDArray[np.int32]:
        """The tags of all words in IOB2, as numbers in ``tag_names``."""
        check_without_pos(self.features, corpus)
        found = chunk_text(
            corpus._text,
            self.features,
            self.classifier._engine,
            self.classes,
            scheme=self.scheme,
            backward=self.direction == "backward",
            threads=threads,
        )
        return np.asarray(found)

    # --- Files ----------------------------------------------------------------------------------------

    def to_container(self) -> tuple[Arrays, dict[str, Any]]:
        """What a file holds of it: arrays and settings.

        Of the classifier it holds the model alone: tables are many times larger, and soon made.
        """
        arrays, settings = model_part(self.classifier.model)
        arrays |= {_FEATURES + name: np.asarray(array) for name, array in self.features.arrays().items()}
        arrays["classes"] = self.classes
        settings |= {
            "templates": self.templates,
            "types": self.types,
            "features": int(self.features.features),
            "scheme": self.scheme,
            "direction": self.direction,
            "columns": self.columns,
            "engine": self.engine,
        }
        return arrays, settings

    @classmethod
    def from_container(cls, name: str, arrays: Arrays, settings: dict[str, Any]) -> Self:
        """Check what the file `name` holds and make a model of it."""
        templates = container.setting(name, settings, "templates", str, lambda _: True)
        count = container.setting(name, settings, "features", int, lambda number: 0 <= number < 2**31)
        own = {
            key.removeprefix(_FEATURES): np.asarray(array)
            for key, array in arrays.items()
            if key.startswith(_FEATURES)
        }
        engine = container.setting(name, settings, "engine", str, ENGINES.__contains__)
        model = cls(
            templates=templates,
            features=restored_chunk_features(templates, name, own, count),
            types=container.setting(name, settings, "types", list, _are_names),
            classes=np.array(container.proper_array(name, arrays, "classes", [np.dtype(np.int32)], 1)),
            scheme=container.setting(name, settings, "scheme", str, SCHEMES.__contains__),
            direction=container.setting(name, settings, "direction", str, DIRECTIONS.__contains__),
            columns=container.setting(name, settings, "columns", int, lambda number: number >= 1),
            engine=engine,
            classifier=compiled(_stored_model(name, arrays, settings), engine),
        )
        if len(model.classes) == 0 or not 0 <= model.classes.min() <= model.classes.max() < len(
            model.tag_names
        ):
            raise FormatError(name, 0, 0, "the chunker's tags are not those of its types")
        model.tags(ChunkCorpus.from_words([]), 1)  # refuses a classifier of other tags
        return model

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, self.to_container()


def _unpickled(arrays: Arrays, settings: dict[str, Any]) -> ChunkModel:
    return ChunkModel.from_container("<pickle>", arrays, settings)


def _stored_model(name: str, arrays: Arrays, settings: dict[str, Any]) -> Any:
    model = model_from(name, COMPILED, arrays, settings)  # the one inside
    if isinstance(model, TreeModel):
        raise FormatError(name, 0, 0, "a chunker's model is not one of trees")
    return model


def _are_names(names: list[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def check_without_pos(features: ChunkFeatures, corpus: ChunkCorpus, advice: str = "") -> None:
    """A text of words alone does not do where templates look at parts of speech."""
    if not (features.needs_pos and len(corpus) and corpus.n_columns - corpus.tagged < 2):
        return
    expected, missing = "a word and its part of speech", "the part of speech"
    if corpus.tagged:
        expected = "a word, its part of speech and its tag"
        odd = [tag for tag in corpus.symbols(-1)[1] if not _TAG.fullmatch(tag)]
        missing = f"the tag ({odd[0]!r} is none)" if odd else missing
    raise ValueError(
        f"{corpus.name}: {'2 columns' if corpus.tagged else '1 column'}, where {expected} are expected, as "
        f"the templates look at parts of speech: {missing} is missing{advice}"
    )
