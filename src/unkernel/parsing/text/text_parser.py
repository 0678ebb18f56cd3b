"""The estimator of parsers of raw text."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any, ClassVar, Self

from sklearn.base import clone
from sklearn.utils._param_validation import Interval

from unkernel.data.text.conll import Treebank
from unkernel.engines.delegation import delegate
from unkernel.learners.parameters import parameters_to_json
from unkernel.parsing.arc_eager.estimator import TEMPLATES, ArcEagerParser
from unkernel.parsing.arc_eager.model import TreebankSource, read_gold_trees
from unkernel.parsing.model_estimator import ModelEstimator
from unkernel.parsing.template_files import read_templates
from unkernel.parsing.text.clusters import WordClusters, get_clusters
from unkernel.parsing.text.jackknife import jackknife_tags
from unkernel.parsing.text.learned_column import TAGGED
from unkernel.parsing.text.tagger import Tagger
from unkernel.parsing.text.text_parser_model import TextParserModel
from unkernel.parsing.text.tokenizer import Tokenizer
from unkernel.parsing.training_progress import OnStep, Reporter, Step

# Share of the training that is finished after each part.
_SHARES = {"tokenizer": 0.1, "tagger": 0.4, "tags": 0.6, "parser": 1.0}


class TextParser(ModelEstimator[TreebankSource, TextParserModel]):
    """Parser of raw text: a tokenizer, a tagger and a dependency parser in one.

    All three parts are trained on one treebank. The dependency parser is trained on predicted tags, which are
    as accurate as the tags of new text: each sentence is tagged by a tagger that was trained without this
    sentence (jackknifing).

    Parameters
    ----------
    tokenizer : Tokenizer, default=None
        A tokenizer with parameters of your choice, which is copied; None uses the defaults.
    tagger : Tagger, default=None
        A tagger with parameters of your choice, which is copied; None uses the defaults.
    parser : ArcEagerParser, default=None
        A parser with parameters of your choice, which is copied; None uses the defaults.
    clusters : WordClusters, path or None, default=None
        Word clusters for the tagger and the parser, or the path of saved clusters or of a text to learn
        clusters from. :class:`Tagger` describes the files.
    folds : int, default=4
        Number of taggers that tag the treebank for the parser, each trained without the sentences that it
        tags. 1 trains the parser on the correct tags, which is faster and less accurate.
    n_jobs : int or None, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    verbose : int, default=0
        1 prints one line per epoch of each part.

    Attributes
    ----------
    model_ : TextParserModel
        The fitted model.
    dev_result_ : TextResult or None
        Result on the text of the ``dev`` treebank.

    See Also
    --------
    TextParserModel : The fitted model.
    Document : A parsed text.

    Examples
    --------
    >>> from unkernel.data import Treebank
    >>> from unkernel.parsing import TextParser
    >>> bank = Treebank.from_words(
    ...     [["They", "saw", "it"], ["Dogs", "bark"]] * 9,
    ...     [["PRON", "VERB", "PRON"], ["NOUN", "VERB"]] * 9,
    ...     heads=[[2, 0, 2], [2, 0]] * 9,
    ...     deprels=[["nsubj", "root", "obj"], ["nsubj", "root"]] * 9,
    ... )
    >>> nlp = TextParser().fit(bank)
    >>> doc = nlp.parse("Dogs saw it  They bark")
    >>> doc[0].upos, doc[0].heads
    (['NOUN', 'VERB', 'PRON'], [2, 0, 2])
    >>> doc.text
    'Dogs saw it  They bark'
    """

    model_class = TextParserModel
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "tokenizer": [Tokenizer, None],
        "tagger": [Tagger, None],
        "parser": [ArcEagerParser, None],
        "clusters": [WordClusters, str, os.PathLike, None],
        "folds": [Interval(Integral, 1, 1_000, closed="both")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        tokenizer: Tokenizer | None = None,
        tagger: Tagger | None = None,
        parser: ArcEagerParser | None = None,
        clusters: WordClusters | str | os.PathLike[str] | None = None,
        folds: int = 4,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    # --- Training -------------------------------------------------------------------------------------

    def _read_corpus(self, source: TreebankSource) -> Treebank:
        return read_gold_trees(source)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._get_parts()[2]._check_parameters()

    def _learn(self, bank: Treebank, dev: Treebank | None, report: Reporter) -> TextParserModel:
        tokenizer, tagger, parser = (clone(part).set_params(verbose=0) for part in self._get_parts())
        self._share_clusters(tagger, parser, bank, report)
        tokenizer.fit_reporting(bank, dev, on_progress=_report_part("tokenizer", report))
        tagger.fit_reporting(bank, dev, on_progress=_report_part("tagger", report))
        tagged = jackknife_tags(
            bank,
            tagger,
            _find_used_columns(parser),
            folds=int(self.folds),
            report=Reporter("tags", 0, _report_part("tags", report)),
        )
        tagged_dev = None if dev is None else tagger.tag(dev)
        parser.fit_reporting(tagged, tagged_dev, on_progress=_report_part("parser", report))
        parameters = parameters_to_json(self)
        parameters.pop("clusters", None)  # the models of the parts store the clusters
        return TextParserModel(tokenizer.to_model, tagger.to_model, parser.to_model, parameters)

    def _share_clusters(
        self, tagger: Tagger, parser: ArcEagerParser, bank: Treebank, report: Reporter
    ) -> None:
        """Load or learn the clusters once, instead of once per tagger."""
        parameter = tagger.clusters if self.clusters is None else self.clusters
        clusters = get_clusters(parameter, bank, lambda message: report(f"clusters: {message}"))
        tagger.set_params(clusters=clusters)
        if self.clusters is not None:
            parser.set_params(clusters=clusters)

    def _get_parts(self) -> tuple[Tokenizer, Tagger, ArcEagerParser]:
        return self.tokenizer or Tokenizer(), self.tagger or Tagger(), self.parser or ArcEagerParser()

    # --- Fitted attributes ----------------------------------------------------------------------------

    parse = delegate(TextParserModel.parse)
    parse_many = delegate(TextParserModel.parse_many)
    explain = delegate(TextParserModel.explain)
    evaluate = delegate(TextParserModel.evaluate)

    @classmethod
    def _new_unfitted(cls, model: TextParserModel) -> Self:
        parts: dict[str, Any] = {
            "tokenizer": Tokenizer(**model.tokenizer.parameters),
            "tagger": Tagger._new_unfitted(model.tagger),
            "parser": ArcEagerParser._new_unfitted(model.parser),
        }
        for part in parts.values():
            part._validate_params()
        return cls(**(model.parameters | parts))


def _find_used_columns(parser: ArcEagerParser) -> list[str]:
    """Return the columns of tags that a parser uses as features."""
    templates, _ = read_templates(parser.templates, TEMPLATES)
    return [name for name in TAGGED if name == "upos" or f".{name}" in templates]


def _report_part(name: str, report: Reporter) -> OnStep:
    """Return a callback that reports the progress of a part as a share of the whole training."""
    begins = dict(zip(_SHARES, [0.0, *_SHARES.values()], strict=False))
    begin, end = begins[name], _SHARES[name]

    def report_step(step: Step) -> None:
        if step.progress is not None:
            if report.solver_callback is not None:
                report.solver_callback(step.progress)
            return
        share = None if step.share is None else begin + (end - begin) * step.share
        report(f"{name}: {step.words}", share=share)

    return report_step
