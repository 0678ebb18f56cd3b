"""Cutting planes: linear SVMs and ranking SVMs in time linear in the rows, also out of core."""

from unkernel.cutplane.rank import RankSVM, ordered_pairs
from unkernel.cutplane.svc import CuttingPlaneSVC

__all__ = ["CuttingPlaneSVC", "RankSVM", "ordered_pairs"]
