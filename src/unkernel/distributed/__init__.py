"""Train on a Dask cluster. The rows stay on the workers; only weights, gradients and few rows are sent."""

try:
    import dask.distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        'unkernel.distributed needs Dask, which is not installed: pip install "unkernel[dask]"'
    ) from error

from unkernel.distributed.cutplane.rank import DaskRankSVM
from unkernel.distributed.cutplane.svc import DaskCuttingPlaneSVC
from unkernel.distributed.poly.logistic import DaskPolyLogisticRegression
from unkernel.distributed.poly.regressor import DaskPolyRegressor
from unkernel.distributed.poly.svc import DaskPolySVC
from unkernel.distributed.tree.svc import DaskTreeSVC

__all__ = [
    "DaskCuttingPlaneSVC",
    "DaskPolyLogisticRegression",
    "DaskPolyRegressor",
    "DaskPolySVC",
    "DaskRankSVM",
    "DaskTreeSVC",
]
