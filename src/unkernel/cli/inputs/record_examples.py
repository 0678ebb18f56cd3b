"""Training and test records, encoded as rows."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

from numpy.typing import NDArray

from unkernel.cli.inputs.examples import Examples
from unkernel.cli.inputs.labelled_files import class_labels
from unkernel.records.column_summary import MixedColumnWarning
from unkernel.records.files import TrainingTable


@dataclasses.dataclass(frozen=True, eq=False)
class RecordExamples(Examples):
    """The records of a file, and the rows that an encoder made from them."""

    file: str
    table: TrainingTable
    encoder: Any
    X: Any
    seconds: float = 0.0
    zero_based: bool = True

    @staticmethod
    def fit(file: str, table: TrainingTable, encoder: Any, seconds: float = 0.0) -> RecordExamples:
        """Fit the encoder to records, and encode them."""
        try:
            with warnings.catch_warnings():
                # Ignore the encoder's warning: the reader of the file has already given one with the line.
                warnings.simplefilter("ignore", MixedColumnWarning)
                rows = encoder.fit_transform(table.columns, class_labels(table.labels))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file}: {error}") from error
        return RecordExamples(file, table, encoder, rows, seconds)

    def transform(self, file: str, table: TrainingTable, seconds: float = 0.0) -> RecordExamples:
        """Encode other records with the same encoder."""
        try:
            rows = self.encoder.transform(table.columns)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file}: {error}") from error
        return RecordExamples(file, table, self.encoder, rows, seconds)

    @property
    def count(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def source(self) -> Any:
        """The rows, for ``fit``."""
        return self.X

    @property
    def labels(self) -> NDArray[Any]:
        """Labels as classes, for ``fit``."""
        return class_labels(self.table.labels)
