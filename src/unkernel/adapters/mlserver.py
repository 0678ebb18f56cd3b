"""The MLServer runtime, published as ``unkernel.mlserver``."""

from __future__ import annotations

from typing import Any

try:
    import mlserver  # noqa: F401
except ImportError as error:
    raise ImportError(
        "unkernel.mlserver needs MLServer, which is not installed: pip install 'unkernel[mlserver]'"
    ) from error

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.errors import InferenceError
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor, RequestInput, ResponseOutput
from mlserver.utils import get_model_uri

from unkernel._loading import load
from unkernel.serve.answerers import Answerer, Tensor, make_answerer

_FILE_NAMES = ["model.uk"]
_TEXT = "BYTES"


class UnkernelRuntime(MLModel):  # type: ignore[misc]
    """MLServer runtime that serves one ``.uk`` file.

    See Also
    --------
    unkernel.serve.serve : The server of unkernel itself.

    Examples
    --------
    MLServer uses the runtime if ``model-settings.json`` names it:

    >>> settings = {
    ...     "name": "income",
    ...     "implementation": "unkernel.mlserver.UnkernelRuntime",
    ...     "parameters": {"uri": "income.uk"},
    ... }
    """

    _answerer: Answerer

    async def load(self) -> bool:
        """Read the model file, without memory-mapping: the file may be replaced while it is served.

        Returns
        -------
        bool
            Always true.
        """
        path = await get_model_uri(self.settings, wellknown_filenames=_FILE_NAMES)
        self._answerer = make_answerer(load(path, mmap=False))
        self.inputs = [MetadataTensor(**tensor.to_json()) for tensor in self._answerer.inputs]
        self.outputs = [MetadataTensor(**tensor.to_json()) for tensor in self._answerer.outputs]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Return the response to a request of the Open Inference Protocol.

        Parameters
        ----------
        payload : mlserver.types.InferenceRequest
            The request.

        Returns
        -------
        mlserver.types.InferenceResponse
            The response.

        Raises
        ------
        mlserver.errors.InferenceError
            If an input is missing or malformed.
        """
        inputs = {tensor_input.name: _decode(tensor_input) for tensor_input in payload.inputs}
        try:
            values_by_name = self._answerer.infer(inputs)
        except KeyError as error:
            raise InferenceError(f"the input {error} is missing") from error
        except (ValueError, TypeError) as error:
            raise InferenceError(str(error)) from error
        requested_names = {output.name for output in payload.outputs or ()}
        outputs = [
            _encode(tensor, values_by_name[tensor.name])
            for tensor in self._answerer.outputs
            if not requested_names or tensor.name in requested_names
        ]
        return InferenceResponse(
            id=payload.id, model_name=self.name, model_version=self.version, outputs=outputs
        )


def _decode(tensor_input: RequestInput) -> np.ndarray[Any, Any]:
    """Return an input as an array, with texts as objects of type str."""
    if tensor_input.datatype != _TEXT:
        return np.asarray(NumpyCodec.decode_input(tensor_input))
    return np.array(StringCodec.decode_input(tensor_input), dtype=object)


def _encode(tensor: Tensor, values: Any) -> ResponseOutput:
    if tensor.datatype != _TEXT:
        return NumpyCodec.encode_output(tensor.name, np.asarray(values))
    return StringCodec.encode_output(
        tensor.name, [str(value) for value in np.asarray(values).reshape(-1).tolist()]
    )
