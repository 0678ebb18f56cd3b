"""Plans of fitted scikit-learn pipelines.

Estimators are recognised by the names of their classes, so this package does not import scikit-learn.
"""

from unkernel.records.sklearn.pipelines import make_plan_of_steps

__all__ = ["make_plan_of_steps"]
