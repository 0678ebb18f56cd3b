"""The models of SVM-light-TK in tests/golden."""

from __future__ import annotations

import io

from reference.golden import FOLDER
from unkernel import read_trees

PREFIX = "svmlight-tk-"
NAMES = sorted(path.stem.removeprefix(PREFIX) for path in FOLDER.glob(f"{PREFIX}*.model"))
SETS = [name for name in NAMES if name.startswith(("one-", "multi-"))]
UNSUPPORTED = {
    "multi-T-N": ("-W: 'N' cannot be read: train with one of S, A", 16),
    "multi-t1": ("kernel type 1 of SVM-light-TK cannot be read: train with -t 5", 2),
    "multi-t6-u0": ("kernel type 6 of SVM-light-TK", 2),
}
READ = [name for name in NAMES if name not in UNSUPPORTED]
# The program rounds each kernel value to 24 bits, sums feature values in such floats, and prints 8 digits.
MARGIN = 2e-6


def model_path(name):
    return FOLDER / f"{PREFIX}{name}.model"


def test_trees(name):
    file = f"{PREFIX}{name.split('-')[0]}.test.dat" if name in SETS else "trees.test.dat"
    return read_trees(FOLDER / file).X


test_trees.__test__ = False


def read_trees_of(content):
    return read_trees(io.BytesIO(content)).X
