"""MLServer runtime for ``.uk`` files.

Set ``"implementation": "unkernel.mlserver.UnkernelRuntime"`` in ``model-settings.json``, and let the
parameter ``uri`` name a ``.uk`` file or a folder that holds ``model.uk``. Requests and responses have the
tensors of ``unkernel serve``: one input per column of a record, or ``rows``, ``tree`` or ``text``.
"""

from unkernel.adapters.mlserver import UnkernelRuntime

__all__ = ["UnkernelRuntime"]
