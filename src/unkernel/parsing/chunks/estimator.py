"""The estimator of chunkers, modelled on YamCha: a classifier tags one word after another."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions

from unkernel._core import SequenceFeatures, recode_chunks
from unkernel.data.text.chunks import ChunkCorpus
from unkernel.data.threads import thread_count
from unkernel.engines import CompiledClassifier
from unkernel.engines.delegation import delegate, delegate_property
from unkernel.learners.parameters import COST
from unkernel.parsing.chunks.model import (
    DIRECTIONS,
    ENGINES,
    FEATURE_SOURCES,
    SCHEMES,
    ChunkModel,
    ChunkSource,
    check_pos,
    compile_unmeasured,
    read_nonempty,
)
from unkernel.parsing.chunks.result import read_tags
from unkernel.parsing.input_checks import WIDEST_BEAM
from unkernel.parsing.model_estimator import RUN_CONSTRAINTS, BaseParser
from unkernel.parsing.template_files import read_templates
from unkernel.parsing.training_progress import Reporter
from unkernel.poly import PolyLogisticRegression, PolySVC

_TEMPLATES = {"default": "chunk.txt", "words": "chunk_words.txt", "yamcha": "yamcha.txt"}


def default_gamma(features: SequenceFeatures) -> float:
    """Return the default gamma: tuned on CoNLL-2000 or, without parts of speech, on named entities."""
    return 0.05 if features.known(0) is None else 0.1


class Chunker(BaseParser[ChunkSource, ChunkModel]):
    """Chunker in the manner of YamCha: a kernel machine tags words one after another.

    A classifier scores the tags of a word. Its features are the words and parts of speech around the word and
    the tags of the two words before it [1]_. A beam search finds a sequence of tags for the whole sentence.
    Tags that cannot follow one another are never assigned.

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        Largest number of features in a conjunction.
    C : float, default=1.0
        Weight of the loss; larger values fit the training text more closely.
    gamma : float or None, default=None
        Factor of the inner product in the kernel ``(gamma <x, z> + 1) ** degree``. None means 0.1 for
        templates with parts of speech and 0.05 for others.
    learner : {"svm", "logistic"}, default="svm"
        Learning algorithm: :class:`~unkernel.PolySVC`, one versus the rest, or
        :class:`~unkernel.PolyLogisticRegression` with an l1 penalty.
    templates : {"default", "words", "yamcha"} or path, default="default"
        Feature templates: the default set, a set without parts of speech ("words"), the set of YamCha, or the
        path of a template file. For a text without parts of speech, "default" means "words".
    direction : {"forward", "backward"}, default="forward"
        Direction in which sentences are tagged: from the first word or from the last word.
    scheme : {"IOB1", "IOB2", "IOE1", "IOE2", "IOBES"}, default="IOB2"
        Tag scheme that the classifier uses internally. Input may use any scheme; output always uses IOB2.
    beam : int, default=4
        Number of tag sequences that are followed simultaneously, 1 to 64. 1 is greedy: faster and less
        accurate.
    min_count : int, default=1
        Smallest number of occurrences of a feature in training; rarer features are ignored.
    engine : str, default="auto"
        Engine of the compiled classifier, as for :func:`unkernel.compile`, except that "auto" does not
        measure speed: it chooses "split" for support vectors and "expanded" for weights. All engines except
        "auto" and "expanded" need support vectors: ``learner="svm"`` and a degree above 1.
    tol : float, default=0.01
        Relative duality gap at which training stops.
    n_jobs : int or None, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the order in which rows are visited.
    verbose : int, default=0
        1 prints a summary of the training data and the model; 2 also prints the progress of training.

    Attributes
    ----------
    model_ : ChunkModel
        The fitted model.
    dev_result_ : ChunkResult or None
        Result on the ``dev`` text.

    See Also
    --------
    ChunkModel : The fitted model.
    unkernel.data.read_chunks : Read a text with tags.
    compare_chunks : Compare two taggings.

    References
    ----------
    .. [1] T. Kudo and Y. Matsumoto, "Chunking with support vector machines", NAACL 2001.

    Examples
    --------
    >>> from unkernel.data import ChunkCorpus
    >>> from unkernel.parsing import Chunker
    >>> words = [["He", "sees", "her"], ["She", "saw", "the", "old", "man"]]
    >>> pos = [["PRP", "VBZ", "PRP"], ["PRP", "VBD", "DT", "JJ", "NN"]]
    >>> tags = [["B-NP", "B-VP", "B-NP"], ["B-NP", "B-VP", "B-NP", "I-NP", "I-NP"]]
    >>> chunker = Chunker().fit(ChunkCorpus.from_words(words, pos, tags=tags))
    >>> chunker.parse([["They", "saw", "the", "sea"]], tags=[["PRP", "VBD", "DT", "NN"]])[0].tags
    ['B-NP', 'B-VP', 'B-NP', 'I-NP']
    """

    model_class = ChunkModel
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = RUN_CONSTRAINTS | {
        "degree": [Interval(Integral, 1, 3, closed="both")],
        "C": [COST],
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
        "learner": [StrOptions({"svm", "logistic"})],
        "templates": [str, os.PathLike],
        "direction": [StrOptions(set(DIRECTIONS))],
        "scheme": [StrOptions(set(SCHEMES))],
        "beam": [Interval(Integral, 1, WIDEST_BEAM, closed="both")],
        "min_count": [Interval(Integral, 1, 2**62, closed="both")],
        "engine": [StrOptions(set(ENGINES))],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        degree: int = 2,
        *,
        C: float = 1.0,
        gamma: float | None = None,
        learner: str = "svm",
        templates: str | os.PathLike[str] = "default",
        direction: str = "forward",
        scheme: str = "IOB2",
        beam: int = 4,
        min_count: int = 1,
        engine: str = "auto",
        tol: float = 0.01,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    # --- Training -------------------------------------------------------------------------------------

    def _read_corpus(self, source: ChunkSource) -> ChunkCorpus:
        return read_nonempty(source)

    def _learn(self, corpus: ChunkCorpus, dev: ChunkCorpus | None, report: Reporter) -> ChunkModel:
        templates, name = read_templates(self._choose_templates(corpus), _TEMPLATES)
        features = SequenceFeatures(templates, name, **FEATURE_SOURCES)
        check_pos(features, corpus, "; or give templates without pos")
        tags, types = read_tags(corpus, [])
        recoded = np.asarray(recode_chunks(corpus.offsets, tags, self.scheme))
        classes, labels = np.unique(recoded, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"{corpus.name}: Chunker needs a text with at least two different tags")
        return ChunkModel(
            templates=templates,
            features=features,
            types=types,
            classes=classes,
            scheme=self.scheme,
            direction=self.direction,
            columns=corpus.n_columns,
            beam=int(self.beam),
            engine=self.engine,
            classifier_=self._train_classifier(corpus, features, labels.reshape(-1).astype(np.int32), report),
            parameters=self._export_parameters(),
        )

    def _choose_templates(self, corpus: ChunkCorpus) -> str | os.PathLike[str]:
        has_pos = corpus.n_columns - corpus.tagged >= 2
        return "words" if self.templates == "default" and not has_pos else self.templates

    def _train_classifier(
        self, corpus: ChunkCorpus, features: SequenceFeatures, labels: NDArray[np.int32], report: Reporter
    ) -> CompiledClassifier:
        """Number the features, and train the classifier of tags."""
        offsets, columns = features.learn(
            corpus._text, labels, backward=self.direction == "backward", min_count=int(self.min_count)
        )
        self._check_min_count(corpus, features.features)
        report(
            f"{len(corpus):,} sentences, {corpus.n_words:,} words, {labels.max() + 1} tags, "
            f"{features.features:,} features"
        )
        shape = (len(labels), features.features)
        rows = sparse.csr_matrix((np.ones(len(columns)), columns, offsets), shape=shape)
        model = (
            self._new_learner(features).fit_reporting(rows, labels, None, report.solver_callback).to_model()
        )
        classifier = compile_unmeasured(model, self.engine, thread_count(self.n_jobs))
        report(f"{classifier}, {classifier.nbytes / 1e6:,.1f} MB")
        return classifier

    def _new_learner(self, features: SequenceFeatures) -> PolySVC | PolyLogisticRegression:
        gamma = default_gamma(features) if self.gamma is None else float(self.gamma)
        parameters: dict[str, Any] = {"gamma": gamma, "verbose": max(0, int(self.verbose) - 1)}
        if self.learner == "svm" and self.degree > 1:
            # Most conjunctions of words occur only once. Storing one weight per conjunction and tag would
            # take many times the memory of the support vectors, without saving time.
            parameters["storage"] = "split"
        return self._new_row_learner(**parameters)

    # --- Fitted attributes ----------------------------------------------------------------------------

    classes_: NDArray[np.str_] = delegate_property(
        "classes_", "The tags that the classifier chooses among, in the internal scheme."
    )
    types_: list[str] = delegate_property("types_", "The types of chunks.")
    classifier_: CompiledClassifier = delegate_property("classifier_", "The classifier of tags.")

    # --- Answers --------------------------------------------------------------------------------------

    parse = delegate(ChunkModel.parse)
    evaluate = delegate(ChunkModel.evaluate)
