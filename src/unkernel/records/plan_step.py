"""One step of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class PlanStep:
    """One step of a plan.

    Attributes
    ----------
    kind : str
        The operation, such as ``"one_hot"`` or ``"bins"``.
    table : dict
        The arrays and options of the operation.
    names : sequence of str
        A label for each feature of the output.

    See Also
    --------
    Plan : The steps that turn records into rows.

    Examples
    --------
    >>> from unkernel import RecordEncoder
    >>> encoder = RecordEncoder(min_count=1).fit([{"job": "clerk"}, {"job": "pilot"}])
    >>> [step.kind for step in encoder.plan_.steps]
    ['one_hot', 'concatenate']
    """

    kind: str
    table: dict[str, Any]
    names: Sequence[str]
