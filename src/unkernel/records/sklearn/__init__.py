"""Plans of fitted scikit-learn pipelines.

Estimators are recognised by the names of their classes; this package therefore does not import scikit-learn.
"""

from unkernel.records.sklearn.boosting_machines import is_boosting_machine
from unkernel.records.sklearn.linear_maps import split_linear_maps
from unkernel.records.sklearn.pipelines import make_plan_of_machine, make_plan_of_steps

__all__ = [
    "is_boosting_machine",
    "make_plan_of_machine",
    "make_plan_of_steps",
    "split_linear_maps",
]
