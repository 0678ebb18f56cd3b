"""What parsers and chunkers share: files, pickles, threads, templates, and how they tell what they do."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unkernel._core import Progress
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier
from unkernel.errors import FormatError
from unkernel.learners.base import OnProgress
from unkernel.models import container
from unkernel.parsing.explaining import Decided, ExplainedDecision, explained
from unkernel.poly import PolyLogisticRegression, PolySVC

Arrays = dict[str, NDArray[Any]]
_OF_SUPPORT_VECTORS = ("inverted", "bitsliced", "split", "pruned")  # engines that weights do not do for


@dataclass(frozen=True)
class Step:
    """Where training is.

    Attributes
    ----------
    words : str
        What has just been done; empty in the middle of a step.
    share : float or None
        How much of all steps is done, where their number is known.
    progress : Progress or None
        How far a solver is, in the middle of a step.
    """

    words: str
    share: float | None = None
    progress: Progress | None = None


Watch = Callable[[Step], None]


class Teller:
    """Tells about training: a function that watches, or else whoever reads stdout, as `verbose` says."""

    def __init__(self, name: str, verbose: int, watch: Watch | None) -> None:
        self._name = name
        self._verbose = int(verbose)
        self._watch = watch

    def __call__(self, words: str, *, share: float | None = None, level: int = 1) -> None:
        if self._watch is not None:
            self._watch(Step(words, share))
        elif self._verbose >= level:
            print(f"[{self._name}] {words}", flush=True)

    @property
    def on_progress(self) -> OnProgress | None:
        """What solvers are to call; None where nobody watches."""
        watch = self._watch
        return None if watch is None else lambda progress: watch(Step("", progress=progress))


class BaseParser(BaseEstimator):  # type: ignore[misc]
    """What all parsers do alike. Each says what it keeps (:meth:`_stored`) and takes it back."""

    kind: ClassVar[str]  # of files
    _noun: ClassVar[str] = "parser"
    _fitted_by: ClassVar[str]  # the attribute that a fitted one has
    _pickled: ClassVar[tuple[str, ...]] = ("dev_result_",)  # what is not in files, and yet not forgotten

    degree: int
    C: float | None
    learner: str
    engine: str
    tol: float
    n_jobs: int | None
    random_state: Any
    verbose: int

    @abstractmethod
    def _stored(self) -> tuple[Arrays, dict[str, Any]]:
        """What a file holds beside the parameters: arrays and settings."""

    @abstractmethod
    def _restore(self, name: str, arrays: Arrays, settings: dict[str, Any]) -> None:
        """Check what the file `name` holds and take it; whatever is not sound is a ValueError."""

    @property
    @abstractmethod
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifiers that decide, by name."""

    @abstractmethod
    def class_names(self, part: str) -> list[str]:
        """What a classifier of ``parts_`` chooses among."""

    @abstractmethod
    def feature_names(self, part: str) -> Callable[[int], str]:
        """What the columns of a classifier of ``parts_`` are called: a function of their numbers.

        Those of a kind, such as ``"labels"``, have the same columns.
        """

    @abstractmethod
    def _decided(self, source: Any, tags: Any) -> Iterator[tuple[Decided, NDArray[np.int32]]]:
        """The decisions on a text, each with the row of features it was made on."""

    def explain(self, source: Any, tags: Any = None, *, top: int | None = 10) -> list[ExplainedDecision]:
        """Why sentences get the answers that they get, decision by decision.

        Parameters
        ----------
        source : path, open file, corpus, or lists of words
            As ``parse`` takes it.
        tags : lists of str, default=None
            The parts of speech of lists of words.
        top : int, default=10
            How many conjunctions of features to list for each, those first that made the largest difference
            between the winner and the runner-up; None lists all.

        Returns
        -------
        list of ExplainedDecision
            In the order in which they were made (of chunkers: of the text).
        """
        check_is_fitted(self)
        if top is not None and (isinstance(top, bool) or top < 0):
            raise ValueError(f"top must be a number of conjunctions, or None for all, got {top}")
        parts, classes = self.parts_, cache(self.class_names)
        features = cache(self.feature_names)
        return [
            explained(
                decided,
                parts[decided.part],
                row,
                classes(decided.part),
                features(decided.part.partition(".")[0]),
                top=top,
            )
            for decided, row in self._decided(source, tags)
        ]

    @property
    def nbytes(self) -> int:
        """Bytes of all compiled tables."""
        return sum(part.nbytes for part in self.parts_.values())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._fitted_by)

    def _teller(self, watch: Watch | None) -> Teller:
        return Teller(type(self).__name__, self.verbose, watch)

    def _threads(self, n_jobs: int | None) -> int:
        return thread_count(self.n_jobs if n_jobs is None else n_jobs)

    def _refuse_parameters(self) -> None:
        """What does not go together, before anything is read."""
        self._threads(None)
        if self.engine in _OF_SUPPORT_VECTORS and (self.learner != "svm" or self.degree == 1):
            raise ValueError(
                f"engine={self.engine!r} sums over support vectors, which learner={self.learner!r} of degree "
                f"{self.degree} does not have: use engine='auto'"
            )

    def _row_learner(self, **others: Any) -> PolySVC | PolyLogisticRegression:
        """What learns from rows of features, with the parser's parameters and some others."""
        if self.engine in _OF_SUPPORT_VECTORS:
            others = {"storage": "split"} | others  # which gives support vectors, not weights
        chosen = {
            "degree": self.degree,
            "C": self.C,
            "tol": self.tol,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
        } | others
        return PolyLogisticRegression(**chosen) if self.learner == "logistic" else PolySVC(**chosen)

    # --- Files ----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that was learned to a ``.uk`` file, whole or not at all; ``unkernel.load`` reads it."""
        container.write(path, *self.to_container())

    def to_container(self) -> tuple[str, Arrays, dict[str, Any]]:
        """What a file holds of it: the kind, arrays and settings."""
        check_is_fitted(self)
        arrays, settings = self._stored()
        return self.kind, arrays, settings | {"parameters": self._stored_parameters()}

    def _stored_parameters(self) -> dict[str, Any]:
        stored = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        if isinstance(self.random_state, np.random.RandomState):
            stored["random_state"] = None
        return stored

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of this kind; ``unkernel.load`` reads those of any kind.

        Raises
        ------
        FormatError
            If the file is of another kind, or is damaged.
        """
        name = os.fspath(path)
        kind, arrays, settings = container.read(path)
        if kind != cls.kind:
            raise FormatError(name, 0, 0, f"a file of kind {kind!r}, which is no {cls._noun}")
        return cls.from_container(name, arrays, settings)

    @classmethod
    def from_container(cls, name: str, arrays: Arrays, settings: dict[str, Any]) -> Self:
        """Check what the file `name` holds and make a parser of it."""
        try:
            parser = cls(**container.setting(name, settings, "parameters", dict, lambda _: True))
            parser._validate_params()
            parser._restore(name, arrays, settings)
            return parser
        except FormatError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FormatError(name, 0, 0, f"the {cls._noun} is damaged: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        if not self.__sklearn_is_fitted__():
            return dict(super().__getstate__())
        kept = {name: getattr(self, name) for name in ("random_state", *self._pickled)}
        return {"container": self.to_container()[1:], "kept": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "container" not in state:
            super().__setstate__(state)
            return
        restored = type(self).from_container("<pickle>", *state["container"])
        self.__dict__.update(restored.__dict__ | state["kept"])


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value


def read_templates(templates: str | os.PathLike[str], known: Mapping[str, str]) -> tuple[str, str]:
    """The text of templates, and what messages call it: one of ours by its name, or a file."""
    if isinstance(templates, str) and templates in known:
        file = resources.files(__package__).joinpath("templates", known[templates])
        return file.read_text("utf-8"), f"templates {templates!r}"
    path = Path(templates)
    try:
        return path.read_text("utf-8-sig"), str(path)
    except FileNotFoundError as error:
        ours = ", ".join(map(repr, known))
        raise FileNotFoundError(f"there is no template file {str(path)!r}; ours are {ours}") from error
    except UnicodeDecodeError as error:
        raise FormatError(str(path), 0, 0, "a template file is text in UTF-8") from error


def check_empty(name: str, count: int) -> None:
    """There is nothing to measure on where there are no words, or bunsetsu."""
    if not count:
        raise ValueError(f"{name}: there are no sentences")


def percentage(part: int, whole: int, *, of_none: float = float("nan")) -> float:
    """How many of 100; where there are none at all, what the task's rules say.

    >>> percentage(3, 4)
    75.0
    """
    return 100.0 * int(part) / int(whole) if whole else of_none


def per_second(count: int, seconds: float) -> float:
    """A clock that did not move says nothing: NaN."""
    return count / seconds if seconds > 0 else float("nan")
