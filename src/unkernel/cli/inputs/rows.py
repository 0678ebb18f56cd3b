"""Training and test rows: in memory, in a packed file, or on a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.examples import Examples
from unkernel.cli.inputs.labelled_files import class_labels, drop_unknown_features
from unkernel.cli.inputs.record_examples import RecordExamples
from unkernel.cli.inputs.trees import TreeExamples, check_holds_rows, explain_trees
from unkernel.cli.terminal.console import format_size
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM
from unkernel.data import SvmlightData, read_svmlight
from unkernel.measures.number_format import format_count

if TYPE_CHECKING:
    from unkernel.cutplane.solver_run import TrainingRows
    from unkernel.data.rows.row_files import RowFile

_BYTES_PER_ROW = 90  # bytes for labels, groups, scores, sorted indices, and the buffers of the oracles
_OTHER_WEIGHT_VECTORS = 4  # number of weight vectors that training needs in addition to the cuts
_WITH_TREES = "train on trees with unkernel train tree"


@dataclasses.dataclass(frozen=True, eq=False)
class MemoryRows(Examples):
    """The rows of a file, in memory."""

    file: str
    data: SvmlightData
    seconds: float

    @property
    def count(self) -> int:
        return int(self.data.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.data.X.shape[1])

    @property
    def zero_based(self) -> bool:
        return self.data.zero_based

    @property
    def source(self) -> Any:
        """The rows, for ``fit``."""
        return self.data.X

    @property
    def labels(self) -> NDArray[Any]:
        """Labels as classes, for ``fit``."""
        return class_labels(self.data.y)

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """Query numbers, for ``fit``."""
        return self.data.qid

    def targets(self) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
        """Return the gold labels and the query numbers, for evaluation."""
        return self.data.y, self.data.qid


@dataclasses.dataclass(frozen=True, eq=False)
class PackedRows(Examples):
    """Rows of files, in a packed copy on disk. Large arrays are read for each use and not kept in memory."""

    file: str
    source: str | list[str]  # a path or a pattern, or several paths
    threads: int
    count: int
    n_features: int
    seconds: float
    packed: Path
    zero_based: bool

    def targets(self) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
        """Return the gold labels and the query numbers, for evaluation."""
        opened = self._open()[1]
        return opened.y, opened.qid

    def scores(self, estimator: Any) -> NDArray[np.float64]:
        """Return scores of shape (rows, scores); each score takes one pass over the rows."""
        model, rows = estimator.to_model(), self._open()[0]
        weights = zip(model.weights.T, model.intercept, strict=True)
        return np.column_stack(
            [
                rows.store.scores(rows.to_store(column, np.array([constant])), 1.0, self.threads)
                for column, constant in weights
            ]
        )

    def _open(self) -> tuple[TrainingRows, RowFile]:
        from unkernel.cutplane.solver_run import open_row_files

        return open_row_files(self.source, self.threads, cache=self.packed, zero_based=self.zero_based)


@dataclasses.dataclass(frozen=True, eq=False)
class RemoteRows(Examples):
    """Rows of files that workers of a cluster read. The number of columns is unknown until training ends."""

    file: str
    source: str | list[str]
    estimator: Any
    zero_based: Any
    seconds: float = 0.0
    count: None = None

    @property
    def n_features(self) -> int:
        return int(self.estimator.n_features_in_)


Rows = MemoryRows | PackedRows | TreeExamples | RecordExamples
AnyRows = Rows | RemoteRows


def describe_files(files: Sequence[str]) -> str:
    """Return a description of files for messages."""
    return files[0] if len(files) == 1 else f"{files[0]} and {format_count(len(files) - 1, 'other file')}"


def unwrap_single(files: Sequence[str]) -> str | list[str]:
    """Return files in the form that ``fit`` takes: a path, a pattern, or several paths."""
    return files[0] if len(files) == 1 else list(files)


def check_several(files: Sequence[str], *, large_data: bool) -> None:
    """Raise ``ValueError`` for several files if rows are read into memory."""
    if len(files) > 1 and not large_data:
        raise ValueError(
            f"{describe_files(files)}: this kind of model is trained on one file; join them first"
        )
    if len(files) > 1:
        raise ValueError(f"{describe_files(files)}: several files need --out-of-core or --dask")
    if glob.has_magic(files[0]) and not Path(files[0]).exists():
        raise ValueError(
            f"{files[0]}: there is no file of this name, and patterns need --out-of-core or --dask"
        )


def check_stdin(files: Sequence[str], option: str) -> None:
    """Raise ``ValueError`` for stdin if an option makes the command read files more than once."""
    if STANDARD_STREAM in files:
        raise ValueError(
            f"--{option.replace('_', '-')} reads files, and - is stdin; write the rows to a file first"
        )


def read(
    file: str, display: Display, jobs: int | None, zero_based: Any, n_features: int | None = None
) -> MemoryRows:
    """Read the rows of a file into memory."""
    check_holds_rows(file, _WITH_TREES)
    start = time.perf_counter()
    with display.show_reading(file) as stream, explain_trees(_WITH_TREES):
        data = read_svmlight(stream, n_features=n_features, zero_based=zero_based, n_jobs=jobs)
    return MemoryRows(file, data, time.perf_counter() - start)


def read_test(file: str, display: Display, jobs: int | None, rows: AnyRows) -> MemoryRows:
    """Read test rows. This happens before training: a bad file must not be found after long training."""
    tests = read(file, display, jobs, rows.zero_based)
    X = drop_unknown_features(tests.data.X, rows.n_features, file)
    return dataclasses.replace(tests, data=dataclasses.replace(tests.data, X=X))


def check_files(files: Sequence[str]) -> None:
    """Raise an error if files do not contain rows, judging by their first bytes."""
    for file in files:
        for path in [file] if Path(file).exists() else glob.glob(file):  # noqa: PTH207 (any depth)
            check_holds_rows(path, _WITH_TREES)


def pack(files: Sequence[str], display: Display, estimator: Any, zero_based: Any) -> PackedRows:
    """Pack files into the estimator's cache file, unless this has been done before."""
    from unkernel.cutplane.solver_run import open_row_files

    check_files(files)
    start = time.perf_counter()
    source = unwrap_single(files)
    with display.show_packing(describe_files(files)) as on_reading, _translate_cache_errors():
        rows, opened = open_row_files(
            source,
            estimator.n_jobs,
            cache=estimator.cache,
            zero_based=zero_based,
            on_reading=on_reading,
        )
    return PackedRows(
        file=describe_files(files),
        source=source,
        packed=opened.path,
        threads=estimator.n_jobs,
        count=int(rows.store.rows),
        n_features=rows.n_features,
        zero_based=opened.zero_based,
        seconds=time.perf_counter() - start,
    )


