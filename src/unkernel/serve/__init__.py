"""An HTTP server for models: :func:`serve`."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.serve.server import serve
    from unkernel.serve.settings import Limits, Settings
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.serve.server": "serve",
            "unkernel.serve.settings": "Limits Settings",
        },
    )

__all__ = ["Limits", "Settings", "serve"]
