"""Models of SVM-light-TK give the predictions of the program, and damaged models are refused."""

from __future__ import annotations

import gzip
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unkernel
from reference.svmlight_tk import (
    FOLDER,
    MARGIN,
    NAMES,
    PREFIX,
    READ,
    SETS,
    UNSUPPORTED,
    model_path,
    read_trees_of,
    test_trees,
)
from unkernel import FormatError
from unkernel._core import kernel_matrix
from unkernel.models import ExampleKernel, Kernel, TreeModel, read_model


def test_all_options_have_a_model():
    assert len(NAMES) == 29
    assert set(UNSUPPORTED) < set(NAMES)


# --- Reading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", READ)
def test_margins(name):
    model = read_model(model_path(name))
    X = test_trees(name)
    expected = np.loadtxt(FOLDER / f"{PREFIX}{name}.margins")
    np.testing.assert_allclose(model.scores(X)[:, 0], expected, rtol=1e-7, atol=MARGIN)
    fast = unkernel.compile(model_path(name))
    np.testing.assert_allclose(fast.decision_function(X), expected, rtol=1e-7, atol=MARGIN)
    assert np.array_equal(fast.predict(X), np.where(expected > 0, 1, -1))


@pytest.mark.parametrize("name", [name for name in READ if name in SETS])
def test_kernels(name):
    kernel = read_model(model_path(name)).kernel
    rows, columns, expected = np.loadtxt(FOLDER / f"{PREFIX}{name}.kernels").T
    X = test_trees(name)[: int(rows.max()) + 1]
    examples = kernel.examples(X, indexed=True)
    result = kernel_matrix(kernel.core(), examples, examples, symmetric=True, threads=1, on_progress=None)
    result = np.asarray(result)[rows.astype(int), columns.astype(int)]
    np.testing.assert_allclose(result, expected, rtol=1e-12 if kernel.combination == "trees" else 1e-6)


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_options_are_refused(name):
    reason, line = UNSUPPORTED[name]
    with pytest.raises(FormatError, match=reason) as caught:
        read_model(model_path(name))
    assert caught.value.line == line


@pytest.mark.parametrize("name", READ)
def test_attributes_of_read_models(name):
    model = read_model(model_path(name))
    assert isinstance(model, TreeModel)
    assert model.classes.tolist() == [-1, 1]
    assert model.origin["format"] == "svmlight-tk"
    assert model.origin["training_documents"] >= model.n_support > 30
    assert (model.coefficients != 0).all()


def test_the_parts_of_a_model():
    model = read_model(model_path("multi-plus-AA"))
    assert model.kernel == ExampleKernel(
        tree="ptk",
        decay=0.4,
        width_decay=float(np.float32(0.4)),
        normalize=True,
        tree_pairing="all",
        combination="sum",
        tree_weight=0.3,
        vector=Kernel("polynomial", 2, 0.5, 2.0),
        normalize_vectors=True,
        vector_pairing="all",
    )
    assert model.intercept.tolist() == [0.40608885]
    assert list(model.support.trees) == ["0", "1", "2"]
    assert list(model.support.vectors) == ["0", "1"]
    assert model.origin["highest_feature_index"] == 41


def test_from_file_to_file(tmp_path):
    """Compressed text and a .uk file give the same predictions."""
    path = tmp_path / "model.gz"
    path.write_bytes(gzip.compress(model_path("multi-plus-lin").read_bytes()))
    fast = unkernel.compile(path)
    fast.save(tmp_path / "model.uk")
    X = test_trees("multi-plus-lin")
    assert np.array_equal(
        unkernel.load(tmp_path / "model.uk").decision_function(X), fast.decision_function(X)
    )
    assert read_model(tmp_path / "model.uk").origin == fast.model.origin


@pytest.mark.parametrize("name", READ[::5])
def test_line_ends_and_blanks_do_not_matter(name, tmp_path):
    expected, X = read_model(model_path(name)), test_trees(name)
    content = model_path(name).read_bytes()
    for variant in (
        content.replace(b"\n", b"\r\n"),
        content.replace(b"\n", b" \t \n"),
        content + b"\n \n\n",
        content.rstrip(),
    ):
        (tmp_path / "model").write_bytes(variant)
        assert np.array_equal(read_model(tmp_path / "model").scores(X), expected.scores(X))


# --- Invalid files --------------------------------------------------------------------------------------

