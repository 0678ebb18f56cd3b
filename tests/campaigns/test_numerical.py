"""The first part of the campaign of generated problems; `make campaign-numerical` runs all of it."""

from __future__ import annotations

import pytest

from campaigns import numerical


@pytest.mark.filterwarnings("ignore")
def test_certificates_of_generated_problems_hold():
    assert [result for result in numerical.run(150) if result[2]] == []
