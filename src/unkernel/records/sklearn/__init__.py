"""Plans of fitted scikit-learn pipelines.

Estimators are known by the names of their classes: who has one has imported it, so nothing of scikit-learn is
imported here.
"""

from unkernel.records.sklearn.pipelines import plan_of_steps

__all__ = ["plan_of_steps"]