SMALL = b"""\
SVM-light Version V5.01-TK-1.5
5 # kernel type
2 # kernel parameter -d 
1 # kernel parameter -g 
0.5 # kernel parameter -s 
3 # kernel parameter -r 
empty# kernel parameter -u 
0.4 # kernel parameter -L 
0.25 # kernel parameter -T 
+ # kernel parameter -C 
3 # kernel parameter -F 
1 # kernel parameter -S 
0.300000 # kernel parameter -M 
1 # kernel parameter -N 
S # kernel parameter -V 
S # kernel parameter -W 
0 # kernel parameter -U 
7 # highest feature index 
10 # number of training documents 
4 # number of support vectors plus 1 
0.25 # threshold b, each following line is a SV (starting with alpha*y)
0.5  |BT| (S (NP (dogs))(VP (bark))) |BT| (A (b)) |ET| 1:0.5 7:1  |BV| 2:1  |EV| 
-0.75  |BT|  |ET| 
0.1 3:1  |EV| 
"""  # noqa: W291 (the program writes these blanks)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


def read(path, content):
    path.write_bytes(content)
    return read_model(path)


def check_refused(path, content, match, line):
    """Check that the file is refused, with name and line."""
    path.write_bytes(content)
    with pytest.raises(FormatError, match=match) as caught:
        read_model(path)
    assert (caught.value.file, caught.value.line) == (str(path), line)
    assert len(str(caught.value)) < 600
    return caught.value


def test_a_small_model(path):
    model = read(path, SMALL)
    assert model.coefficients.ravel().tolist() == [0.5, -0.75, 0.1]
    assert model.intercept.tolist() == [-0.25]
    assert model.support.brackets("0") == ["(S (NP dogs) (VP bark))", "", ""]
    assert model.support.brackets("1") == ["(A b)", "", ""]
    assert [v.present.tolist() for v in model.support.vectors.values()] == [
        [True, False, True],
        [True, False, False],
    ]
    assert model.support.vectors["0"].matrix.toarray().tolist() == [
        [0.5, 0, 0, 0, 0, 0, 1],
        [0] * 7,
        [0, 0, 1, 0, 0, 0, 0],
    ]
    # (0.5 x'z + 3)^2 of the vectors alone
    (score,) = model.scores(read_trees_of(b"1 3:2 7:1\n"))[0]
    assert score == pytest.approx(0.5 * (0.5 * 1 + 3) ** 2 + 0.1 * (0.5 * 2 + 3) ** 2 - 0.25, rel=1e-14)


def test_parameters_without_effect_are_not_checked(path):
    trees = SMALL.replace(b"+ # kernel", b"T # kernel").replace(
        b"1 # kernel parameter -S", b"4 # kernel parameter -S"
    )
    kernel = read(path, trees.replace(b"0.25 # kernel parameter -T", b"-1 # kernel parameter -T")).kernel
    assert (kernel.combination, kernel.tree_weight) == ("trees", 1.0)
    vectors = SMALL.replace(b"+ # kernel", b"V # kernel").replace(
        b"3 # kernel parameter -F", b"5 # kernel parameter -F"
    )
    kernel = read(path, vectors.replace(b"0.4 # kernel parameter -L", b"0 # kernel parameter -L")).kernel
    assert (kernel.combination, kernel.decay) == ("vectors", 0.4)
    sst = SMALL.replace(b"3 # kernel parameter -F", b"1 # kernel parameter -F")
    assert read(path, sst.replace(b"0.300000", b"-1")).kernel.tree == "sst"
    # The program reads only the first character of these options.
    assert (
        read(
            path, SMALL.replace(b"S # kernel parameter -W", b"ALL # kernel parameter -W")
        ).kernel.tree_pairing
        == "all"
    )


def test_a_model_without_support(path):
    lines = SMALL.replace(b"4 # number of support", b"1 # number of support").splitlines(keepends=True)
    model = read(path, b"".join(lines[:21]))
    assert model.n_support == 0
    fast = unkernel.compile(path)
    assert fast.decision_function(["(A b)", "(C d)"]).tolist() == [-0.25, -0.25]
    fast.save(path.with_suffix(".uk"))
    assert unkernel.load(path.with_suffix(".uk")).predict(["(A b)"]).tolist() == [-1]


