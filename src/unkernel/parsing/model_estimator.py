"""What all estimators of this room share: what they have learned, and its files."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unkernel.data.files import name_of
from unkernel.errors import FormatError
from unkernel.learners.parameters import stored_parameters
from unkernel.parsing.reporting import OnStep, Reporter
from unkernel.parsing.saved_model import Arrays, SavedModel


class ModelEstimator(BaseEstimator):  # type: ignore[misc]
    """Fits a :class:`SavedModel`, which it keeps as ``model_``, and answers with it."""

    model_class: ClassVar[type[SavedModel]]

    model_: SavedModel
    n_jobs: int | None
    verbose: int

    # --- What was learned -----------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """The kind of its files."""
        return self.model_class.kind

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    @property
    def _fitted(self) -> Any:
        """The model; NotFittedError if there is none."""
        check_is_fitted(self, "model_")
        return self.model_

    @property
    def n_features_(self) -> int:
        """The number of features that training has seen often enough."""
        return int(self._fitted.n_features_)

    @property
    def nbytes(self) -> int:
        """Bytes of all compiled tables."""
        return int(self._fitted.nbytes)

    def evaluate(self, source: Any, *, n_jobs: int | None = None) -> Any:
        """``evaluate`` of the model; by default with the threads of the estimator."""
        return self._fitted.evaluate(source, n_jobs=self._jobs(n_jobs))

    # --- Files ----------------------------------------------------------------------------------------

    def to_model(self) -> Any:
        """What was learned; it needs numpy alone."""
        return self._fitted

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to a ``.uk`` file, whole or not at all; ``unkernel.load`` reads it."""
        self._fitted.save(path)

    def to_container(self) -> tuple[str, Arrays, dict[str, Any]]:
        """The content of its file: kind, arrays and settings."""
        content: tuple[str, Arrays, dict[str, Any]] = self._fitted.to_container()
        return content

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of this kind into an estimator that can be fitted again.

        ``unkernel.load`` reads files of any kind and returns the model alone.

        Raises
        ------
        FormatError
            If the file is of another kind, or is damaged.
        """
        return cls._of(cls.model_class.load(path), name_of(path))

    @classmethod
    def from_container(cls, name: str, arrays: Arrays, settings: dict[str, Any]) -> Self:
        """Check the content of the file `name` and make an estimator of it."""
        return cls._of(cls.model_class.from_container(name, arrays, settings), name)

    @classmethod
    def _of(cls, model: Any, file: str) -> Self:
        try:
            estimator = cls._unfitted(model)
            estimator._validate_params()
        except (TypeError, ValueError) as error:
            raise FormatError(file, 0, 0, f"the {model.noun} is damaged: {error}") from error
        estimator._take(model)
        return estimator

    @classmethod
    def _unfitted(cls, model: Any) -> Self:
        """An estimator with the parameters of a model; TypeError or ValueError if they are damaged."""
        return cls(**model.parameters)

    def _take(self, model: Any) -> None:
        """Become fitted with a model from a file, which does not say how training went."""
        self.model_ = model
        self.dev_result_: Any = None

    def _plain_parameters(self) -> dict[str, Any]:
        """The parameters as JSON values, without those that concern only this run."""
        stored = stored_parameters(self)
        stored.setdefault("random_state", None)  # a generator, whose state is not stored
        return stored

    # --- For training ---------------------------------------------------------------------------------

    def _measure(self, corpus: Any, report: Reporter) -> None:
        """Set ``dev_result_`` to what is reached on other sentences; None where there are none."""
        self.dev_result_ = None if corpus is None else self.evaluate(corpus)
        if corpus is not None:
            report(f"on {corpus.name}: {self.dev_result_}")

    def _reporter(self, on_progress: OnStep | None) -> Reporter:
        return Reporter(type(self).__name__, self.verbose, on_progress)

    def _jobs(self, n_jobs: int | None) -> int | None:
        return self.n_jobs if n_jobs is None else n_jobs
