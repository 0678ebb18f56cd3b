"""``unkernel verify``: undamaged files, damaged files, files of old versions, and signatures."""

from __future__ import annotations

import numpy as np
import pytest

import unkernel
from reference import damage
from unkernel.models import container


def flip_the_last_byte(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.unlink()
    path.write_bytes(bytes(content))


def test_whole_and_damaged_files(run, model_file, people_model, tmp_path):
    outcome = run("verify", model_file, people_model)
    assert outcome.code == 0, outcome.err
    assert outcome.out.count(": undamaged, ") == 2
    damaged = tmp_path / "broken.uk"
    damaged.write_bytes(model_file.read_bytes())
    flip_the_last_byte(damaged)
    outcome = run("verify", people_model, damaged)
    assert outcome.code == 1
    assert f"{damaged}: array '" in outcome.out and "is damaged" in outcome.out
    result = run("verify", damaged, people_model, "--json")
    assert result.code == 1
    assert [bool(file["problem"]) for file in result.json["files"]] == [True, False]
    assert len(result.json["files"][1]["sha256"]) == 64
    assert run("verify", model_file, "-q").out == ""


def test_files_of_earlier_versions(run, model_file, tmp_path):
    without_digests = tmp_path / "old.uk"
    without_digests.write_bytes(damage.remove_digests(model_file.read_bytes()))
    result = run("verify", without_digests)
    assert result.code == 1
    assert "has no digests: load it and save it again" in result.out
    assert "without digests" in run("inspect", without_digests).out
    assert "without digests" not in run("inspect", model_file).out
    assert run("inspect", model_file, "--json").json["digests"] is True


def test_tables_that_contradict_the_model_are_found(run, people_model, tmp_path):
    kind, arrays, settings = container.read(people_model, mmap=False)
    weights = [name for name in arrays if ".engine." in name and arrays[name].dtype == np.float64]
    contradictory = tmp_path / "other.uk"
    container.write(contradictory, kind, arrays | {name: -arrays[name] for name in weights}, settings)
    result = run("verify", people_model, contradictory)
    assert result.code == 1
    assert f"{people_model}: undamaged" in result.out
    assert (
        f"{contradictory}: the compiled tables and the model beside them give different scores" in result.out
    )


def test_files_that_are_not_models_fail_verification(run, train_file, tmp_path):
    result = run("verify", train_file)
    assert result.code == 1
    assert "not a model file" in result.out


def test_unreadable_files_do_not_hide_damage_in_others(run, model_file, tmp_path):
    missing, damaged = tmp_path / "none.uk", tmp_path / "broken.uk"
    result = run("verify", missing, tmp_path, model_file)
    assert result.code == 2
    assert f"{missing}: cannot be read: No such file" in result.out
    assert f"{tmp_path}: cannot be read: Is a directory" in result.out
    assert f"{model_file}: undamaged" in result.out
    damaged.write_bytes(model_file.read_bytes())
    flip_the_last_byte(damaged)
    result = run("verify", missing, damaged)
    assert result.code == 1
    assert f"{damaged}: array '" in result.out


def test_files_replaced_during_verification_are_reported(
    run, model_file, people_model, tmp_path, monkeypatch
):
    path = tmp_path / "model.uk"
    path.write_bytes(model_file.read_bytes())

    def load_another(loaded_path, **_):
        (tmp_path / "new.uk").write_bytes(people_model.read_bytes())
        (tmp_path / "new.uk").replace(loaded_path)
        return unkernel.load(loaded_path)

    monkeypatch.setattr("unkernel.cli.commands.verify.load", load_another)
    result = run("verify", path)
    assert result.code == 1
    assert "was replaced while it was verified" in result.out


def test_signatures(run, model_file, tmp_path):
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    key = tmp_path / "public.pem"
    key.write_bytes(
        private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    result = run("verify", model_file, "--public-key", key)
    assert result.code == 1
    assert "is not signed: there is no" in result.out
    signature = model_file.with_name(model_file.name + ".sig")
    signature.write_bytes(private.sign(model_file.read_bytes()))
    result = run("verify", model_file, "--public-key", key)
    assert result.code == 0
    assert "signature matches" in result.out
    signature.write_bytes(Ed25519PrivateKey.generate().sign(model_file.read_bytes()))
    result = run("verify", model_file, "--public-key", key)
    assert result.code == 1
    assert "does not match its signature" in result.out
    key.write_text("no key")
    assert "not an Ed25519 public key" in run("verify", model_file, "--public-key", key).error()
