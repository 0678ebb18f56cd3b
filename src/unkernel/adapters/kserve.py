"""The KServe predictor, published as ``unkernel.kserve``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any
from uuid import uuid4

try:
    import kserve  # noqa: F401
except ImportError as error:
    raise ImportError(
        "unkernel.kserve needs KServe, which is not installed: pip install 'unkernel[kserve]'"
    ) from error

import numpy as np
from kserve import InferOutput, InferRequest, InferResponse, ModelServer, model_server
from kserve import Model as KServeModel
from kserve.errors import InvalidInput, ModelMissingError

from unkernel._loading import load
from unkernel.serve.answerers import Answerer, ItemError, make_answerer

_TEXT = "BYTES"


class UnkernelModel(KServeModel):  # type: ignore[misc]
    """KServe model that serves one ``.uk`` file.

    Parameters
    ----------
    name : str
        Name of the model in URLs.
    path : str or Path
        The file, or a folder with one ``.uk`` file.

    See Also
    --------
    main : Serve a model from the command line.
    unkernel.serve.serve : The server of unkernel itself.

    Examples
    --------
    >>> from unkernel.kserve import UnkernelModel  # doctest: +SKIP
    >>> UnkernelModel("income", "/mnt/models").load()  # doctest: +SKIP
    True
    """

    _answerer: Answerer

    def __init__(self, name: str, path: str | Path) -> None:
        super().__init__(name)
        self._path = Path(path)
        self.ready = False

    def load(self) -> bool:
        """Read the model file, without memory-mapping: the file may be replaced while it is served.

        Returns
        -------
        bool
            Whether the model is ready.

        Raises
        ------
        kserve.errors.ModelMissingError
            If the folder does not contain exactly one ``.uk`` file.
        """
        paths = sorted(self._path.glob("*.uk")) if self._path.is_dir() else [self._path]
        if len(paths) != 1 or not paths[0].is_file():
            raise ModelMissingError(f"{self._path}: expected one .uk file, found {len(paths)}")
        self._answerer = make_answerer(load(paths[0], mmap=False))
        self.ready = True
        return self.ready

    def get_input_types(self) -> list[dict[str, Any]]:
        """Describe the inputs of requests of version 2.

        Returns
        -------
        list of dict
            Name, data type and shape of each input.
        """
        return [tensor.to_json() for tensor in self._answerer.inputs]

    def get_output_types(self) -> list[dict[str, Any]]:
        """Describe the outputs of responses of version 2.

        Returns
        -------
        list of dict
            Name, data type and shape of each output.
        """
        return [tensor.to_json() for tensor in self._answerer.outputs]

    async def predict(
        self,
        payload: dict[str, Any] | InferRequest,
        headers: dict[str, str] | None = None,
        response_headers: dict[str, str] | None = None,
    ) -> dict[str, Any] | InferResponse:
        """Return the response to a request of version 1 or 2 of the protocol.

        Parameters
        ----------
        payload : dict or kserve.InferRequest
            The request.
        headers, response_headers : dict, default=None
            Not used.

        Returns
        -------
        dict or kserve.InferResponse
            The response, of the same version as the request.

        Raises
        ------
        kserve.errors.InvalidInput
            If an input is missing or malformed.
        """
        if isinstance(payload, InferRequest):
            return self._infer(payload)
        instances = payload.get("instances")
        if not isinstance(instances, list):
            raise InvalidInput('expected an object with a list of "instances"')
        try:
            return {"predictions": self._answerer.answer_many(instances)}
        except ItemError as error:
            raise InvalidInput(f"instances[{error.number}]: {error}") from error

    def _infer(self, request: InferRequest) -> InferResponse:
        """Return the response to a request of version 2."""
        inputs = {tensor_input.name: _decode(tensor_input) for tensor_input in request.inputs}
        try:
            values_by_name = self._answerer.infer(inputs)
        except KeyError as error:
            raise InvalidInput(f"the input {error} is missing") from error
        except (ValueError, TypeError) as error:
            raise InvalidInput(str(error)) from error
        outputs = []
        for tensor in self._answerer.outputs:
            values = np.asarray(values_by_name[tensor.name])
            output = InferOutput(tensor.name, list(values.shape), tensor.datatype)
            output.set_data_from_numpy(
                values.astype(object) if tensor.datatype == _TEXT else values, binary_data=False
            )
            outputs.append(output)
        return InferResponse(request.id or str(uuid4()), self.name, outputs)  # KServe requires an id


def _decode(tensor_input: Any) -> np.ndarray[Any, Any]:
    """Return an input as an array, with texts as objects of type str."""
    values = np.asarray(tensor_input.as_numpy())
    if tensor_input.datatype != _TEXT:
        return values
    texts = [text.decode() if isinstance(text, bytes) else text for text in values.reshape(-1).tolist()]
    return np.array(texts, dtype=object).reshape(values.shape)


def main() -> None:
    """Serve the model named on the command line.

    See Also
    --------
    UnkernelModel : The model that is served.

    Examples
    --------
    >>> import unkernel.kserve  # doctest: +SKIP
    >>> unkernel.kserve.main()  # doctest: +SKIP
    """
    parser = argparse.ArgumentParser(parents=[model_server.parser])
    parser.add_argument("--model_dir", default="/mnt/models", help="A folder that holds one .uk file.")
    options = parser.parse_args()
    model = UnkernelModel(options.model_name, options.model_dir)
    model.load()
    ModelServer().start([model])
