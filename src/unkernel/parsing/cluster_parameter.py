"""Estimators that take clusters of words."""

from __future__ import annotations

from typing import Any, Self


class ClusterParameter:
    """Of an estimator with the parameter `clusters`: files have them as a part of what was learned.

    So a file does not depend on where they came from, and an estimator that is loaded has them again.
    """

    def _export_parameters(self) -> dict[str, Any]:
        plain: dict[str, Any] = super()._export_parameters()  # type: ignore[misc]
        return {name: value for name, value in plain.items() if name != "clusters"}

    @classmethod
    def _new_unfitted(cls, model: Any) -> Self:
        return cls(**(model.parameters | {"clusters": model.clusters}))
