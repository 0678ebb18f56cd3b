"""Base classes of all models: scores, decision and files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from unkernel.data.repr_html import HtmlRepr
from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.models.saved_object import RestoredObject
from unkernel.models.threshold import Threshold, parse_threshold

if TYPE_CHECKING:
    from unkernel.models.decision import Decision

Arrays = dict[str, NDArray[Any]]
Settings = dict[str, Any]


class Model(HtmlRepr, RestoredObject, ABC):
    """Base class of all models: plain, portable data for computing scores.

    Learners and readers of files make models, and engines compile models.

    Attributes
    ----------
    intercept : (scores,) float64
        Constant added to each score.
    decision : Decision
        The rule that turns scores into predictions.
    origin : dict
        Information about the origin of the model.
    """

    kind: ClassVar[str]  # name of the kind in files

    intercept: NDArray[np.float64]
    origin: dict[str, Any]

    if TYPE_CHECKING:

        @property
        def decision(self) -> Decision: ...

        @property
        def classes(self) -> NDArray[Any]: ...

    @property
    def n_scores(self) -> int:
        """Number of scores per row."""
        return len(self.intercept)

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        return sum(int(array.nbytes) for array in self._arrays())

    @abstractmethod
    def _arrays(self) -> list[Any]:
        """Return the parts of the model that take memory, as arrays or objects with ``nbytes``."""

    def __repr__(self) -> str:
        outputs = f"{len(self.classes)} classes" if len(self.classes) else self.decision.scheme
        if self.decision.outputs:
            outputs = f"{len(self.decision.outputs)} {'labels' if len(self.classes) else 'outputs'}"
        return f"{type(self).__name__}({self._describe()}, {outputs})"

    @abstractmethod
    def _describe(self) -> str:
        """Return a short description of the model for ``repr``."""

    @abstractmethod
    def with_threshold(self, threshold: float | Threshold | None) -> Self:
        """Return the same model with another threshold.

        Parameters
        ----------
        threshold : float, Threshold or None
            The smallest probability of ``classes[1]`` for which this class is predicted; a
            :class:`~unkernel.models.Threshold` for the other class, or for scores; None to predict as without
            a threshold.

        Returns
        -------
        model
            A model that shares the arrays.

        Raises
        ------
        ValueError
            If the model does not have two classes with probabilities, or if the threshold is not between 0
            and 1.
        """

    # --- Files ----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a ``.uk`` file.

        An existing file is replaced in one step, or left unchanged if writing fails.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        """
        container.write(path, self.kind, *self.to_container())

    @abstractmethod
    def to_container(self) -> tuple[Arrays, Settings]:
        """Return the arrays and settings to store in a file.

        Returns
        -------
        arrays : dict of str to ndarray
            The arrays of the model.
        settings : dict
            Everything except the arrays, as values that JSON can represent.
        """

    @classmethod
    def from_container(cls, name: str, arrays: Arrays, settings: Settings) -> Self:
        try:
            return cls._from_container(name, arrays, settings)
        except FormatError:
            raise
        except ValueError as error:
            raise FormatError(name, 0, 0, str(error)) from error

    @classmethod
    @abstractmethod
    def _from_container(cls, name: str, arrays: Arrays, settings: Settings) -> Self:
        """Return a model, like :meth:`from_container`; may raise a ``ValueError`` for inconsistent parts."""


class DecidedModel(Model):
    """Base class of models that contain their decision, and with it their classes."""

    @abstractmethod
    def scores(self, X: Any) -> NDArray[np.float64]:
        """Compute the scores of examples as plain sums over the model.

        This method is slow for support vectors and trees. Compiled classifiers are tested against it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or Forest
            The rows, with any number of columns unless ``fixed_width`` is true, or the trees.

        Returns
        -------
        ndarray of shape (n_samples, n_scores)
            The scores.
        """

    @property
    def classes(self) -> NDArray[Any]:
        """The class labels; empty for regression."""
        return self.decision.classes

    def with_threshold(self, threshold: float | Threshold | None) -> Self:
        decision = replace(self.decision, threshold=parse_threshold(threshold))
        return replace(self, decision=decision)  # type: ignore[type-var]
