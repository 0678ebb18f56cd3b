"""The MLflow flavour, published as ``unkernel.mlflow``."""

from __future__ import annotations

import os
import platform
from importlib import import_module
from pathlib import Path
from typing import Any

try:
    import mlflow  # noqa: F401
except ImportError as error:
    raise ImportError(
        "unkernel.mlflow needs MLflow, which is not installed: pip install 'unkernel[mlflow]'"
    ) from error

import numpy as np
from mlflow import artifacts, pyfunc
from mlflow.models import Model, ModelSignature
from mlflow.models.model import MLMODEL_FILE_NAME, ModelInfo
from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema, TensorSpec
from mlflow.types.schema import AnyType

from unkernel._loading import load
from unkernel._version import __version__
from unkernel.serve.answerers import Answerer, Tensor, make_answerer

FLAVOR_NAME = "unkernel"
_PUBLIC_MODULE = "unkernel.mlflow"  # the module that saved models refer to
_FILE = "model.uk"
_REQUIREMENTS, _PYTHON = "requirements.txt", "python_env.yaml"
_METHODS = ("predict", "predict_proba", "decision_function")


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    mlflow_model: Model | None = None,
    signature: ModelSignature | None = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Save a model as an MLflow model folder.

    Parameters
    ----------
    model : classifier, estimator or parser
        A model with a method ``save``: a result of ``unkernel.compile`` or ``unkernel.load``, or a fitted
        estimator.
    path : str or path-like
        The folder to create. It must not exist, or be empty.
    mlflow_model : mlflow.models.Model, default=None
        The MLflow model to add the flavour to; None creates a new one.
    signature : ModelSignature, default=None
        The signature; None infers it from the columns of the model or the width of its rows.
    metadata : dict, default=None
        Metadata that MLflow stores with the model.

    Raises
    ------
    FileExistsError
        If the folder is not empty.

    See Also
    --------
    log_model : Log a model to a run.
    load_model : Load a model.

    Examples
    --------
    >>> import unkernel.mlflow  # doctest: +SKIP
    >>> unkernel.mlflow.save_model(fast, "income-model")  # doctest: +SKIP
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder}: is not empty; save the model to a new folder")
    model.save(folder / _FILE)
    saved_model = Model() if mlflow_model is None else mlflow_model
    saved_model.signature = signature_of(load(folder / _FILE)) if signature is None else signature
    if metadata is not None:
        saved_model.metadata = metadata
    pyfunc.add_to_model(saved_model, loader_module=_PUBLIC_MODULE, data=_FILE, python_env=_PYTHON)
    saved_model.add_flavor(FLAVOR_NAME, unkernel_version=__version__, data=_FILE)
    saved_model.save(str(folder / MLMODEL_FILE_NAME))
    (folder / _REQUIREMENTS).write_text(f"mlflow\nunkernel=={__version__}\n", encoding="utf-8")
    version = platform.python_version()
    (folder / _PYTHON).write_text(
        f'python: "{version}"\nbuild_dependencies:\n- pip\ndependencies:\n- -r {_REQUIREMENTS}\n',
        encoding="utf-8",
    )


def log_model(model: Any, name: str | None = None, **options: Any) -> ModelInfo:
    """Log a model to MLflow.

    Parameters
    ----------
    model : classifier, estimator or parser
        The model, as for :func:`save_model`.
    name : str, default=None
        Name of the logged model.
    **options
        Options for :func:`save_model` and ``mlflow.models.Model.log``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Information about the logged model.

    See Also
    --------
    save_model : Save a model to a folder.
    load_model : Load a model.

    Examples
    --------
    >>> import unkernel.mlflow  # doctest: +SKIP
    >>> unkernel.mlflow.log_model(fast, name="income")  # doctest: +SKIP
    """
    return Model.log(
        artifact_path=None, name=name, flavor=import_module(_PUBLIC_MODULE), model=model, **options
    )


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """Load a model from MLflow, in the same way as :func:`unkernel.load` loads a file.

    Parameters
    ----------
    model_uri : str
        Address of the model, such as ``"models:/income/1"``, ``"runs:/…/income"`` or a folder.
    dst_path : str, default=None
        Folder for downloaded files; None means a temporary folder.

    Returns
    -------
    classifier or parser
        The model.

    See Also
    --------
    log_model : Log a model to a run.

    Examples
    --------
    >>> import unkernel.mlflow  # doctest: +SKIP
    >>> unkernel.mlflow.load_model("models:/income/1").predict_one(record)  # doctest: +SKIP
    """
    folder = artifacts.download_artifacts(artifact_uri=model_uri, dst_path=dst_path)
    return load(Path(folder) / _FILE)


def signature_of(model: Any) -> ModelSignature:
    """Return an MLflow signature that describes the inputs of a model.

    Parameters
    ----------
    model : classifier or parser
        The model.

    Returns
    -------
    mlflow.models.ModelSignature
        The signature.

    See Also
    --------
    save_model : Save a model with its signature.

    Examples
    --------
    >>> import unkernel.mlflow  # doctest: +SKIP
    >>> unkernel.mlflow.signature_of(fast).inputs  # doctest: +SKIP
    """
    answerer = make_answerer(model)
    params = ParamSchema([ParamSpec("method", "string", _METHODS[0])]) if _is_classifier(answerer) else None
    return ModelSignature(inputs=_make_schema(answerer), params=params)


def _make_schema(answerer: Answerer) -> Schema:
    """Describe the inputs of a model: the columns of records, rows of numbers, or one column of texts."""
    if answerer.input == "record":
        required = set(answerer.item_schema.get("required", ()))
        return Schema([_make_column(tensor, tensor.name in required) for tensor in answerer.inputs])
    (tensor,) = answerer.inputs
    if answerer.input == "row":
        return Schema([TensorSpec(np.dtype(np.float64), tensor.shape)])
    return Schema([ColSpec("string", tensor.name)])


def _make_column(tensor: Tensor, is_required: bool) -> ColSpec:
    """Return the column for a tensor. Numbers may have any type, as in records."""
    kind = "string" if tensor.datatype == "BYTES" else AnyType()
    return ColSpec(kind, tensor.name, required=is_required)


def _is_classifier(answerer: Answerer) -> bool:
    return answerer.input in ("record", "row", "tree")


# --- pyfunc -------------------------------------------------------------------------------------------


def _load_pyfunc(path: str) -> _PythonFunction:
    """Load a model for ``mlflow.pyfunc.load_model``."""
    return _PythonFunction(load(path))


class _PythonFunction:
    """A model with the interface of MLflow's Python functions."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._answerer = make_answerer(model)

    def get_raw_model(self) -> Any:
        """Return the model itself."""
        return self._model

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Return the labels, probabilities or scores of a classifier, or the output of a parser."""
        if not _is_classifier(self._answerer):
            answers = self._answerer.answer_many(_list_texts(model_input))
            return [answer.get("output", answer.get("prediction")) for answer in answers]
        method = (params or {}).get("method", _METHODS[0])
        if method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
        inputs = _list_texts(model_input) if self._answerer.input == "tree" else model_input
        return getattr(self._model, method)(inputs)


def _list_texts(model_input: Any) -> list[str]:
    """Return the values of an array, or of a table's only column, as a list."""
    if hasattr(model_input, "iloc"):
        return list(model_input.iloc[:, 0])
    return np.asarray(model_input, dtype=object).reshape(-1).tolist()
