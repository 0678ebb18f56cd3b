"""Kernel machines at linear speed.

Train support vector machines with polynomial kernels, for ranking, and with tree kernels in about the time of
a linear model. Compile any of these models, or a model of another program, into an exact classifier that
predicts in microseconds.

>>> from unkernel import PolySVC, PolyLogisticRegression, CuttingPlaneSVC, RankSVM, TreeSVC, TreeKernel
>>> from unkernel import compile, load, read_model, read_svmlight, read_trees
"""

from unkernel import _startup  # noqa: F401 (before all other imports)

# isort: split

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names
from unkernel._loading import load
from unkernel._version import __version__
from unkernel.errors import FormatError, LimitError

if TYPE_CHECKING:
    from unkernel.cutplane import CuttingPlaneSVC, RankSVM
    from unkernel.data import Forest, datasets, read_conllu, read_svmlight, read_trees, write_svmlight
    from unkernel.engines import CompiledClassifier, TreeClassifier, TreeKernel, compile
    from unkernel.models import ConjunctionModel, KernelModel, LinearModel, TreeModel, read_model, write_model
    from unkernel.poly import PolyLogisticRegression, PolyRegressor, PolySVC
    from unkernel.records import RecordEncoder
    from unkernel.selection import TableEstimator
    from unkernel.tree import TreeSVC
else:
    _ROOMS = (
        *("cutplane", "data", "engines", "learners", "models"),
        *("parsing", "poly", "records", "report", "selection", "tree"),
    )
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.cutplane.rank": "RankSVM",
            "unkernel.cutplane.svc": "CuttingPlaneSVC",
            "unkernel.data.datasets": "",
            "unkernel.data.rows.svmlight": "read_svmlight",
            "unkernel.data.rows.svmlight_writer": "write_svmlight",
            "unkernel.data.text.conll": "read_conllu",
            "unkernel.data.trees.forest": "Forest",
            "unkernel.data.trees.tree_files": "read_trees",
            "unkernel.engines.compilation": "compile",
            "unkernel.engines.rows.classifier": "CompiledClassifier",
            "unkernel.engines.trees.classifier": "TreeClassifier",
            "unkernel.engines.trees.kernel_matrix": "TreeKernel",
            "unkernel.models.conjunction": "ConjunctionModel",
            "unkernel.models.formats": "read_model write_model",
            "unkernel.models.kernel": "KernelModel",
            "unkernel.models.linear": "LinearModel",
            "unkernel.models.tree": "TreeModel",
            "unkernel.poly.logistic": "PolyLogisticRegression",
            "unkernel.poly.regressor": "PolyRegressor",
            "unkernel.poly.svc": "PolySVC",
            "unkernel.records.encoder": "RecordEncoder",
            "unkernel.selection.table_estimator": "TableEstimator",
            "unkernel.tree.svc": "TreeSVC",
            **{f"unkernel.{room}": "" for room in _ROOMS},
        },
    )

__all__ = [
    "CompiledClassifier",
    "ConjunctionModel",
    "CuttingPlaneSVC",
    "Forest",
    "FormatError",
    "KernelModel",
    "LimitError",
    "LinearModel",
    "PolyLogisticRegression",
    "PolyRegressor",
    "PolySVC",
    "RankSVM",
    "RecordEncoder",
    "TableEstimator",
    "TreeClassifier",
    "TreeKernel",
    "TreeModel",
    "TreeSVC",
    "__version__",
    "compile",
    "datasets",
    "load",
    "read_conllu",
    "read_model",
    "read_svmlight",
    "read_trees",
    "write_model",
    "write_svmlight",
]