def test_support_vectors_without_trees_are_read(path):
    content = SMALL.splitlines(keepends=True)[:21]
    model = read(path, b"".join([*content, b"1 \n2 \n", b"3\n"]))
    assert model.n_support == 3
    assert unkernel.compile(path).decision_function(["(A b)"]).tolist() == [-0.25]


CHANGES = {
    "older version": (b"V5.01-TK-1.5", b"V5.01-TK-1.2", "'V5.01-TK-1.2' is not a version", 1),
    "other kernel": (b"5 # kernel type", b"51 # kernel type", "kernel type 51", 2),
    "no kernel": (b"5 # kernel type", b"x # kernel type", "not a finite number", 2),
    "-d fraction": (b"2 # kernel parameter -d", b"2.5 # kernel parameter -d", "is an integer", 3),
    "-d negative": (b"2 # kernel parameter -d", b"-2 # kernel parameter -d", "-d: .*degree must be", 3),
    "-s nan": (b"0.5 # kernel parameter -s", b"nan # kernel parameter -s", "not a finite number", 5),
    "-L zero": (b"0.4 # kernel", b"0 # kernel", "-L: expected a number from 1e-06 on", 8),
    "-L negative": (b"0.4 # kernel", b"-0.4 # kernel", "-L: expected a number", 8),
    "-T negative": (b"0.25 # kernel", b"-0.25 # kernel", "-T: expected a number from 0", 9),
    "-C": (b"+ # kernel", b"- # kernel", "-C: '-' cannot be read: train with one of T, V, ", 10),
    "-C empty": (b"+ # kernel", b" # kernel", "-C: '' cannot be read", 10),
    "-F without leaves": (b"3 # kernel parameter -F", b"4 # kernel parameter -F", "-F: 4 cannot be read", 11),
    "-F of ACL": (b"3 # kernel parameter -F", b"-1 # kernel parameter -F", "-F: -1 cannot be read", 11),
    "-F of strings": (b"3 # kernel parameter -F", b"6 # kernel parameter -F", "one of 0, 1, 2, 3", 11),
    "-S custom": (b"1 # kernel parameter -S", b"4 # kernel parameter -S", "-S: 4 cannot be read", 12),
    "-M zero": (b"0.300000 #", b"0.000000 #", "-M: expected a number", 13),
    "-M beyond a float": (b"0.300000 #", b"1e300 #", "-M: expected a number", 13),
    "-N": (b"1 # kernel parameter -N", b"4 # kernel parameter -N", "-N: 4 cannot be read", 14),
    "-V": (b"S # kernel parameter -V", b"R # kernel parameter -V", "-V: 'R' cannot be read", 15),
    "-W N": (b"S # kernel parameter -W", b"N # kernel parameter -W", "-W: 'N' cannot be read", 16),
    "-U": (b"0 # kernel parameter -U", b"1 # kernel parameter -U", "in a file of their own", 17),
    "documents": (b"10 # number", b"-1 # number", "integer of at least 0", 19),
    "no number of support": (b"4 # number of support", b"0 # number of support", "at least 1", 20),
    "too few": (b"4 # number of support", b"5 # number of support", "3 support vectors, and .* says 4", 24),
    "too many": (b"4 # number of support", b"3 # number of support", "more support vectors than the 2", 24),
    "threshold": (b"0.25 # threshold", b"inf # threshold", "not a finite number", 21),
    "alpha nan": (b"-0.75  |BT|", b"nan  |BT|", "'nan' is not a finite number, as alpha", 23),
    "alpha inf": (b"-0.75  |BT|", b"1e999  |BT|", "'1e999' is not a finite number", 23),
    "alpha text": (b"-0.75  |BT|", b"DESC  |BT|", "'DESC' is not a finite number", 23),
    "alpha of two words": (b"-0.75  |BT|", b"-0.75\v1  |BT|", "is not a finite number", 23),
    "alpha missing": (b"-0.75  |BT|", b"  |BT|", "is not a finite number", 23),
    "alpha glued": (b"0.5  |BT| (S", b"0.5|BT| (S", "is not a finite number", 22),
    "query": (b"-0.75  |BT|", b"-0.75 qid:3 |BT|", "'qid:' is no part", 23),
    "tree not closed": (b"(VP (bark)))", b"(VP (bark))", "bracket|\\|ET\\|", 22),
    "tree closed twice": (b"(VP (bark)))", b"(VP (bark))))", "\\|ET\\|", 22),
    "no end of trees": (b"|ET| 1:0.5", b"1:0.5", "\\|ET\\|", 22),
    "index 0": (b"1:0.5", b"0:0.5", "from 1 to", 22),
    "descending": (b"1:0.5 7:1", b"7:0.5 1:1", "ascend", 22),
    "value nan": (b"1:0.5", b"1:nan", "finite number", 22),
    "named tree": (b"-0.75  |BT|", b"-0.75  |BT:x|", "no names", 0),
}


