"""UDPipe 1 (ufal.udpipe), trained on our treebanks by its default options.

Tokenizer, tagger and parser are trained one after another, each on top of the file of those before it, and
kept in the folder of peers: UDPipe trains for an hour and more, and a second run need not wait for that. The
names of the files have the version of UDPipe and a digest of the treebank.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from harness.processes import LeftOutError, peers_folder
from harness.state import find_version
from unkernel.data import Treebank
from unkernel.data.text.columns import parse_text

PACKAGE = "ufal.udpipe"
STAGES = ("tokenizer", "tagger", "parser")


class Trained(NamedTuple):
    """The file of a model, and the CPU seconds of its training, which are stored beside the file."""

    path: Path
    seconds: float


def trained(train: Treebank, dev: Treebank, *, until: str = "parser") -> Trained:
    """Train a model with all stages up to `until`; `dev` chooses the best epochs."""
    data = [_written(bank) for bank in (train, dev)]
    digest = hashlib.sha256("\0".join(data).encode()).hexdigest()[:12]
    folder = peers_folder() / "udpipe"
    path, seconds = Path(), 0.0
    for number, stage in enumerate(STAGES[: STAGES.index(until) + 1]):
        options = [f"from_model=file:{path}"] * number + [""] + ["none"] * (len(STAGES) - number - 1)
        path = folder / f"{digest}-{stage}-{find_version(PACKAGE)}.udpipe"
        seconds += _kept(path, partial(_learnt, data, options))
    return Trained(path, seconds)


def _kept(path: Path, learn: Callable[[], bytes]) -> float:
    """Train and write a model unless its file exists; return the CPU seconds of the training."""
    spent = path.with_suffix(".json")
    if not spent.exists():
        begin = time.process_time()
        content = learn()
        seconds = time.process_time() - begin
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, content)
        _replace(spent, json.dumps({"CPU seconds": seconds}).encode())
    return float(json.loads(spent.read_bytes())["CPU seconds"])


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)


def _learnt(data: list[str], options: list[str]) -> bytes:
    import ufal.udpipe as peer

    error = peer.ProcessingError()
    model = peer.Trainer.train(
        "morphodita_parsito", *(_sentences(peer, text) for text in data), *options, error
    )
    if error.occurred():
        raise LeftOutError(error.message)
    return bytes(model)


def _written(bank: Treebank) -> str:
    return bank.to_bytes().decode()


def _sentences(peer: Any, text: str) -> Any:
    """Return the sentences of a text as objects of UDPipe."""
    reader = peer.InputFormat.newConlluInputFormat()
    reader.setText(text)
    result = peer.Sentences()
    while reader.nextSentence(sentence := peer.Sentence()):
        result.push_back(sentence)
    return result


def request_parse(
    model: Any, words_or_text: str | Treebank, *, stages: int = len(STAGES)
) -> tuple[Treebank, float]:
    """Return the parse of a text, or of the words of a treebank, by the first stages, and the CPU seconds."""
    import ufal.udpipe as peer

    reader, text = (
        ("tokenize", words_or_text) if isinstance(words_or_text, str) else ("conllu", _written(words_or_text))
    )
    later_stages = [peer.Pipeline.DEFAULT] * (stages - 1) + [peer.Pipeline.NONE] * (len(STAGES) - stages)
    pipeline, error = peer.Pipeline(model, reader, *later_stages, "conllu"), peer.ProcessingError()
    begin = time.process_time()
    answer = pipeline.process(text, error)
    seconds = time.process_time() - begin
    if error.occurred():
        raise LeftOutError(error.message)
    return Treebank._from_text(parse_text(answer.encode(), "conllu")), seconds
