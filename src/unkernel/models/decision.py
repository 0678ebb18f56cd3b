"""Make predictions and probabilities from the scores of a model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import count_votes, finite_exponentials, softmax, sum_votes
from unkernel.errors import FormatError
from unkernel.models import container, several_outputs
from unkernel.models.curves import Curves, parse_numbers, scores_per_member, sigmoid
from unkernel.models.threshold import Threshold

Scores = NDArray[np.float64]

SCHEMES = (
    *("binary", "one_vs_rest", "one_vs_one", "one_class", "regression", "ordinal", "calibrated"),
    *(several_outputs.MULTI_LABEL, several_outputs.MULTI_OUTPUT),
)
LINKS = ("identity", "log")
_WITHOUT_CLASSES = ("regression", several_outputs.MULTI_OUTPUT)
# LIBSVM clips the probabilities of pairs of classes to [1e-7, 1 - 1e-7].
_MIN_PROBABILITY = 1e-7
_MAX_COUPLED_NUMBERS = 1 << 20  # largest number of pairwise probabilities in memory at a time


@dataclass(frozen=True, eq=False)
class Platt:
    """Parameters of the sigmoids that convert scores to probabilities, one per pair of classes.

    Attributes
    ----------
    a : ndarray of float64, shape (n_pairs,)
        Slopes. For a score f, the class that positive scores support has the probability
        1 / (1 + exp(a f + b)).
    b : ndarray of float64, shape (n_pairs,)
        Offsets.
    coupled : bool, default=False
        Whether the iteration that couples pairs of classes also runs for two classes. LIBSVM uses the value
        of the sigmoid instead. scikit-learn contains an older LIBSVM that runs the iteration; its result is
        within 0.005 of the sigmoid.

    See Also
    --------
    Decision : How scores become predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from unkernel.models import Decision, Platt
    >>> platt = Platt(a=np.array([-1.0]), b=np.array([0.0]))
    >>> Decision("binary", np.array([0, 1]), probability=platt).probabilities(np.array([[0.0]]))
    array([[0.5, 0.5]])
    """

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    coupled: bool = False


@dataclass(frozen=True)
class Softmax:
    """Probabilities proportional to exp(score); a single score f represents the scores 0 and f."""


@dataclass(frozen=True, eq=False)
class Decision:
    """The rule that turns the scores of a model into predictions.

    Attributes
    ----------
    scheme : str
        How scores are combined.

        - ``"binary"``: one score; above 0 means ``classes[1]``.
        - ``"one_vs_rest"``: one score per class; the largest wins.
        - ``"one_vs_one"``: one score per pair of classes i < j, in the order 01, 02, ..., 12, ... A score
          above 0 is a vote for ``classes[i]``, and any other score is a vote for ``classes[j]``. The class
          with the most votes wins; among equals, the first.
        - ``"one_class"``: one score; above 0 means 1, otherwise -1.
        - ``"regression"``: the score is the prediction, or its logarithm; see ``link``.
        - ``"ordinal"``: one score; ``classes[k]`` if the score is above exactly k thresholds.
        - ``"calibrated"``: the most probable class wins. There may be the scores of several classifiers.
        - ``"multi_label"``: each label has a decision of its own; a row may have several labels, or none.
        - ``"multi_output"``: several classes or several numbers are predicted, each by a decision of its own.
    classes : ndarray of shape (n_classes,)
        Class labels; [-1, 1] for "one_class", and empty for regression and "multi_output".
    shape : {"ovo", "ovr"}, default="ovo"
        The result of :meth:`decide` for "one_vs_one" with more than two classes: the scores of the pairs
        ("ovo"), or one score per class, computed as in scikit-learn ("ovr").
    break_ties : bool, default=False
        Whether to break ties between classes with equally many votes by their scores per class.
    probability : Platt, Softmax, Curves or None, default=None
        How scores are converted to probabilities: by sigmoids for pairs of classes, by a log-linear model, or
        by one calibration curve per score.
    zero_is_positive : bool, default=False
        Whether a score of exactly 0 means ``classes[1]``, as in scikit-learn's ``SVC``; for the scheme
        "binary".
    thresholds : ndarray of float64, shape (n_classes - 1,), default=empty
        Ascending thresholds, for the scheme "ordinal".
    ranking : bool, default=False
        Whether only the order of the scores is meaningful; for the schemes "regression" and "ordinal".
    threshold : Threshold or None, default=None
        The probability or the score from which one of two classes is predicted. Otherwise the scheme
        decides.
    outputs : tuple of Decision, default=()
        The decisions of the labels or outputs, for the schemes "multi_label" and "multi_output". The scores
        of the outputs follow each other. The decisions of labels have the classes 0 and 1.
    link : {"identity", "log"}, default="identity"
        The function of the prediction that the score is, for the scheme "regression": with "log", the
        prediction is exp(score), or the largest finite number if that is less.

    See Also
    --------
    unkernel.KernelModel : Model that contains a decision.
    Platt : Sigmoids for probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from unkernel.models import Decision
    >>> decision = Decision("one_vs_one", np.array(["a", "b", "c"]))
    >>> decision.choose(np.array([[1.0, -1.0, -2.0], [0.5, 0.5, -3.0]]))
    array(['c', 'a'], dtype='<U1')
    """

    scheme: str
    classes: NDArray[Any]
    shape: str = "ovo"
    break_ties: bool = False
    probability: Platt | Softmax | Curves | None = None
    zero_is_positive: bool = False
    thresholds: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    ranking: bool = False
    threshold: Threshold | None = None
    outputs: tuple[Decision, ...] = ()
    link: str = "identity"

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        if self.scheme not in SCHEMES:
            raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}, got {self.scheme!r}")
        if self.shape not in ("ovo", "ovr"):
            raise ValueError(f"shape must be 'ovo' or 'ovr', got {self.shape!r}")
        if self.ranking and self.scheme not in ("regression", "ordinal"):
            raise ValueError(f"scheme {self.scheme!r} does not rank rows")
        if self.link not in LINKS:
            raise ValueError(f"link must be one of {', '.join(LINKS)}, got {self.link!r}")
        if self.link != "identity" and (self.scheme != "regression" or self.ranking):
            raise ValueError(f"link {self.link!r} is for models that predict numbers")
        self._check_classes()
        several_outputs.check_outputs(self)
        if self.threshold is not None:
            self._check_threshold(self.threshold)
        if isinstance(self.probability, Platt):
            self._check_probability(self.probability)
        elif isinstance(self.probability, Curves):
            if self.scheme not in ("binary", "one_vs_rest", "calibrated"):
                raise ValueError(f"scheme {self.scheme!r} has no curve for each score")
            self.probability.check(len(self.classes), self.n_scores)
        elif self.probability is not None and self.scheme not in ("binary", "one_vs_rest"):
            raise ValueError(f"scheme {self.scheme!r} has no log-linear probabilities")

    def _check_classes(self) -> None:
        count = len(self.classes)
        if self.scheme == "regression" and count:
            raise ValueError("regression has no classes")
        if self.scheme == "one_class" and self.classes.tolist() != [-1, 1]:
            raise ValueError("the classes of scheme 'one_class' are -1 and 1")
        if self.scheme == "binary" and count != 2:
            raise ValueError(f"scheme 'binary' has two classes, got {count}")
        if self.scheme == "calibrated" and not isinstance(self.probability, Curves):
            raise ValueError("scheme 'calibrated' needs a curve for each score")
        if (self.scheme.startswith("one_vs_") or self.scheme in ("ordinal", "calibrated")) and count < 2:
            raise ValueError(f"scheme {self.scheme!r} has at least two classes, got {count}")
        if self.thresholds.shape != (count - 1 if self.scheme == "ordinal" else 0,):
            raise ValueError("ordinal classes need exactly one threshold between neighbours")
        if not (np.isfinite(self.thresholds).all() and (np.diff(self.thresholds) >= 0).all()):
            raise ValueError("thresholds must be finite and ascend")

    def _check_threshold(self, threshold: Threshold) -> None:
        if len(self.classes) != 2 or self.outputs or self.scheme in ("one_class", "ordinal"):
            raise ValueError("a threshold needs a classifier of two classes")
        if threshold.of == "probability" and self.probability is None:
            raise ValueError(
                "a threshold needs probabilities, and the model has only scores: train a log-linear model, "
                "or calibrate a classifier (--calibrate of the command line, CalibratedClassifierCV)"
            )
        if threshold.of == "score" and self.scheme != "binary":
            raise ValueError(f"scheme {self.scheme!r} has no score for a threshold; give a probability")

    def _check_probability(self, platt: Platt) -> None:
        if self.scheme not in ("binary", "one_vs_one"):
            raise ValueError(f"scheme {self.scheme!r} has no sigmoids: only pairs of classes have")
        if platt.a.shape != (self.n_scores,) or platt.b.shape != (self.n_scores,):
            raise ValueError(f"expected the sigmoids of {self.n_scores} pairs of classes")
        if not (np.isfinite(platt.a).all() and np.isfinite(platt.b).all()):
            raise ValueError("the parameters of a sigmoid are not finite")

    @property
    def n_scores(self) -> int:
        """Number of scores per row."""
        if self.outputs:
            return sum(output.n_scores for output in self.outputs)
        count = len(self.classes)
        if isinstance(self.probability, Curves) and self.scheme == "calibrated":
            members = max(1, self.probability.members(count))
            return members * scores_per_member(count)
        return {"one_vs_rest": count, "one_vs_one": count * (count - 1) // 2}.get(self.scheme, 1)

    @property
    def decides_by_scores(self) -> bool:
        """Whether :meth:`decide` returns the scores unchanged."""
        if self.outputs:
            return all(output.decides_by_scores for output in self.outputs)
        combines_pairs = self.scheme == "one_vs_one" and self.shape == "ovr" and self.n_scores > 1
        return not combines_pairs and self.scheme != "calibrated"

    @property
    def chooses_by_sign(self) -> bool:
        """Whether the sign of a single score decides between two classes."""
        return self.scheme in ("binary", "one_class") and self.threshold is None

    @property
    def chooses_largest(self) -> bool:
        """Whether the largest score, or the sign of a single score, decides."""
        return self.chooses_by_sign or self.scheme == "one_vs_rest"

    @property
    def has_probabilities(self) -> bool:
        """Whether scores can be converted to probabilities."""
        if self.outputs:
            return all(output.probability is not None for output in self.outputs)
        return self.probability is not None

    @property
    def predicts_numbers(self) -> bool:
        """Whether predictions are numbers, and not classes."""
        if self.outputs:
            return self.outputs[0].scheme == "regression"
        return self.scheme == "regression"

    @property
    def breaks_ties(self) -> bool:
        """Whether ties between votes are broken by scores per class."""
        return self.break_ties and self.shape == "ovr" and len(self.classes) > 2

    def decide(self, scores: Scores) -> Scores:
        """Compute the result of ``decision_function`` from the scores.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_scores)
            Scores of the model.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            One number per row if there is a single score, otherwise several; for "calibrated", probabilities.
            With several outputs, their numbers follow each other.
        """
        scores = self._check_scores(scores)
        if self.outputs:
            return several_outputs.decide(self, scores)
        if self.scheme == "calibrated":
            return self.probabilities(scores)
        if self.scheme == "one_vs_rest":
            return scores
        if self.n_scores == 1:
            return scores[:, 0]
        return self.summary(scores) if self.shape == "ovr" else scores

    def choose(self, scores: Scores) -> NDArray[Any]:
        """Return the prediction for each row.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_scores)
            Scores of the model.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            Class labels, or values in regression. For the scheme "multi_label", 1 if a row has a label and 0
            otherwise.
        """
        scores = self._check_scores(scores)
        if self.outputs:
            return several_outputs.choose(self, scores)
        if self.scheme == "regression":
            values: Scores = scores[:, 0]
            return values if self.link == "identity" else _exponentiate(values)
        chosen: NDArray[Any] = self.classes[self.codes(scores)]
        return chosen

    def probabilities(self, scores: Scores) -> NDArray[np.float64]:
        """Compute the probability of each class.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_scores)
            Scores of the model.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The probabilities. With several outputs, those of all classes of each output in turn.

        Raises
        ------
        ValueError
            If the model has no parameters for probabilities.

        Notes
        -----
        Platt's sigmoid of each pair's score is clipped to [1e-7, 1 - 1e-7], as in LIBSVM. More than two
        classes are coupled by method 2 of Wu, Lin and Weng, "Probability estimates for multi-class
        classification by pairwise coupling", JMLR 5 (2004), with LIBSVM's stopping rule.
        """
        scores = self._check_scores(scores)
        if self.outputs:
            return several_outputs.compute_probabilities(self, scores)
        if self.probability is None:
            raise ValueError(
                "the model has no probabilities: train it with them (LIBSVM's -b 1), or calibrate a "
                "classifier with scikit-learn's CalibratedClassifierCV"
            )
        if isinstance(self.probability, Softmax):
            return np.asarray(softmax(np.ascontiguousarray(scores)))
        count = len(self.classes)
        if isinstance(self.probability, Curves):
            return self.probability.probabilities(scores, count)
        result = np.empty((len(scores), count))
        step = max(1, _MAX_COUPLED_NUMBERS // count**2)
        for begin in range(0, len(scores), step):
            pairwise = self._compute_pairwise(scores[begin : begin + step], self.probability)
            if count == 2 and not self.probability.coupled:
                result[begin : begin + step] = pairwise[:, [0, 1], [1, 0]]
            else:
                result[begin : begin + step] = _couple(pairwise)
        return result

    def divide_probabilities(self, probabilities: NDArray[np.float64]) -> Any:
        """Arrange probabilities as scikit-learn does.

        Parameters
        ----------
        probabilities : ndarray of shape (n_rows, n_classes)
            The result of :meth:`probabilities`.

        Returns
        -------
        ndarray or list of ndarray
            One array for each output, for the scheme "multi_output"; otherwise the same array.
        """
        return several_outputs.divide_probabilities(self, probabilities)

    def _check_scores(self, scores: Scores) -> Scores:
        scores = np.asarray(scores, dtype=np.float64)
        if scores.ndim != 2 or scores.shape[1] != self.n_scores:
            raise ValueError(f"expected scores of shape (rows, {self.n_scores}), got {scores.shape}")
        return scores

    def codes(self, scores: Scores) -> NDArray[np.intp]:
        """Return the index of the predicted class for each row.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_scores)
            Scores of the model.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            Indices into ``classes``.
        """
        if self.outputs:
            raise ValueError("a model of several outputs predicts several classes for each row")
        if self.threshold is not None:
            return self.threshold.codes(self.evidence(scores, self.threshold))
        if self.scheme == "ordinal":
            return np.searchsorted(self.thresholds, scores[:, 0], side="left")
        if self.scheme not in ("one_vs_rest", "one_vs_one", "calibrated"):
            positive = scores[:, 0] >= 0 if self.zero_is_positive else scores[:, 0] > 0
            return positive.astype(np.intp)
        return np.asarray(self.merits(scores).argmax(axis=1))

    def evidence(self, scores: Scores, threshold: Threshold) -> Scores:
        """Compute the probability, or the score, that is compared with a threshold.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_scores)
            Scores of a model of two classes.
        threshold : Threshold
            The threshold.

        Returns
        -------
        ndarray of shape (n_rows,)
            Probabilities or scores of the class to which the threshold belongs.
        """
        if threshold.of == "probability":
            return self.probabilities(scores)[:, threshold.positive]
        return scores[:, 0] if threshold.positive == 1 else -scores[:, 0]

    def merits(self, scores: Scores) -> NDArray[Any]:
        """Compute one number per class. The class with the largest number wins; among equals, the first.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_scores)
            Scores of a model with more than two classes.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Scores, probabilities or numbers of votes, depending on the scheme.
        """
        if self.scheme == "one_vs_rest":
            return scores
        if self.scheme == "calibrated":
            return self.probabilities(scores)
        if self.breaks_ties:
            return self.summary(scores)
        return np.asarray(count_votes(np.ascontiguousarray(scores), len(self.classes)))

    def summary(self, scores: Scores) -> Scores:
        """Combine the scores of pairs into one score per class, as scikit-learn does.

        The result is the number of votes, plus a term below half a vote that grows with the sum of the
        scores. A score of 0 is a vote for the first class here, but for the second class in LIBSVM.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_scores)
            Scores of the pairs of classes.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            One score per class.
        """
        return np.asarray(sum_votes(np.ascontiguousarray(scores), len(self.classes)))

    def _compute_pairwise(self, scores: Scores, platt: Platt) -> NDArray[np.float64]:
        """Return an array [row, i, j] with the probability of class i if only i and j are possible."""
        count = len(self.classes)
        sigmoids = sigmoid(scores * platt.a + platt.b)
        sigmoids = np.clip(sigmoids, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
        result = np.zeros((len(scores), count, count))
        for pair, (i, j) in enumerate([(1, 0)] if self.scheme == "binary" else pairs(count)):
            result[:, i, j] = sigmoids[:, pair]
            result[:, j, i] = 1 - sigmoids[:, pair]
        return result

    def to_json(self) -> dict[str, Any]:
        """Return the decision as a JSON object for ``.uk`` files.

        Returns
        -------
        dict
            The JSON object.
        """
        stored = {
            "scheme": self.scheme,
            "classes": classes_to_json(self.classes) if self.scheme not in _WITHOUT_CLASSES else None,
            "shape": self.shape,
            "break_ties": self.break_ties,
            "zero_is_positive": self.zero_is_positive,
            "probability": probability_to_json(self.probability),
        }
        if self.scheme == "ordinal":
            stored["thresholds"] = self.thresholds.tolist()
        if self.threshold is not None:
            stored[container.THRESHOLD] = self.threshold.to_json()
        if self.outputs:
            stored[container.OUTPUTS] = [output.to_json() for output in self.outputs]
        if self.link != "identity":
            stored[container.LINK] = self.link
        return stored | ({"ranking": True} if self.ranking else {})

    @classmethod
    def from_json(cls, name: str, stored: Any) -> Decision:
        """Make a decision from the JSON object in a file, and check it.

        Parameters
        ----------
        name : str
            Name of the file in error messages.
        stored : dict
            The JSON object.

        Returns
        -------
        Decision
            The decision.

        Raises
        ------
        FormatError
            If the JSON object is not a decision.
        """
        damaged = FormatError(name, 0, 0, "the model's setting 'decision' is missing or damaged")
        if not isinstance(stored, dict) or not isinstance(stored.get("break_ties"), bool):
            raise damaged
        scheme, shape = stored.get("scheme"), stored.get("shape")
        if not isinstance(scheme, str) or not isinstance(shape, str):
            raise damaged
        if scheme in _WITHOUT_CLASSES:
            classes: NDArray[Any] = np.empty(0, dtype=np.int64)
        else:
            classes = classes_from_json(name, stored.get("classes"))
        try:
            probability = probability_from_json(stored.get("probability"))
            zero_is_positive, ranking = stored.get("zero_is_positive", False), stored.get("ranking", False)
            if not isinstance(zero_is_positive, bool) or not isinstance(ranking, bool):
                raise damaged
            thresholds = parse_numbers(stored.get("thresholds", []))
            return cls(
                scheme,
                classes,
                shape,
                stored["break_ties"],
                probability,
                zero_is_positive,
                thresholds,
                ranking,
                Threshold.from_json(stored.get(container.THRESHOLD)),
                cls._read_outputs(name, stored.get(container.OUTPUTS, [])),
                stored.get(container.LINK, "identity"),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise damaged from error

    @classmethod
    def _read_outputs(cls, name: str, stored: Any) -> tuple[Decision, ...]:
        """Return the decisions of outputs; ValueError if they have outputs themselves."""
        if not isinstance(stored, list) or any(
            isinstance(one, dict) and container.OUTPUTS in one for one in stored
        ):
            raise ValueError("not a list of decisions of single outputs")
        return tuple(cls.from_json(name, one) for one in stored)


def _exponentiate(scores: Scores) -> Scores:
    return np.asarray(finite_exponentials(np.ascontiguousarray(scores)))


def pairs(count: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs i < j of `count` classes, in LIBSVM's order."""
    return ((i, j) for i in range(count) for j in range(i + 1, count))


