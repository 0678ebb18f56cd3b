"""Train the classifiers of a dependency parser: online, or on rows of correct decisions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unkernel._core import ArcEagerSpec, OnlineTrainer
from unkernel.data.text.conll import Treebank
from unkernel.engines import CompiledClassifier, compile
from unkernel.models import ConjunctionModel
from unkernel.parsing.arc_eager.result import score_trees
from unkernel.parsing.averaged_perceptron import Weights, average_parts
from unkernel.parsing.training_progress import Reporter

Classifiers = list[CompiledClassifier | None]
_GOLD_EPOCHS = 2  # epochs that follow only correct moves; later epochs explore wrong moves too
_GREEDY_EPOCH_SHARE = 0.5  # share of the epochs that are greedy if training uses a beam
_SAMPLE_ROWS = 4096


@dataclass
class OnlineLearner:
    """Runs the averaged perceptron several times, and averages the weights of all runs.

    Attributes
    ----------
    epochs_seen : list of dict
        Statistics of each epoch of each run.
    best_epochs : list of int
        The epoch of each run whose weights were kept.
    """

    spec: ArcEagerSpec
    bank: Treebank
    dev: Treebank | None
    degree: int
    epochs: int
    runs: int
    exploration: float
    min_updates: int
    beam: int
    report: Reporter
    epochs_seen: list[dict[str, float]] = field(default_factory=list)
    best_epochs: list[int] = field(default_factory=list)

    def learn(self, seeds: Sequence[int]) -> tuple[Classifiers, Classifiers]:
        """Return the classifiers of moves and of labels, averaged over one run per seed."""
        runs = [self._run(number, int(seed)) for number, seed in enumerate(seeds, 1)]
        spec = self.spec
        moves, labels = zip(*runs, strict=True)
        options = {"degree": self.degree, "learner": "ArcEagerParser"}
        return (
            average_parts(moves, spec.move_classes, columns=spec.move_columns, **options),
            average_parts(labels, spec.arc_classes, columns=spec.arc_columns, **options),
        )

    @property
    def _greedy_epochs(self) -> int:
        """Number of epochs before the first epoch with a beam."""
        return int(self.epochs * _GREEDY_EPOCH_SHARE)

    def _run(self, run: int, seed: int) -> tuple[list[Weights], list[Weights]]:
        """Return the weights of moves and of labels by part, of the best dev epoch or else the last epoch."""
        trainer = OnlineTrainer(
            self.spec,
            self.bank._text,
            degree=self.degree,
            label_degree=self.degree,
            min_updates=self.min_updates,
            gold_epochs=_GOLD_EPOCHS,
            exploration=self.exploration,
            beam=self.beam,
            greedy_epochs=self._greedy_epochs,
            seed=seed,
        )
        best, best_epoch = -1.0, 0
        for number in range(1, self.epochs + 1):
            statistics = self._run_epoch(trainer, run, number)
            last = number == self.epochs
            if self.beam > 1 and number <= self._greedy_epochs:
                continue
            if (self.dev is None and last) or statistics.get("las", -1.0) > best:
                best, best_epoch = statistics.get("las", -1.0), number
                moves = [trainer.move_weights(part) for part in range(len(self.spec.move_classes))]
                labels = [trainer.arc_weights(part) for part in range(len(self.spec.arc_classes))]
        self.best_epochs.append(best_epoch)
        return moves, labels

    def _run_epoch(self, trainer: OnlineTrainer, run: int, number: int) -> dict[str, float]:
        """Run an epoch, evaluate it on `dev`, and report and return its statistics."""
        start = time.process_time()
        moves, wrong_moves, arcs, wrong_labels, sentences, wrong_sentences = trainer.run_epoch()
        epoch_name = f"run {run}, epoch {number}" if self.runs > 1 else f"epoch {number}"
        statistics: dict[str, float] = {"run": run, "epoch": number}
        if sentences:
            statistics |= {"wrong_sentences": wrong_sentences / sentences}
            text = f"{epoch_name}: {statistics['wrong_sentences']:.2%} of sentences wrong"
        else:
            statistics |= {
                "wrong_moves": wrong_moves / max(moves, 1),
                "wrong_labels": wrong_labels / max(arcs, 1),
            }
            shares = (
                f"{statistics['wrong_moves']:.2%} of moves wrong, {statistics['wrong_labels']:.2%} of labels"
            )
            text = f"{epoch_name}: {shares}"
        if self.dev is not None:
            parsed = self.dev._with_trees(*trainer.parse(self.dev._text), list(self.spec.labels))
            result = score_trees(self.dev, parsed, 0.0)
            statistics |= {"uas": result.uas, "las": result.las}
            text += f"; dev UAS {result.uas:.2f}, LAS {result.las:.2f}"
        share = ((run - 1) * self.epochs + number) / (self.runs * self.epochs)
        self.report(f"{text} ({time.process_time() - start:.1f} s)", share=share)
        self.epochs_seen.append(statistics)
        return statistics


@dataclass(frozen=True)
class RowLearner:
    """Trains one estimator per part on the rows of features of all correct decisions."""

    spec: ArcEagerSpec
    new_estimator: Callable[[], Any]
    engine: str
    threads: int
    report: Reporter

    def learn(self, bank: Treebank) -> tuple[Classifiers, Classifiers]:
        """Train the classifiers of moves and of labels."""
        moves, arcs = self.spec.rows(bank._text)
        return (
            self._train_parts(moves, self.spec.move_classes, self.spec.move_columns),
            self._train_parts(arcs, self.spec.arc_classes, self.spec.arc_columns),
        )

    def _train_parts(self, rows: Mapping[str, Any], classes: list[list[int]], columns: int) -> Classifiers:
        """Train a classifier for each part on its rows; `classes` lists the classes of each part."""
        offsets, features = np.asarray(rows["offsets"]), np.asarray(rows["columns"])
        shape = (len(offsets) - 1, max(columns, 1))
        X = sparse.csr_matrix((np.ones(len(features)), features, offsets), shape=shape)
        parts, class_indices = np.asarray(rows["parts"]), np.asarray(rows["classes"])
        classifiers: Classifiers = []
        for part, part_classes in enumerate(classes):
            chosen = np.flatnonzero(parts == part)
            labels = np.array(part_classes)[class_indices[chosen]]
            classifiers.append(self._train_part(X[chosen], labels, part_classes))
            part_name = f"part {part + 1} of {len(classes)}"
            self.report(f"{part_name}: {len(chosen):,} rows, {len(part_classes)} classes", level=2)
        return classifiers

    def _train_part(self, X: Any, y: NDArray[Any], classes: list[int]) -> CompiledClassifier | None:
        if len(classes) < 2:
            return None
        # Add an empty row for each class that no row has: the model must have all classes of the treebank.
        missing = np.setdiff1d(classes, y)
        if len(missing):
            X = sparse.vstack([X, sparse.csr_matrix((len(missing), X.shape[1]))], format="csr")
            y = np.concatenate([y, missing])
        model = self.new_estimator().fit_reporting(X, y, None, self.report.solver_callback).to_model()
        if self.engine == "auto" and isinstance(model, ConjunctionModel):
            return CompiledClassifier(model).validate()  # weights of conjunctions need no compilation
        compiled = compile(
            model,
            engine=self.engine,
            sample=X[:: max(1, X.shape[0] // _SAMPLE_ROWS)],
            measure=False,  # measured times would make the files of two trainings differ
            n_jobs=self.threads,
        )
        assert isinstance(compiled, CompiledClassifier)
        return compiled
