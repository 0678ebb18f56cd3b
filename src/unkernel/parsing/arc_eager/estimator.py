"""Dependency parsing, one decision after another: the arc-eager system."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unkernel._core import ArcEagerSpec, OnlineTrainer, mean_weights
from unkernel.data import Treebank, read_conllu
from unkernel.data.files import Source
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier, compile
from unkernel.engines.compile_options import ENGINES
from unkernel.models import ConjunctionModel, container
from unkernel.parsing._base import Arrays, BaseParser, Teller, Watch, check_empty, read_templates
from unkernel.parsing.arc_eager.result import TreeResult, result_of
from unkernel.parsing.decision_trace import decided_trees
from unkernel.parsing.explaining import Decided
from unkernel.parsing.feature_names import ArcFeatureNames
from unkernel.parsing.parts import packed_strings, restore_parts, store_parts, unpacked_strings

Weights = dict[str, NDArray[Any]]
_TEMPLATES = {"default": "arc_eager.txt", "rich": "arc_eager_rich.txt", "chang": "chang.txt"}
_STRINGS = "strings."
_MOVES = ("SHIFT", "REDUCE", "LEFT-ARC", "RIGHT-ARC")
_ARRAYS = ("move_keys", "arc_keys", "move_begins", "arc_begins")
_LISTS = (
    "labels",
    "lifted_labels",
    "root_label",
    "move_parts",
    "arc_parts",
    "move_classes",
    "arc_classes",
)


class ArcEagerParser(BaseParser):
    """Finds the dependency tree of a sentence in one pass from left to right.

    Words go over a stack, and a classifier on conjunctions of features decides at each step whether to shift
    the next word, to pop one, or to make an arc; a second one labels the arcs (Nivre 2003; Chang et al. 2010,
    section 5). Every input gets one tree with one root. Arcs that cross are learnt as lifted ones and put
    back after parsing (Nivre and Nilsson 2005).

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        Features in a conjunction, at most.
    learner : {"online", "svm", "logistic"}, default="online"
        ``"online"`` is an averaged perceptron that follows its own mistakes while it learns (a dynamic
        oracle); the others learn from the right moves only: :class:`~unkernel.PolySVC`, one class against the
        rest, and :class:`~unkernel.PolyLogisticRegression` with an l1 penalty.
    templates : {"default", "rich", "chang"} or path, default="default"
        Which features there are: ours, more of ours (more accurate and slower by a third), those of Table 8
        of Chang et al., or a file of your own (docs/parsing.md).
    epochs : int, default=10
        Passes over the treebank, of the online learner. With a `dev` treebank the best of them is kept.
    runs : int, default=2
        How often the online learner begins anew, and sees the sentences in another order; what counts is the
        mean of their weights. One run takes half the time; on English, two were .4 points better on the
        dev part and no better on the test part.
    exploration : float, default=0.9
        How often the online learner follows its own wrong move.
    minimum : int, default=2
        Features that occur less often in training are left out.
    minimum_updates : int, default=4
        Conjunctions that the online learner corrected less often are left out.
    split : {"labels", "both", "none"}, default="labels"
        Which classifiers are split into one for each part of speech: that of the dependent for labels, that
        of the next word (`xpos`) for moves, as in Chang et al.
    C : float, default=0.1
        Weight of the losses, of ``"svm"`` and ``"logistic"``.
    tol : float, default=0.01
        Their relative duality gap at the end of training.
    engine : str, default="auto"
        As for :func:`unkernel.compile`, but by rules instead of measuring. Those but ``"auto"`` and
        ``"expanded"`` need support vectors: ``learner="svm"`` and a degree above 1.
    n_jobs : int or None, default=None
        Threads; None is 1 and -1 is all. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Order in which training visits sentences.
    verbose : int, default=0
        1 tells about every epoch; 2 also about the parts.

    Attributes
    ----------
    labels_ : list of str
        The relations that it can give.
    n_features_ : int
        Features of moves and of labels, together.
    move_classifiers_, label_classifiers_ : list of CompiledClassifier or None
        One for each part; None where a part has one class only.
    epochs_ : list of dict
        What each epoch of each run of the online learner saw: shares of wrong moves and labels and, with a
        `dev` treebank, ``uas`` and ``las``.
    best_epochs_ : list of int
        The epoch of each run that was kept.
    dev_result_ : TreeResult or None

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> bank = Treebank.from_words(
    ...     [["They", "saw", "it"], ["Dogs", "bark"]],
    ...     [["PRON", "VERB", "PRON"], ["NOUN", "VERB"]],
    ...     heads=[[2, 0, 2], [2, 0]],
    ...     deprels=[["nsubj", "root", "obj"], ["nsubj", "root"]],
    ... )
    >>> parser = ArcEagerParser(minimum=1, minimum_updates=1).fit(bank)
    >>> parser.parse([["We", "saw", "it"]], tags=[["PRON", "VERB", "PRON"]])[0].heads
    [2, 0, 2]
    """

    kind = "arc_eager_parser"
    _fitted_by = "label_classifiers_"
    _pickled = ("dev_result_", "epochs_", "best_epochs_")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, 3, closed="both")],
        "learner": [StrOptions({"online", "svm", "logistic"})],
        "templates": [str, os.PathLike],
        "epochs": [Interval(Integral, 1, 10_000, closed="both")],
        "runs": [Interval(Integral, 1, 1_000, closed="both")],
        "exploration": [Interval(Real, 0, 1, closed="both")],
        "minimum": [Interval(Integral, 1, None, closed="left")],
        "minimum_updates": [Interval(Integral, 1, 2**31, closed="left")],
        "split": [StrOptions({"labels", "both", "none"})],
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "engine": [StrOptions(set(ENGINES) - {"pruned", "int16"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        degree: int = 2,
        *,
        learner: str = "online",
        templates: str | os.PathLike[str] = "default",
        epochs: int = 10,
        runs: int = 2,
        exploration: float = 0.9,
        minimum: int = 2,
        minimum_updates: int = 4,
        split: str = "labels",
        C: float = 0.1,
        tol: float = 0.01,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.degree = degree
        self.learner = learner
        self.templates = templates
        self.epochs = epochs
        self.runs = runs
        self.exploration = exploration
        self.minimum = minimum
        self.minimum_updates = minimum_updates
        self.split = split
        self.C = C
        self.tol = tol
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- Training -------------------------------------------------------------------------------------

    def fit(self, source: Source | Treebank, *, dev: Source | Treebank | None = None) -> Self:
        """Learn from a treebank.

        Parameters
        ----------
        source : path, open file or Treebank
            CoNLL-U; of a treebank in CoNLL-X, give what :func:`~unkernel.data.read_conllx` read.
        dev : path, open file or Treebank, default=None
            Another treebank, to choose the best epoch with and to measure: see ``dev_result_``.
        """
        fitted: Self = self.fit_watched(source, dev, None)
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_watched(
        self, source: Source | Treebank, dev: Source | Treebank | None, watch: Watch | None
    ) -> Self:
        """``fit``, with a function that is shown every step."""
        tell = self._teller(watch)
        self._refuse_parameters()
        bank = _with_gold_trees(source)
        dev_bank = None if dev is None else _with_gold_trees(dev)
        template_text, name = read_templates(self.templates, _TEMPLATES)
        frame = self._new_frame(template_text, name)
        frame.learn(bank._text)
        for own in _CLASSIFIERS:  # whoever stops the training has no parser, instead of parts of two
            self.__dict__.pop(own, None)
        self._template_text, self._frame, self._split = template_text, frame, self.split
        tell(
            f"{len(bank):,} sentences, {bank.n_words:,} words, {len(frame.labels)} relations, "
            f"{self.n_features_:,} features, {frame.lifted:,} words lifted"
        )
        self.epochs_: list[dict[str, float]] = []
        self.best_epochs_: list[int] = []
        if self.learner == "online":
            self._learn_online(bank, dev_bank, tell)
        else:
            self._learn_from_rows(bank, tell)
        self.dev_result_ = None if dev_bank is None else self.evaluate(dev_bank)
        if self.dev_result_ is not None:
            tell(str(self.dev_result_))
        return self

    def _new_frame(self, template_text: str, template_file: str) -> ArcEagerSpec:
        return ArcEagerSpec(
            template_file,
            template_text,
            split_moves=self.split == "both",
            split_labels=self.split != "none",
            minimum=int(self.minimum),
        )

    def _learn_online(self, bank: Treebank, dev: Treebank | None, tell: Teller) -> None:
        seeds = check_random_state(self.random_state).randint(2**31, size=int(self.runs))
        runs = [self._run(number, int(seed), bank, dev, tell) for number, seed in enumerate(seeds, 1)]
        frame = self._frame
        self.move_classifiers_ = self._from_runs(
            [moves for moves, _ in runs], frame.move_classes, frame.move_columns
        )
        self.label_classifiers_ = self._from_runs(
            [labels for _, labels in runs], frame.arc_classes, frame.arc_columns
        )

    def _run(
        self, run: int, seed: int, bank: Treebank, dev: Treebank | None, tell: Teller
    ) -> tuple[list[Weights], list[Weights]]:
        """The weights of moves and of labels, part by part, after the best epoch or the last."""
        trainer = OnlineTrainer(
            self._frame,
            bank._text,
            degree=int(self.degree),
            label_degree=int(self.degree),
            minimum_updates=int(self.minimum_updates),
            gold_epochs=_GOLD_EPOCHS,
            exploration=float(self.exploration),
            seed=seed,
        )
        best, best_epoch = -1.0, 0
        for number in range(1, self.epochs + 1):
            seen = self._run_epoch(trainer, dev, run, number, tell)
            last = number == self.epochs
            if (dev is None and last) or seen.get("las", -1.0) > best:
                best, best_epoch = seen.get("las", -1.0), number
                moves = [trainer.move_weights(part) for part in range(len(self._frame.move_classes))]
                labels = [trainer.arc_weights(part) for part in range(len(self._frame.arc_classes))]
        self.best_epochs_.append(best_epoch)
        return moves, labels

    def _run_epoch(
        self, trainer: OnlineTrainer, dev: Treebank | None, run: int, number: int, tell: Teller
    ) -> dict[str, float]:
        start = time.process_time()
        moves, wrong_moves, arcs, wrong_labels = trainer.run_epoch()
        wrong = wrong_moves / max(moves, 1), wrong_labels / max(arcs, 1)
        seen = {"run": run, "epoch": number, "wrong_moves": wrong[0], "wrong_labels": wrong[1]}
        which = f"run {run}, epoch {number}" if self.runs > 1 else f"epoch {number}"
        text = f"{which}: {wrong[0]:.2%} of moves wrong, {wrong[1]:.2%} of labels"
        if dev is not None:
            heads, labels = trainer.parse(dev._text)
            result = result_of(dev, self._with_answers(dev, heads, labels), 0.0)
            seen |= {"uas": result.uas, "las": result.las}
            text += f"; dev UAS {result.uas:.2f}, LAS {result.las:.2f}"
        done = ((run - 1) * self.epochs + number) / (self.runs * self.epochs)
        tell(f"{text} ({time.process_time() - start:.1f} s)", share=done)
        self.epochs_.append(seen)
        return seen

    def _from_runs(
        self, runs: Sequence[list[Weights]], classes: list[list[int]], columns: int
    ) -> list[CompiledClassifier | None]:
        return [
            self._from_weights(own, np.array(chosen), columns) if len(chosen) > 1 else None
            for *own, chosen in zip(*runs, classes, strict=True)
        ]

    def _from_weights(self, runs: list[Weights], classes: NDArray[Any], columns: int) -> CompiledClassifier:
        part = mean_weights(runs, degree=int(self.degree), classes=len(classes))
        keys = np.asarray(part["keys"])
        constants = np.asarray(part["constants"])
        model = ConjunctionModel(
            degree=int(self.degree),
            sets=True,
            feature_map="plain",
            gamma=1.0,
            coef0=1.0,
            n_features=max(columns, 1),
            columns=np.asarray(part["columns"]),
            keys=keys,
            weights=np.asarray(part["weights"]).reshape(len(keys), len(constants)),
            constants=constants,
            classes=classes,
            origin={"learner": "ArcEagerParser"},
        )
        return CompiledClassifier(model).validate()

    def _learn_from_rows(self, bank: Treebank, tell: Teller) -> None:
        moves, arcs = self._frame.rows(bank._text)
        frame = self._frame
        self.move_classifiers_ = self._from_rows(moves, frame.move_classes, frame.move_columns, tell)
        self.label_classifiers_ = self._from_rows(arcs, frame.arc_classes, frame.arc_columns, tell)

    def _from_rows(
        self, rows: Mapping[str, Any], classes: list[list[int]], columns: int, tell: Teller
    ) -> list[CompiledClassifier | None]:
        offsets, found = np.asarray(rows["offsets"]), np.asarray(rows["columns"])
        shape = (len(offsets) - 1, max(columns, 1))
        X = sparse.csr_matrix((np.ones(len(found)), found, offsets), shape=shape)
        parts, places = np.asarray(rows["parts"]), np.asarray(rows["classes"])
        made: list[CompiledClassifier | None] = []
        for part, own in enumerate(classes):
            chosen = np.flatnonzero(parts == part)
            made.append(self._from_part_rows(X[chosen], np.array(own)[places[chosen]], own, tell))
            done = f"part {part + 1} of {len(classes)}"
            tell(f"{done}: {len(chosen):,} rows, {len(own)} classes", level=2)
        return made

    def _from_part_rows(
        self, X: Any, y: NDArray[Any], classes: list[int], tell: Teller
    ) -> CompiledClassifier | None:
        if len(classes) < 2:
            return None
        missing = np.setdiff1d(classes, y)  # a label may be in the trees and yet on no row
        if len(missing):
            X = sparse.vstack([X, sparse.csr_matrix((len(missing), X.shape[1]))], format="csr")
            y = np.concatenate([y, missing])
        learner = self._row_learner(gamma=1.0, verbose=max(0, int(self.verbose) - 2))
        model = learner.fit_reporting(X, y, None, tell.on_progress).to_model()
        if self.engine == "auto" and isinstance(model, ConjunctionModel):
            return CompiledClassifier(model).validate()  # weights are ready
        compiled = compile(
            model,
            engine=self.engine,
            sample=X[:: max(1, X.shape[0] // _SAMPLE_ROWS)],
            measure=False,  # the same treebank gives the same file
            n_jobs=thread_count(self.n_jobs),
        )
        assert isinstance(compiled, CompiledClassifier)
        return compiled

    # --- What it is -----------------------------------------------------------------------------------

    @property
    def labels_(self) -> list[str]:
        """The relations that it can give."""
        return list(self._frame.labels)

    @property
    def n_features_(self) -> int:
        """Features of moves and of labels, together."""
        return int(self._frame.move_columns + self._frame.arc_columns)

    @property
    def parts_(self) -> dict[str, CompiledClassifier]:
        """The classifiers that decide, such as ``"moves.0"``; none of parts that have one class only."""
        check_is_fitted(self)
        named = [("moves", self.move_classifiers_), ("labels", self.label_classifiers_)]
        return {
            f"{name}.{number}": part
            for name, parts in named
            for number, part in enumerate(parts)
            if part is not None
        }

    def class_names(self, part: str) -> list[str]:
        """The moves or relations that a part chooses among."""
        kind, _, number = part.partition(".")
        if kind == "moves":
            return [_MOVES[move] for move in self._frame.move_classes[int(number)]]
        return [self._frame.labels[label] for label in self._frame.arc_classes[int(number)]]

    def feature_names(self, part: str) -> Callable[[int], str]:
        """What the columns of a part are called, such as ``stack.xpos=NN``."""
        kind = part.partition(".")[0]
        return ArcFeatureNames(kind, self._template_text, self._frame.stored(), self._frame.labels)

    def _decided(self, source: Any, tags: Any) -> Iterator[tuple[Decided, NDArray[np.int32]]]:
        return decided_trees(self._frame, self._engines(), _bank(source, tags))

    # --- Answers --------------------------------------------------------------------------------------

    def parse(
        self,
        source: Source | Treebank | Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]] | None = None,
        *,
        xpos: Sequence[Sequence[str]] | None = None,
        n_jobs: int | None = None,
    ) -> Treebank:
        """Find the trees of sentences.

        Parameters
        ----------
        source : path, open file, Treebank or lists of words
            Heads and relations that it has are replaced; every other byte stays.
        tags, xpos : lists of str, default=None
            Of lists of words: their universal parts of speech and the treebank's own.
        n_jobs : int, default=None
            Threads; by default those of the parser. The answers do not depend on it.

        Returns
        -------
        Treebank
        """
        bank = _bank(source, tags, xpos)
        return self._with_answers(bank, *self._answers(bank, n_jobs))

    def evaluate(self, source: Source | Treebank, *, n_jobs: int | None = None) -> TreeResult:
        """Parse a treebank, and compare with the trees it has.

        Parameters
        ----------
        source : path, open file or Treebank
        n_jobs : int, default=None
            Threads; by default those of the parser.

        Returns
        -------
        TreeResult
        """
        bank = _with_gold_trees(source)
        self._engines()  # made when first needed, which is no part of parsing
        start = time.process_time()
        answers, seconds = self._answers(bank, n_jobs), time.process_time() - start
        return result_of(bank, self._with_answers(bank, *answers), seconds)

    def _answers(self, bank: Treebank, n_jobs: int | None) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        check_is_fitted(self)
        heads, relations = self._frame.parse(*self._engines(), bank._text, threads=self._threads(n_jobs))
        return np.asarray(heads), np.asarray(relations)

    def _engines(self) -> tuple[list[Any], list[Any]]:
        check_is_fitted(self)

        def engine(part: CompiledClassifier | None) -> Any:
            return None if part is None else part._engine

        return list(map(engine, self.move_classifiers_)), list(map(engine, self.label_classifiers_))

    def _with_answers(
        self, bank: Treebank, heads: NDArray[np.int32], relations: NDArray[np.int32]
    ) -> Treebank:
        return bank._with_trees(heads, relations, self.labels_)

    def _answered(self, bank: Treebank, n_jobs: int | None) -> bytes:
        """The text with trees; unlike that of ``parse``, it is not read again."""
        return bytes(bank._text.write_trees(*self._answers(bank, n_jobs), self.labels_))

    # --- Files ----------------------------------------------------------------------------------------

    def _stored(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, settings = store_parts(self.parts_)
        stored = self._frame.stored()
        for number, names in enumerate(stored["strings"]):
            arrays[f"{_STRINGS}{number}"] = packed_strings(names)
        arrays |= {name: np.asarray(stored[name]) for name in _ARRAYS}
        settings |= {name: stored[name] for name in _LISTS}
        return arrays, settings | {"templates": self._template_text}

    def _stored_parameters(self) -> dict[str, Any]:
        # The parts are those of the split that was learnt, whatever the next one shall be.
        return super()._stored_parameters() | {"split": self._split}

    def _restore(self, name: str, arrays: Arrays, settings: dict[str, Any]) -> None:
        self._template_text = container.setting(name, settings, "templates", str, lambda _: True)
        self._split = self.split
        frame = self._new_frame(self._template_text, name)
        table = {key: settings.get(key) for key in _LISTS}
        table |= {key: np.ascontiguousarray(arrays[key]) for key in _ARRAYS if key in arrays}
        strings = [key for key in arrays if key.startswith(_STRINGS)]
        table["strings"] = [
            unpacked_strings(name, arrays, f"{_STRINGS}{number}") for number in range(len(strings))
        ]
        frame.restore(table)
        self._frame = frame
        parts = restore_parts(name, arrays, settings)
        self.move_classifiers_ = [parts.get(f"moves.{k}") for k in range(len(frame.move_classes))]
        self.label_classifiers_ = [parts.get(f"labels.{k}") for k in range(len(frame.arc_classes))]
        self.epochs_, self.best_epochs_, self.dev_result_ = [], [], None
        self.parse([])  # the classifiers must be those of the parts


_CLASSIFIERS = ("move_classifiers_", "label_classifiers_")
_GOLD_EPOCHS = 2  # before the online learner follows its own mistakes
_SAMPLE_ROWS = 4096


def _bank(source: Any, tags: Any = None, xpos: Any = None) -> Treebank:
    if isinstance(source, list | tuple):
        return Treebank.from_words(source, tags, xpos=xpos)
    if tags is not None or xpos is not None:
        raise ValueError("tags are given with lists of words; a treebank has columns for them")
    return source if isinstance(source, Treebank) else read_conllu(source)


def _with_gold_trees(source: Any) -> Treebank:
    bank = _bank(source)
    check_empty(bank.name, bank.n_words)
    bank.check_trees()
    return bank
