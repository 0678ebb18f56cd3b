"""Damaged models of other programs raise a FormatError that names the line."""

from __future__ import annotations

import gzip
import os
import random
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import golden
from reference.processes import run_program
from reference.small_models import (
    LIBLINEAR,
    LIBSVM,
    OPAL,
    OPAL_MANY,
    PRECOMPUTED,
    SVMLIGHT,
    SVR,
    TINYSVM,
    VALID_MODELS,
)
from unkernel import FormatError, LimitError, compile
from unkernel.models import Kernel, read_model

pytestmark = pytest.mark.hostile

FUZZ_ROUNDS = int(os.environ.get("UNKERNEL_FUZZ", "150"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


def check_refused(path, content, match, line):
    """Check that the file is refused, with name and line."""
    path.write_bytes(content)
    with pytest.raises(FormatError, match=match or None) as caught:
        read_model(path)
    assert caught.value.file == str(path)
    if line is not None:
        assert caught.value.line == line
    assert len(str(caught.value)) < 600
    return caught.value


@pytest.mark.parametrize("content", VALID_MODELS.values(), ids=VALID_MODELS)
def test_valid_small_models_are_read(content, path):
    path.write_bytes(content)
    assert read_model(path).n_scores in (1, 3)


def test_small_models_have_the_scores_computed_by_hand(path):
    X = np.array([[1.0, 0.5, 2.0]])
    path.write_bytes(LIBSVM)
    kernel = (0.5 * np.array([6.0, 0.5, 0.5, 2.0]) + 1) ** 2
    expected = [
        0.5 * kernel[0] - 0.5 * kernel[1] - 0.25 * kernel[2] - 0.1,
        0.25 * kernel[0] - 0.25 * kernel[3] - 0.2,
        0.125 * kernel[1] + 0 * kernel[2] - 1 * kernel[3] - 0.3,
    ]
    np.testing.assert_allclose(read_model(path).scores(X)[0], expected, rtol=1e-14)
    path.write_bytes(LIBLINEAR)
    np.testing.assert_allclose(read_model(path).scores(X)[0], [0.125, 0.75, -1.0], rtol=1e-14)
    for content in (SVMLIGHT, TINYSVM):
        path.write_bytes(content)
        expected = 0.5 * (0.5 * 5 + 1) ** 2 - 0.5 * (0.5 * 0.5 + 1) ** 2 - 0.25
        assert read_model(path).scores(X)[0, 0] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("number", [2, 3])
def test_the_other_kernels_of_tinysvm(number, path):
    """TinySVM numbers kernels differently from SVMlight, and its RBF kernel uses -s."""
    path.write_bytes(TINYSVM.replace(b"1 # kernel type", b"%d # kernel type" % number))
    kernel = read_model(path).kernel
    assert kernel.name == {2: "sigmoid", 3: "rbf"}[number]
    assert kernel.gamma == 0.5


def test_the_other_kernels_of_svmlight(path):
    path.write_bytes(SVMLIGHT.replace(b"1 # kernel type", b"2 # kernel type"))
    assert (read_model(path).kernel.name, read_model(path).kernel.gamma) == ("rbf", 1.0)
    path.write_bytes(SVMLIGHT.replace(b"1 # kernel type", b"3 # kernel type"))
    assert (read_model(path).kernel.name, read_model(path).kernel.gamma) == ("sigmoid", 0.5)


def drop_lines(content, key):
    lines = content.splitlines(keepends=True)
    assert any(line.startswith(key) for line in lines)
    return b"".join(line for line in lines if not line.startswith(key))


LIBSVM_NEEDED = [
    "svm_type",
    "kernel_type",
    "degree",
    "gamma",
    "coef0",
    "nr_class",
    "total_sv",
    "rho",
    "label",
]


@pytest.mark.parametrize("key", [*LIBSVM_NEEDED[1:], "nr_sv", "probA", "probB"])
def test_a_missing_line_of_libsvm(key, path):
    check_refused(path, drop_lines(LIBSVM, key.encode()), f"no line '{key}'", 0)


@pytest.mark.parametrize("key", ["nr_class", "label", "nr_feature", "bias"])
def test_a_missing_line_of_liblinear(key, path):
    check_refused(path, drop_lines(LIBLINEAR, key.encode()), f"no line '{key}'", 0)


def test_opal_with_a_fitted_sigmoid(path):
    path.write_bytes(OPAL)
    model = read_model(path)
    (probability,) = model.decision.probabilities(np.array([[2.0]]))
    np.testing.assert_allclose(probability[1], 1 / (1 + np.exp(-1.5 * 2.0 + 0.25)))


def test_opal_with_many_classes(path):
    path.write_bytes(OPAL_MANY)
    model = read_model(path)
    assert model.classes.tolist() == [7, 8, 9]
    np.testing.assert_allclose(model.scores([[1, 0, 1]]), [[0.5 * 9 - 0.5, 0.25, -0.5 * 9 + 0.25]])


def test_labels_of_opal(path):
    check_refused(path, OPAL_MANY.replace(b"7 8 9", b"7 7 9"), "different labels", 2)
    check_refused(path, OPAL_MANY.replace(b"7 8 9", b"7"), "different labels", 2)
    check_refused(path, OPAL_MANY.replace(b"0 0 0 #", b"0 0 #"), "threshold", 7)
    check_refused(path, OPAL_MANY.replace(b"0.5 0 -0.5 1:1", b"0.5 1:1"), "", 8)


@pytest.mark.parametrize("name", ["svmlight", "tinysvm"])
def test_a_missing_line_of_a_commented_header(name, path):
    lines = VALID_MODELS[name].splitlines(keepends=True)
    for number in range(1, len(lines) - 2):
        check_refused(path, b"".join(lines[:number] + lines[number + 1 :]), "expected a line", number + 1)


@pytest.mark.parametrize("key", [*LIBSVM_NEEDED, "nr_sv", "probA"])
def test_a_repeated_line(key, path):
    line = next(line for line in LIBSVM.splitlines(keepends=True) if line.startswith(key.encode()))
    check_refused(path, LIBSVM.replace(line, line + line), "a second line", None)


LIBSVM_CHANGES = {
    "unknown type": (b"c_svc", b"d_svc", "'d_svc' is no svm_type", 1),
    "unknown kernel": (b"polynomial", b"poly", "'poly' is no kernel_type", 2),
    "unknown key": (b"gamma 0.5\n", b"gamma 0.5\nshrinking 1\n", "'shrinking' is not a line", 5),
    "negative degree": (b"degree 2", b"degree -2", "'-2' is not an integer of at least 0", 3),
    "degree that is no integer": (b"degree 2", b"degree 2.5", "'2.5' is not an integer", 3),
    "huge degree": (b"degree 2", b"degree 3000000000", "degree must be", 3),
    "two degrees": (b"degree 2", b"degree 2 3", "has 2 numbers", 3),
    "empty degree": (b"degree 2", b"degree", "has 0 numbers", 3),
    "gamma nan": (b"gamma 0.5", b"gamma nan", "'nan' is not a finite number", 4),
    "gamma inf": (b"gamma 0.5", b"gamma inf", "'inf' is not a finite number", 4),
    "gamma overflows": (b"gamma 0.5", b"gamma 1e999", "not a finite number", 4),
    "gamma in words": (b"gamma 0.5", b"gamma half", "'half' is not a finite number", 4),
    "gamma with a comma": (b"gamma 0.5", b"gamma 0,5", "'0,5' is not a finite number", 4),
    "one class": (b"nr_class 3", b"nr_class 1", "not an integer of at least 2", 6),
    "negative classes": (b"nr_class 3", b"nr_class -3", "not an integer of at least 2", 6),
    "other number of classes": (b"nr_class 3", b"nr_class 4", "'rho' has 3 numbers, and 6 are needed", 8),
    "a million classes": (b"nr_class 3", b"nr_class 1000000", "numbers, and 499999500000 are needed", 8),
    "negative total": (b"total_sv 4", b"total_sv -1", "not an integer of at least 0", 7),
    "huge total": (b"total_sv 4", b"total_sv 1000000000", "do not add up", 12),
    "short rho": (b"rho 0.1 0.2 0.3", b"rho 0.1 0.2", "'rho' has 2 numbers", 8),
    "long rho": (b"rho 0.1 0.2 0.3", b"rho 0.1 0.2 0.3 4", "'rho' has 4 numbers", 8),
    "rho nan": (b"rho 0.1 0.2 0.3", b"rho 0.1 nan 0.3", "'nan'", 8),
    "rho with comment": (b"rho 0.1 0.2 0.3", b"rho 0.1 0.2 0.3 # x", "'#'", 8),
    "rho with index": (b"rho 0.1 0.2 0.3", b"rho 0.1 2:0.2 0.3", "'2:0.2'", 8),
    "short label": (b"label 5 -1 2", b"label 5 -1", "'label' has 2 numbers", 9),
    "equal labels": (b"label 5 -1 2", b"label 5 -1 5", "same label", 9),
    "label that is no integer": (b"label 5 -1 2", b"label 5 -1 2.5", "'2.5' is not an integer", 9),
    "huge label": (b"label 5 -1 2", b"label 5 -1 1e300", "'1e300' is not an integer", 9),
    "short probA": (b"probA -1 -2 -3", b"probA -1 -2", "'probA' has 2 numbers", 10),
    "probB nan": (b"probB 0 0.5 1", b"probB 0 -nan 1", "'-nan'", 11),
    "counts do not add up": (b"nr_sv 1 2 1", b"nr_sv 1 2 2", "do not add up to 4", 12),
    "negative count": (b"nr_sv 1 2 1", b"nr_sv 5 -2 1", "'-2' is not an integer", 12),
    "huge counts": (b"nr_sv 1 2 1", b"nr_sv 9007199254740992 9007199254740992 4", "do not add up", 12),
    "short counts": (b"nr_sv 1 2 1", b"nr_sv 2 2", "'nr_sv' has 2 numbers", 12),
    "no marker": (b"SV\n", b"", "'0.5' is not a line of LIBSVM", 13),
    "marker with more": (b"SV\n", b"SV 4\n", "'SV' is not a line", 13),
    "NUL in the header": (b"gamma 0.5", b"gamma 0.5\0", "not a finite number", 4),
    "NUL in a key": (b"gamma 0.5", b"gam\0ma 0.5", r"'gam\\x00ma' is not a line", 4),
    "not ASCII": (b"gamma 0.5", "gamma ½".encode(), r"xc2", 4),
    "byte-order mark in a value": (b"rho 0.1", b"rho \xef\xbb\xbf0.1", "xef", 8),
    "too few coefficients": (b"-0.5 0.125 2:1", b"-0.5", "2 coefficients", 15),
    "coefficient missing": (b"-0.5 0.125 2:1", b"-0.5 2:1", "'2:1'", 15),
    "first coefficient missing": (b"-0.5 0.125 2:1", b"2:1 -0.5", "'2:1' is not a coefficient", 15),
    "coefficient too many": (b"-0.5 0.125 2:1", b"-0.5 0.125 1 2:1", "'1'", 15),
    "first coefficient nan": (b"-0.5 0.125", b"nan 0.125", "'nan' is not a coefficient", 15),
    "last coefficient inf": (b"-0.5 0.125", b"-0.5 inf", "inf", 15),
    "value nan": (b"3:2.5", b"3:nan", "nan", 14),
    "value missing": (b"3:2.5", b"3:", "", 14),
    "value missing, too": (b"3:2.5", b"3", "", 14),
    "index missing": (b"3:2.5", b":2.5", "", 14),
    "negative index": (b"3:2.5", b"-3:2.5", "", 14),
    "huge index": (b"3:2.5", b"99999999999999999999:2.5", "", 14),
    "large index": (b"3:2.5", b"9223372036854775806:2.5", "", 14),
    "descending indices": (b"1:1 2:-1", b"2:1 1:-1", "do not ascend", 16),
    "repeated indices": (b"1:1 2:-1", b"2:1 2:-1", "2", 16),
    "named field": (b"2:-1", b"x:-1", "'x:-1' is no part", 16),
    "query": (b"0.25 1:1 3:2.5", b"0.25 qid:3 1:1 3:2.5", "qid", 14),
    "comment": (b"2:-1", b"2:-1 # x", "'#' is no part", 16),
    "NUL": (b"2:-1", b"2:-1\0", "", 16),
    "not ASCII in a vector": (b"2:-1", b"2:-1\xff", "", 16),
    "a vector too many": (
        b"-0.25 -1 3:1\n",
        b"-0.25 -1 3:1\n\n1 1 1:1\n",
        "more support vectors than the 4",
        19,
    ),
    "a vector too few": (b"-0.25 -1 3:1\n", b"", "3 support vectors, and total_sv says 4", 16),
    "two models": (b"-0.25 -1 3:1\n", b"-0.25 -1 3:1\n" + LIBSVM, "svm_type", 18),
}


@pytest.mark.parametrize(("old", "new", "match", "line"), LIBSVM_CHANGES.values(), ids=LIBSVM_CHANGES)
def test_a_changed_model_of_libsvm(old, new, match, line, path):
    assert LIBSVM.count(old) == 1
    check_refused(path, LIBSVM.replace(old, new), match, line)
    crlf = LIBSVM.replace(old, new).replace(b"\n", b"\r\n")
    check_refused(path, crlf, match, line)


OTHER_CHANGES = {
    "svr of many classes": (SVR, b"nr_class 2", b"nr_class 3", "nr_class of epsilon_svr is 2", 4),
    "svr with huge total": (SVR, b"total_sv 2", b"total_sv 1000000000", "2 support vectors, and total_sv", 9),
    "svr with small total": (SVR, b"total_sv 2", b"total_sv 1", "more support vectors than the 1", 9),
    "svr with no vectors": (SVR, b"total_sv 2", b"total_sv 0", "more support vectors than the 0", 8),
    "svr with rho of pairs": (SVR, b"rho 0.5", b"rho 0.5 1", "'rho' has 2 numbers", 6),
    "negative gamma of rbf": (SVR, b"gamma 0.5", b"gamma -0.5", "must not be negative", 3),
    "rbf without gamma": (SVR, b"gamma 0.5\n", b"", "no line 'gamma'", 0),
    "precomputed with other features": (PRECOMPUTED, b"0:7", b"0:7 1:1", "precomputed", 0),
    "precomputed without a number": (PRECOMPUTED, b"0:7", b"", "precomputed", 0),
    "unknown solver": (LIBLINEAR, b"L2R_LR", b"L3R", "'L3R' is no solver_type", 1),
    "liblinear of one class": (LIBLINEAR, b"nr_class 3", b"nr_class 1", "at least 2", 2),
    "liblinear of many classes": (LIBLINEAR, b"nr_class 3", b"nr_class 1000000", "'label' has 3", 3),
    "liblinear with equal labels": (LIBLINEAR, b"label 5 -1 2", b"label 5 5 2", "same label", 3),
    "negative features": (LIBLINEAR, b"nr_feature 2", b"nr_feature -2", "at least 0", 4),
    "more features": (LIBLINEAR, b"nr_feature 2", b"nr_feature 3", "3 lines of weights, and .* say 4", 9),
    "fewer features": (LIBLINEAR, b"nr_feature 2", b"nr_feature 1", "3 lines of weights, and .* say 2", 9),
    "very many features": (LIBLINEAR, b"nr_feature 2", b"nr_feature 1000000000000", "lines of weights", 9),
    "bias nan": (LIBLINEAR, b"bias 1", b"bias nan", "'nan'", 5),
    "bias overflows": (LIBLINEAR, b"bias 1", b"bias 1e308", "not finite", 5),
    "no bias": (LIBLINEAR, b"bias 1", b"bias -1", "lines of weights", 9),
    "no w": (LIBLINEAR, b"w\n", b"", "'0.5' is not a line", 6),
    "short line": (LIBLINEAR, b"-1 0 2", b"-1 0", "2 weights, and this model has 3", 8),
    "long line": (LIBLINEAR, b"-1 0 2", b"-1 0 2 3", "4 weights", 8),
    "broken line": (LIBLINEAR, b"-1 0 2", b"-1\n0 2", "1 weights", 8),
    "weight nan": (LIBLINEAR, b"-1 0 2", b"-1 nan 2", "'nan' is not a weight", 8),
    "weight with index": (LIBLINEAR, b"-1 0 2", b"-1 3:1 2", "'3:1' is not a weight", 8),
    "weight with comment": (LIBLINEAR, b"-1 0 2", b"-1 0 #2", "'#2' is not a weight", 8),
    "weight with NUL": (LIBLINEAR, b"-1 0 2", b"-1 0 2\0", "is not a weight", 8),
    "custom kernel": (SVMLIGHT, b"1 # kernel type", b"4 # kernel type", "made by its user", 2),
    "tree kernel": (SVMLIGHT, b"1 # kernel type", b"5 # kernel type", "not one of SVMlight's", 2),
    "negative kernel": (SVMLIGHT, b"1 # kernel type", b"-1 # kernel type", "at least 0", 2),
    "SVM-light-TK": (SVMLIGHT, b"V6.20", b"V5.01-TK-1.5", "kernel type 1 of SVM-light-TK", 2),
    "negative -d": (SVMLIGHT, b"2 # kernel parameter -d", b"-2 # kernel parameter -d", "at least 0", 3),
    "-s nan": (SVMLIGHT, b"0.5 # kernel", b"nan # kernel", "'nan' is not a finite number", 5),
    "-s empty": (SVMLIGHT, b"0.5 # kernel", b" # kernel", "one number", 5),
    "-s twice": (SVMLIGHT, b"0.5 # kernel", b"0.5 1 # kernel", "one number", 5),
    "no vectors plus 1": (SVMLIGHT, b"3 # number", b"0 # number", "at least 1", 10),
    "fewer vectors": (SVMLIGHT, b"3 # number", b"2 # number", "more support vectors than the 1", 13),
    "more vectors": (SVMLIGHT, b"3 # number", b"1000000001 # number", "2 support vectors, and", 13),
    "threshold inf": (SVMLIGHT, b"0.25 # threshold", b"inf # threshold", "'inf'", 11),
    "alpha nan": (SVMLIGHT, b"-0.5 2:1", b"nan 2:1", "nan", 13),
    "a tree": (SVMLIGHT, b"-0.5 2:1", b"-0.5 |BT| (S (NP)) |ET|", "", 13),
    "descent": (SVMLIGHT, b"1:1 3:2", b"3:1 1:2", "do not ascend", 12),
    "ANOVA": (TINYSVM, b"1 # kernel type", b"4 # kernel type", "ANOVA", 2),
    "fewer SVs": (TINYSVM, b"3 1 10 1.5", b"1 1 10 1.5", "more support vectors than the 1", 11),
    "more SVs": (TINYSVM, b"3 1 10 1.5", b"1000000000 1 10 1.5", "2 support vectors, and", 11),
    "negative SVs": (TINYSVM, b"3 1 10 1.5", b"-1 1 10 1.5", "at least 0", 8),
    "many numbers": (TINYSVM, b"3 1 10 1.5", b"3 1 10 1.5 8", "one number", 8),
    "loss nan": (TINYSVM, b"3 1 10 1.5", b"3 1 10 nan", "'nan'", 8),
}


@pytest.mark.parametrize("change", OTHER_CHANGES.values(), ids=OTHER_CHANGES)
def test_changed_models_of_other_programs_are_refused(change, path):
    content, old, new, match, line = change
    assert content.count(old) == 1
    check_refused(path, content.replace(old, new), match, line)


def test_columns_have_the_numbers_of_the_file(path):
    assert check_refused(path, LIBSVM.replace(b"rho 0.1 0.2", b"rho 0.1 x.2"), "x.2", 8).column == 9
    assert check_refused(path, LIBSVM.replace(b"3:2.5", b"3:y"), "y", 14).column == 16
    assert check_refused(path, LIBSVM.replace(b"1:1 2:-1", b"2:1 1:-1"), "ascend", 16).column == 13
    assert check_refused(path, LIBSVM.replace(b"-0.25 -1", b"  z -1"), "'z'", 17).column == 3
    assert check_refused(path, LIBLINEAR.replace(b"-1 0 2", b"-1 0 q"), "'q'", 8).column == 6


def test_two_classes_have_one_coefficient(path):
    content = LIBSVM.replace(b"nr_class 3", b"nr_class 2").replace(b"rho 0.1 0.2 0.3", b"rho 0.1")
    content = content.replace(b"label 5 -1 2", b"label 5 -1").replace(b"nr_sv 1 2 1", b"nr_sv 2 2")
    content = content.replace(b"probA -1 -2 -3\nprobB 0 0.5 1\n", b"")
    check_refused(path, content, "0.25", 12)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "empty"),
        (b"\n", "not a model that is known"),
        (b"1 1:1\n", "not a model that is known"),
        (b"\0" * 1000, "not a model that is known"),
        (b"\xef\xbb\xbfsvm_type c_svc\n", "not a model that is known"),
        (b"12345678{", "not a model file"),
        (b"svm_type", "ends before its line 'SV'"),
        (b"svm_type c_svc", "ends before its line 'SV'"),
        (b"solver_type", "ends before its line 'w'"),
        (b"SVM-light Version", "ends before its line about the kernel type"),
        (b"TinySVM Version", "ends before its line about the kernel type"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_files_of_a_few_bytes_are_refused(content, match, path):
    check_refused(path, content, match, None)


@pytest.mark.parametrize("name", [name for name in VALID_MODELS if "opal" not in name])  # it stores no number
def test_files_truncated_anywhere_are_refused(name, path):
    """Truncation is noticed unless only digits of the last number are missing."""
    content = VALID_MODELS[name]
    accepted_lengths = []
    for length in range(len(content)):
        path.write_bytes(content[:length])
        try:
            read_model(path)
            accepted_lengths.append(length)
        except FormatError as error:
            assert error.file == str(path)
    last_line = content.rstrip().rfind(b"\n") + 1
    assert all(length > last_line for length in accepted_lengths)


@pytest.mark.parametrize("count", [2, 3])
def test_tinysvm_headers_may_count_one_vector_too_many(count, path):
    path.write_bytes(TINYSVM.replace(b"3 1 10 1.5", b"%d 1 10 1.5" % count))
    assert read_model(path).n_support == 2


@pytest.mark.parametrize("key", [b"svm_type", b"rho", b"label", b"nr_sv", b"SV", b"unknown"])
def test_a_line_of_megabytes(key, path):
    """A reader whose time is quadratic in the length of a line would take hours."""
    for filler in (b"x" * (3 << 20), b" 1" * (3 << 19), b" " * (3 << 20) + b"x", b"1 " * (20 << 20)):
        old = next((line for line in LIBSVM.splitlines() if line.split()[0] == key), b"gamma 0.5")
        check_refused(path, LIBSVM.replace(old, key + b" " + filler), "", None)


def test_a_file_of_one_endless_line(path):
    check_refused(path, b"svm_type " + b"y" * (20 << 20), "a header line of", 1)
    check_refused(path, b"solver_type L2R_LR\n" * 3, "a second line", 2)
    check_refused(path, b"SVM-light Version " + b"6" * (1 << 20), "ends before", 1)


def test_coefficients_of_very_many_pairs(path):
    """A dense matrix of the coefficients of two million pairs of classes would take 23 GB."""
    classes = 1800
    pairs = classes * (classes - 1) // 2
    header = f"svm_type c_svc\nkernel_type linear\nnr_class {classes}\ntotal_sv {classes}\n"
    header += "rho" + " 0" * pairs + "\nlabel " + " ".join(map(str, range(classes)))
    header += "\nnr_sv" + " 1" * classes + "\nSV\n"
    path.write_bytes(header.encode() + (b"2 " * (classes - 1) + b"1:1\n") * classes)
    model = read_model(path)
    assert model.coefficients.shape == (classes, pairs)
    assert model.coefficients.nbytes == 8 * classes * (classes - 1)
    assert (model.scores(np.array([[1.5]])) == 6.0).all()  # two vectors per pair


def test_a_compressed_file_of_many_zeros(path):
    header = SVMLIGHT.partition(b"0.5 1:1")[0].replace(b"3 # number", b"%d # number" % ((1 << 24) + 1))
    path.write_bytes(gzip.compress(header + b"0 1:1\n" * (1 << 24)))
    assert path.stat().st_size < 500_000
    with pytest.raises(LimitError, match="the numbers in it would take"):
        read_model(path)


def test_features_counted_from_zero(path):
    path.write_bytes(SVR.replace(b"1:1", b"0:1"))
    model = read_model(path)
    assert model.origin["zero_based"] is True
    assert model.support_vectors.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]
    path.write_bytes(PRECOMPUTED)
    model = read_model(path)
    assert model.support_vectors.toarray().tolist() == [[1], [7]]
    with pytest.raises(ValueError, match="precomputed"):
        model.scores([[1.0]])


def test_a_very_large_index_takes_no_memory(path):
    path.write_bytes(SVR.replace(b"2:1", b"4000000000000000000:1"))
    model = read_model(path)
    assert model.n_features == 4 * 10**18
    assert model.scores([[1.0, 5.0]])[0, 0] == pytest.approx(np.exp(-12.5) - np.exp(-13.5) - 0.5)


def test_no_support_vectors(path):
    path.write_bytes(SVR.replace(b"total_sv 2", b"total_sv 0").split(b"SV\n")[0] + b"SV\n")
    model = read_model(path)
    assert model.n_support == 0
    assert model.scores([[1.0], [2.0]]).tolist() == [[-0.5], [-0.5]]


def test_support_vectors_without_entries(path):
    path.write_bytes(SVR.replace(b"1 1:1", b"1").replace(b"-1 2:1", b"-2 5:0"))
    model = read_model(path)
    assert model.support_vectors.nnz == 0
    assert model.n_features == 5


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_claimed_sizes_are_not_allocated(tmp_path):
    claims = {
        "svr": SVR.replace(b"total_sv 2", b"total_sv 9000000000000"),
        "libsvm": LIBSVM.replace(b"total_sv 4", b"total_sv 1000000001").replace(b"1 2 1", b"1000000000 0 1"),
        "liblinear": LIBLINEAR.replace(b"nr_feature 2", b"nr_feature 1000000000000"),
        "classes": LIBLINEAR.replace(b"nr_class 3", b"nr_class 1000000000000"),
        "svmlight": SVMLIGHT.replace(b"3 # number", b"1000000000000 # number"),
        "tinysvm": TINYSVM.replace(b"3 1 10 1.5", b"1000000000000 1 10 1.5"),
    }
    for name, content in claims.items():
        (tmp_path / name).write_bytes(content)
    program = """
        import resource, sys
        from pathlib import Path
        import unkernel
        from unkernel.models import Kernel, read_model
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (96 << 20),) * 2)
        for path in sorted(Path(sys.argv[1]).iterdir()):
            try:
                read_model(path)
            except unkernel.FormatError:
                print(path.name)
    """
    printed = run_program(program, tmp_path)
    assert printed.split() == sorted(claims)


# --- Fuzzing ----------------------------------------------------------------------------------------

SPLICES = [
    b"",
    b"\n",
    b" ",
    b"\0",
    b"#",
    b":",
    b"-",
    b"nan",
    b"1e999",
    b"99999999999",
    b"\xff",
    b"SV\n",
    b"qid:1",
]


def read_or_check_format_error(path, content):
    path.write_bytes(content)
    try:
        model = read_model(path)
    except FormatError as error:
        assert error.file == str(path)
        return False
    assert np.isfinite(model.intercept).all()
    if model.n_features < 1000 and getattr(model, "kernel", None) != Kernel("precomputed"):
        assert model.scores(np.eye(3)).shape == (3, model.n_scores)
    return True


@st.composite
def damaged_models(draw):
    """Draw a golden model with some bytes replaced, and possibly truncated."""
    content = golden.content(draw(st.sampled_from(golden.NAMES)))
    # Most possible faults are in the header.
    place = draw(st.integers(0, draw(st.sampled_from([300, 2000, len(content)]))))
    text = draw(st.one_of(st.sampled_from(SPLICES), st.binary(max_size=8)))
    changed = content[:place] + text + content[place + draw(st.integers(0, 40)) :]
    return changed[: draw(st.one_of(st.just(len(changed)), st.integers(0, len(changed))))]


@given(content=damaged_models())
@settings(max_examples=FUZZ_ROUNDS)
def test_fuzz_splices_and_cuts(tmp_path_factory, content):
    read_or_check_format_error(tmp_path_factory.mktemp("fuzz") / "model", content)


def test_fuzz_bytes_and_lines(path):
    """Read small models with changed bytes, and with swapped, repeated or dropped lines."""
    rng = random.Random(0)
    n_read = 0
    for _ in range(4 * FUZZ_ROUNDS):
        content = bytearray(rng.choice(list(VALID_MODELS.values())))
        for _ in range(rng.choice([1, 1, 2, 5])):
            content[rng.randrange(len(content))] = rng.choice(b"0123456789 .:-#\n\0\xffeESVw")
        lines = bytes(content).splitlines(keepends=True)
        if rng.random() < 0.5:
            first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[first] = rng.choice([b"", lines[second], lines[first] + lines[second], lines[first] * 2])
        n_read += read_or_check_format_error(path, b"".join(lines))
    assert 0 < n_read < 4 * FUZZ_ROUNDS


def test_a_degree_of_billions(tmp_path):
    path = tmp_path / "m"
    path.write_text(
        "svm_type c_svc\nkernel_type polynomial\ndegree 2147483647\ngamma 0.5\ncoef0 0\nnr_class 2\n"
        "total_sv 2\nrho 0\nlabel 1 -1\nnr_sv 1 1\nSV\n1 1:1 2:1\n-1 2:1 3:1\n"
    )
    for measure in (True, False):  # a loop over the degree would not end
        fast = compile(read_model(path), measure=measure)
        assert fast.score_one([0, 1]) == 1.0
