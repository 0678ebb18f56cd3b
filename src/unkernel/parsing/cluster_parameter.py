"""Estimators that take clusters of words."""

from __future__ import annotations

from typing import Any, Self


class ClusterParameter:
    """Mixin for estimators with the parameter `clusters`, which models store themselves.

    A file does not depend on where its clusters came from, and a loaded estimator has them again.
    """

    def _export_parameters(self) -> dict[str, Any]:
        plain: dict[str, Any] = super()._export_parameters()  # type: ignore[misc]
        return {name: value for name, value in plain.items() if name != "clusters"}

    @classmethod
    def _new_unfitted(cls, model: Any) -> Self:
        return cls(**(model.parameters | {"clusters": model.clusters}))
