"""Plans of fitted scikit-learn pipelines.

Estimators are recognised by the names of their classes. The caller has imported them already, so nothing of
scikit-learn is imported here.
"""

from unkernel.records.sklearn.pipelines import plan_of_steps

__all__ = ["plan_of_steps"]
