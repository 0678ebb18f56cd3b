"""Reading and writing data."""

from unkernel.data import datasets
from unkernel.data.svmlight import SvmlightData, read_svmlight, write_svmlight

__all__ = ["SvmlightData", "datasets", "read_svmlight", "write_svmlight"]