@pytest.mark.parametrize(("old", "new", "match", "line"), CHANGES.values(), ids=CHANGES)
def test_a_changed_model(old, new, match, line, path):
    assert SMALL.count(old) == 1
    check_refused(path, SMALL.replace(old, new), match, line)
    check_refused(path, SMALL.replace(old, new).replace(b"\n", b"\r\n"), match, line)


@pytest.mark.parametrize(
    ("normalization", "pairing", "match"), [(3, "S", "-N 2 and 3"), (2, "S", "-N 2 and 3"), (1, "A", "-V A")]
)
def test_an_rbf_kernel_that_the_program_gets_wrong(normalization, pairing, match, path):
    content = SMALL.replace(b"1 # kernel parameter -S", b"2 # kernel parameter -S")
    assert read(path, content).kernel.vector == Kernel("rbf", gamma=1.0)
    content = content.replace(b"1 # kernel parameter -N", b"%d # kernel parameter -N" % normalization)
    content = content.replace(b"S # kernel parameter -V", pairing.encode() + b" # kernel parameter -V")
    check_refused(path, content, match, 12)


def test_a_missing_line(path):
    lines = SMALL.splitlines(keepends=True)
    for number in range(1, 21):
        check_refused(path, b"".join(lines[:number] + lines[number + 1 :]), "expected a line", number + 1)


def test_a_file_cut_short(path):
    lines = SMALL.splitlines(keepends=True)
    for number in range(1, 21):
        check_refused(path, b"".join(lines[:number]), "cut short", number)
    for length in range(len(SMALL) - len(lines[-1])):
        path.write_bytes(SMALL[:length])
        with pytest.raises(FormatError):
            read_model(path)


def read_or_check_format_error(path, content):
    path.write_bytes(content)
    try:
        model = read_model(path)
    except FormatError as error:
        assert error.file == str(path)
        return False
    if not isinstance(model, TreeModel):
        return False
    assert np.isfinite(model.intercept).all()
    assert np.isfinite(model.coefficients).all()
    assert model.coefficients.shape == (len(model.support), 1)
    return True


SPLICES = [
    b"",
    b"\n",
    b" ",
    b"#",
    b"nan",
    b"|BT|",
    b"|ET|",
    b"|BV|",
    b"|EV|",
    b"(",
    b")",
    b"()",
    b"1:1",
    b"\0",
    b"9" * 30,
]


@st.composite
def damaged_models(draw):
    content = model_path(draw(st.sampled_from(NAMES))).read_bytes()
    place = draw(st.integers(0, draw(st.sampled_from([600, 2000, len(content)]))))
    text = draw(st.one_of(st.sampled_from(SPLICES), st.binary(max_size=8)))
    changed = content[:place] + text + content[place + draw(st.integers(0, 40)) :]
    return changed[: draw(st.one_of(st.just(len(changed)), st.integers(0, len(changed))))]


@pytest.mark.hostile
@given(content=damaged_models())
def test_fuzz_splices_and_cuts(tmp_path_factory, content):
    read_or_check_format_error(tmp_path_factory.mktemp("fuzz") / "model", content)


@pytest.mark.hostile
def test_fuzz_bytes_and_lines(path):
    rng = random.Random(0)
    outcomes = set()
    for _ in range(600):
        content = bytearray(SMALL)
        for _ in range(rng.choice([1, 1, 2, 5])):
            content[rng.randrange(len(content))] = rng.choice(b"0123456789 .:-#\n\0\xff()|BTEVSAN")
        lines = bytes(content).splitlines(keepends=True)
        if rng.random() < 0.5:
            a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[a] = rng.choice([b"", lines[b], lines[a] + lines[b], lines[a] * 2])
        outcomes.add(read_or_check_format_error(path, b"".join(lines)))
    assert outcomes == {True, False}
