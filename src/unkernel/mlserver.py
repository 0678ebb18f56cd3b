"""MLServer runtime for ``.uk`` files.

Set ``"implementation": "unkernel.mlserver.UnkernelRuntime"`` in ``model-settings.json``. The parameter
``uri`` must name a ``.uk`` file, or a folder that contains ``model.uk``. Requests and responses have the same
tensors as for ``unkernel serve``: one input per column of a record, or ``rows``, ``tree`` or ``text``.
"""

from unkernel.adapters.mlserver import UnkernelRuntime

__all__ = ["UnkernelRuntime"]
