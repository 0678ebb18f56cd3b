"""The models of other programs in tests/golden, and the predictions of these programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unkernel import read_svmlight

FOLDER = Path(__file__).resolve().parents[1] / "golden"
NAMES = sorted(path.stem for path in FOLDER.glob("*.model") if not path.stem.startswith("svmlight-tk"))


def model_path(name):
    return FOLDER / f"{name}.model"


def content(name):
    return model_path(name).read_bytes()


def test_rows(name):
    """Return the rows to which the margins of a model belong."""
    multi = "multi" in name or "svr" in name
    return read_svmlight(FOLDER / f"{'multi' if multi else 'binary'}.test.svm").X


def margins(name):
    return np.loadtxt(FOLDER / f"{name}.margins", ndmin=2)


test_rows.__test__ = False