@contextlib.contextmanager
def _translate_cache_errors() -> Iterator[None]:
    """Replace parameters by options in errors about the packed copy."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, _name_cache_option(error.strerror or ""), error.filename) from error
    except ValueError as error:
        raise ValueError(_name_cache_option(str(error))) from error


def _name_cache_option(message: str) -> str:
    return re.sub(r"\bcache=", "--cache ", message).rstrip()


def estimate_bytes(rows: int, n_features: int, max_cuts: int) -> int:
    """Return the estimated memory of out-of-core training in bytes."""
    return _BYTES_PER_ROW * rows + 8 * n_features * (max_cuts + _OTHER_WEIGHT_VECTORS)


def check_memory(rows: Rows, limit: float, max_cuts: int) -> None:
    """Raise an error if out-of-core training needs more than `limit` bytes."""
    n_bytes = estimate_bytes(rows.count, rows.n_features, max_cuts)
    if n_bytes > limit:
        sizes = f"{format_count(rows.count, 'row')}, {format_count(rows.n_features, 'feature')}"
        raise ValueError(
            f"{rows.file}: {sizes} and {max_cuts:,} cuts need about {format_size(n_bytes)}, "
            f"and --memory allows {format_size(int(limit))}; raise it, or lower --max-cuts"
        )
