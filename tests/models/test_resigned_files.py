"""Changed files with correct digests: refused with a FormatError, or loaded and used without harm.

tools/fuzz_models.py does the same with far more files, and watches time and memory.
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
SLOW = ("text", "tagger")  # to train and to load
families = pytest.mark.parametrize(
    "family", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in FAMILIES]
)


def write(path, content):
    path.unlink(missing_ok=True)  # the old one may still be mapped
    path.write_bytes(content)
    return path


@families
def test_changed_files(family, tmp_path):
    for specimen in make_family(family):
        parts, rng = Parts.of(specimen.content), random.Random(f"changed {specimen.name}")
        questions = answerable(read(write(tmp_path / "model.uk", specimen.content), family), family)
        for _ in range(CHANGED_EACH):
            said, changed = change(parts, rng)
            path = write(tmp_path / "model.uk", changed.content())
            try:
                model = read(path, family, mmap=rng.random() < 0.5, verify=rng.choice(("lazy", True)))
            except FormatError as error:
                assert "digest" not in str(error) and "SHA-256" not in str(error), said
                continue
            for question in sample_questions(questions, 3, rng):
                ask_one(question, model)


@families
def test_the_same_model_written_in_another_way(family, tmp_path):
    for specimen in make_family(family):
        parts, rng = Parts.of(specimen.content), random.Random(f"same {specimen.name}")
        model = read(write(tmp_path / "model.uk", specimen.content), family)
        first = answerable(model, family)[0]  # has no weight that change_nothing changes
        for _ in range(UNCHANGED_EACH):
            said, content = change_nothing(parts, rng)
            again = read(write(tmp_path / "other.uk", content), family)
            assert ask_one(first, again) == ask_one(first, model), (specimen.name, said)


@pytest.mark.slow
def test_every_kind_of_file_is_in_the_zoo():
    kinds = {Parts.of(one.content).kind for family in FAMILIES for one in make_family(family)}
    assert kinds == set(registry.list_kinds())
