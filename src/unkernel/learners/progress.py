"""Progress reports of learners."""

from __future__ import annotations

from collections.abc import Callable

from unkernel._core import Progress

OnProgress = Callable[[Progress], None]


class ProgressPrinter:
    """Prints one line per second during training if ``verbose`` is 2 or more."""

    def __init__(self, learner: str, verbose: int, unit: str) -> None:
        self._learner = learner
        self._verbose = verbose
        self._unit = unit  # rows, conjunctions, examples or cuts
        self._calls = 0

    def on_progress(self, progress: Progress) -> None:
        """Print the progress, at most once per second; solvers call this method about 20 times per second."""
        self._calls += 1
        if self._verbose > 1 and self._calls % 20 == 0:
            bounds = (
                f", objective {progress.objective:.6g}, bound {progress.bound:.6g}"
                if progress.objective
                else ""
            )
            print(
                f"[{self._learner}] {progress.stage}: {progress.finished}/{progress.problems} problems done, "
                f"epoch {progress.epoch}, {progress.active} {self._unit} active{bounds}, "
                f"gap about {progress.relative_gap:.2g}"
            )
