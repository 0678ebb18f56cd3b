"""Changed files with correct digests raise a FormatError, or are loaded and answer without a crash.

tools/fuzz_models.py does the same with far more files, and limits time and memory.
"""

from __future__ import annotations

import random

import pytest

from reference.model_zoo import FAMILIES, make_family
from reference.resigned_files import Parts, change, change_nothing
from reference.zoo_questions import answerable, ask_one, read, sample_questions
from unkernel import FormatError
from unkernel.models import registry

pytestmark = pytest.mark.hostile

CHANGED_EACH, UNCHANGED_EACH = 12, 4
SLOW = ("text", "tagger")  # families whose models take long to train and to load
families = pytest.mark.parametrize(
    "family", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in FAMILIES]
)


def write(path, content):
    path.unlink(missing_ok=True)  # a loaded model may still map the previous file
    path.write_bytes(content)
    return path


@families
def test_changed_files(family, tmp_path):
    for specimen in make_family(family):
        parts, rng = Parts.from_bytes(specimen.content), random.Random(f"changed {specimen.name}")
        questions = answerable(read(write(tmp_path / "model.uk", specimen.content), family), family)
        for _ in range(CHANGED_EACH):
            description, changed = change(parts, rng)
            path = write(tmp_path / "model.uk", changed.content())
            try:
                model = read(path, family, mmap=rng.random() < 0.5, verify=rng.choice(("lazy", True)))
            except FormatError as error:
                assert "digest" not in str(error) and "SHA-256" not in str(error), description
                continue
            for question in sample_questions(questions, 3, rng):
                ask_one(question, model)


@families
def test_the_same_model_written_in_another_way(family, tmp_path):
    for specimen in make_family(family):
        parts, rng = Parts.from_bytes(specimen.content), random.Random(f"same {specimen.name}")
        model = read(write(tmp_path / "model.uk", specimen.content), family)
        question = answerable(model, family)[0]  # has no weight that change_nothing changes
        for _ in range(UNCHANGED_EACH):
            description, content = change_nothing(parts, rng)
            rewritten = read(write(tmp_path / "other.uk", content), family)
            assert ask_one(question, rewritten) == ask_one(question, model), (specimen.name, description)


@pytest.mark.slow
def test_every_kind_of_file_is_in_the_zoo():
    kinds = {
        Parts.from_bytes(specimen.content).kind for family in FAMILIES for specimen in make_family(family)
    }
    assert kinds == set(registry.list_kinds())
