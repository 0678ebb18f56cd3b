"""Progress reports of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unkernel._core import Progress


@dataclass(frozen=True)
class Step:
    """Progress of training: one step, running or finished.

    Attributes
    ----------
    words : str
        Description of a finished step; empty while the step is running.
    share : float or None, default=None
        Share of all steps that are finished; None if the number of steps is not known in advance.
    progress : Progress or None, default=None
        State of the solver while the step is running; None for a finished step.

    See Also
    --------
    ArcEagerParser.fit_reporting : Train with a callback.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import Tokenizer
    >>> steps = []
    >>> bank = Treebank.from_words([["Dogs", "bark"]])
    >>> tokenizer = Tokenizer(epochs=1).fit_reporting(bank, on_progress=steps.append)
    >>> steps[0].words.split(",")[0]
    '1 sentences'
    """

    words: str
    share: float | None = None
    progress: Progress | None = None


OnStep = Callable[[Step], None]


class Reporter:
    """Passes messages to a callback or, without a callback, prints messages up to level `verbose`."""

    def __init__(self, name: str, verbose: int, on_progress: OnStep | None) -> None:
        self._name = name
        self._verbose = int(verbose)
        self._on_progress = on_progress

    def __call__(self, words: str, *, share: float | None = None, level: int = 1) -> None:
        if self._on_progress is not None:
            self._on_progress(Step(words, share))
        elif self._verbose >= level:
            print(f"[{self._name}] {words}", flush=True)

    @property
    def solver_callback(self) -> Callable[[Progress], None] | None:
        """A callback that passes the progress of solvers on; None if there is no callback for steps."""
        on_progress = self._on_progress
        return None if on_progress is None else lambda progress: on_progress(Step("", progress=progress))
