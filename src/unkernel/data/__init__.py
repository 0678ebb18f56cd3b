"""Reading and writing data."""

from unkernel.data import datasets
from unkernel.data.svmlight import (
    SvmlightData,
    SvmlightPart,
    read_svmlight,
    read_svmlight_parts,
    write_svmlight,
)

__all__ = [
    "SvmlightData",
    "SvmlightPart",
    "datasets",
    "read_svmlight",
    "read_svmlight_parts",
    "write_svmlight",
]
