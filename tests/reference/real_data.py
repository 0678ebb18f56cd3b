"""Data that is not on every machine: tests that need it are skipped if it is missing."""

from __future__ import annotations

import pytest

from unkernel import datasets


def path(name, part="train"):
    return _or_skip(datasets.path, name, part)


def load(name, part="train"):
    return _or_skip(datasets.load, name, part)


def _or_skip(find, name, part):
    try:
        return find(name, part)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
