"""Peers that take an hour to train are trained only once."""

from __future__ import annotations

import pytest

from unkernel.data import Treebank

TRAIN, DEV = Treebank.from_words([["a", "b"]]), Treebank.from_words([["c"]])


@pytest.fixture
def udpipe():
    import udpipe

    return udpipe


@pytest.fixture
def learnt(udpipe, monkeypatch, tmp_path):
    """Return the trained models, as the options of each stage."""
    calls = []

    def learn(data, options):
        calls.append(options)
        return str(options).encode()

    monkeypatch.setenv("UNKERNEL_PEERS", str(tmp_path))
    monkeypatch.setattr(udpipe, "_learnt", learn)
    return calls


def test_each_stage_is_trained_on_top_of_those_before(udpipe, learnt):
    made = udpipe.trained(TRAIN, DEV)
    assert learnt[0] == ["", "none", "none"]
    assert "tokenizer" in learnt[1][0] and learnt[1][1:] == ["", "none"]
    assert learnt[2][0] == learnt[2][1] and "tagger" in learnt[2][0] and learnt[2][2] == ""
    assert made.path.read_bytes() == str(learnt[2]).encode()
    assert made.seconds >= 0


def test_a_stage_is_trained_once_for_each_treebank(udpipe, learnt):
    first = udpipe.trained(TRAIN, DEV, until="tokenizer")
    assert udpipe.trained(TRAIN, DEV, until="tokenizer") == first
    assert len(learnt) == 1
    udpipe.trained(TRAIN, DEV, until="tagger")
    assert len(learnt) == 2
    assert udpipe.trained(DEV, TRAIN, until="tokenizer").path != first.path
    assert len(learnt) == 3


def test_a_failed_training_leaves_no_model(udpipe, learnt, monkeypatch, tmp_path):
    def fail(data, options):
        raise KeyboardInterrupt

    monkeypatch.setattr(udpipe, "_learnt", fail)
    with pytest.raises(KeyboardInterrupt):
        udpipe.trained(TRAIN, DEV)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