def pair_columns(count: int, code: int) -> NDArray[np.intp]:
    """Return the indices of the pairs that contain class `code`, sorted by the other class."""
    other = np.delete(np.arange(count), code)
    low, high = np.minimum(other, code), np.maximum(other, code)
    return np.asarray(low * (2 * count - low - 1) // 2 + high - low - 1)


def expand_pairs(coefficients: NDArray[np.float64], counts: list[int]) -> NDArray[np.float64]:
    """Return coefficients in the form (vectors, pairs of classes), given coefficients in LIBSVM's form.

    LIBSVM stores one coefficient per support vector and other class (vectors, classes - 1). The vectors are
    grouped by class; `counts` has the number of vectors of each class.
    """
    classes = len(counts)
    result = np.zeros((len(coefficients), classes * (classes - 1) // 2))
    begin = 0
    for code, count in enumerate(counts):
        result[begin : begin + count, pair_columns(classes, code)] = coefficients[begin : begin + count]
        begin += count
    return result


def condense_pairs(coefficients: NDArray[np.float64], counts: list[int]) -> NDArray[np.float64]:
    """Return coefficients in LIBSVM's form; the inverse of :func:`expand_pairs`."""
    result = np.empty((len(coefficients), len(counts) - 1))
    begin = 0
    for code, count in enumerate(counts):
        end = begin + count
        result[begin:end] = coefficients[begin:end, pair_columns(len(counts), code)]
        begin = end
    return result


def _couple(pairwise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the class probabilities p that match pairwise probabilities r best, by LIBSVM's iteration.

    The iteration minimises the sum of (r_ji p_i - r_ij p_j)^2 over all i < j, written as p'Qp. As in LIBSVM,
    it ends for each row separately, as soon as |(Qp)_t - p'Qp| < 0.005 / classes for all t.
    """
    count = pairwise.shape[1]
    Q = -pairwise * pairwise.transpose(0, 2, 1)
    diagonal = np.arange(count)
    Q[:, diagonal, diagonal] = (pairwise**2).sum(axis=1)
    p = np.full(pairwise.shape[:2], 1.0 / count)
    active = np.arange(len(p))
    for _ in range(max(100, count)):
        # Avoid einsum: on some machines it fuses multiplications and additions, which changes the last bit.
        Qp = (Q[active] * p[active][:, None, :]).sum(axis=2)
        pQp = (p[active] * Qp).sum(axis=1)
        has_not_converged = np.abs(Qp - pQp[:, None]).max(axis=1) >= 0.005 / count
        active, Qp, pQp = active[has_not_converged], Qp[has_not_converged], pQp[has_not_converged]
        if not len(active):
            break
        p[active] = _sweep(Q[active], p[active], Qp, pQp)
    return p


def _sweep(
    Q: NDArray[np.float64], p: NDArray[np.float64], Qp: NDArray[np.float64], pQp: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Set each p_t in turn to its optimum, and scale p, Qp and p'Qp so that the sum of p remains 1."""
    for t in range(p.shape[1]):
        step = (pQp - Qp[:, t]) / Q[:, t, t]
        p[:, t] += step
        scale = 1 + step
        pQp = (pQp + step * (step * Q[:, t, t] + 2 * Qp[:, t])) / scale / scale
        Qp = (Qp + step[:, None] * Q[:, t]) / scale[:, None]
        p /= scale[:, None]
    return p


def log_softmax(scores: Scores) -> Scores:
    """Return the log-probabilities of a log-linear model; a single score f represents the scores 0 and f."""
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def probability_to_json(probability: Platt | Softmax | Curves | None) -> Any:
    """Return the rule for probabilities as a JSON value for ``.uk`` files."""
    if isinstance(probability, Platt):
        return {
            "a": probability.a.tolist(),
            "b": probability.b.tolist(),
            "coupled": probability.coupled,
        }
    if isinstance(probability, Curves):
        return probability.to_json()
    return None if probability is None else "softmax"


def probability_from_json(stored: Any) -> Platt | Softmax | Curves | None:
    """Return the rule stored by :func:`probability_to_json`; TypeError or KeyError if it is damaged."""
    if stored is None:
        return None
    if stored == "softmax":
        return Softmax()
    if isinstance(stored, dict) and "curves" in stored:
        return Curves.from_json(stored)
    if not isinstance(stored, dict) or not isinstance(stored["coupled"], bool):
        raise TypeError("not the table of a sigmoid")
    return Platt(parse_numbers(stored["a"]), parse_numbers(stored["b"]), stored["coupled"])


# The types of class labels that a file can contain, in numpy's notation, and their types in JSON.
_CLASS_TYPE = re.compile(r"[<>|=]?(b1|i[1248]|u[1248]|f[248]|U[0-9]{0,10})|O", re.ASCII)
_JSON_TYPES = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "U": (str,), "O": (str,)}


def classes_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    """Return class labels as a JSON object; unsupported types raise a ``ValueError``."""
    dtype = "O" if classes.dtype.kind == "O" else classes.dtype.str
    values = classes.tolist()
    if not _CLASS_TYPE.fullmatch(dtype) or not _are_json(values, classes.dtype.kind):
        raise ValueError(
            f"class labels of type {classes.dtype} cannot be saved; use numbers, strings or booleans"
        )
    return {"dtype": dtype, "values": values}


def _are_json(values: list[Any], kind: str) -> bool:
    return all(isinstance(value, _JSON_TYPES[kind]) for value in values)


def classes_from_json(name: str, stored: Any) -> NDArray[Any]:
    """Read the class labels of the file `name`: at least two, all different."""
    damaged = FormatError(name, 0, 0, "the model's class labels are missing or damaged")
    if not isinstance(stored, dict) or not isinstance(stored.get("values"), list):
        raise damaged
    values, dtype = stored["values"], stored.get("dtype")
    if not isinstance(dtype, str) or not _CLASS_TYPE.fullmatch(dtype) or len(values) < 2:
        raise damaged
    # Do not use the width of a text dtype from the file: a damaged file could claim any size.
    kind = "U" if "U" in dtype else np.dtype(dtype).kind
    if not _are_json(values, kind) or len(set(values)) != len(values):
        raise damaged
    try:
        with np.errstate(over="ignore"):
            classes = np.array(values, dtype="U" if kind == "U" else dtype)
    except (ValueError, OverflowError):
        raise damaged from None
    if classes.tolist() != values:  # the type cannot represent the labels
        raise damaged
    return classes
