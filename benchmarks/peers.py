"""List the peers of the benchmarks with their versions and sources, and install or build them.

    python benchmarks/peers.py                # list all peers, and whether they are installed
    python benchmarks/peers.py --install      # install wheels, and download and build programs

Wheels come from the package index that pip uses. Programs are put into the folder that UNKERNEL_PEERS names
(by default build/peers), where the benchmarks look for them. If a program has no release that a script could
build, the list gives its source: build it by hand, and put it into this folder under the listed name. Peers
that are missing are left out of the benchmarks, and the page of results lists them. Observe the licences:
SVMlight and the programs based on it are for scientific use only.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.processes import peers_folder
from harness.state import find_version


@dataclass(frozen=True)
class Wheel:
    """A package of the index."""

    name: str
    distribution: str
    home: str

    def state(self) -> str:
        return find_version(self.distribution) or "not installed"

    def install(self) -> str:
        if find_version(self.distribution):
            return "is here"
        command = [sys.executable, "-m", "pip", "install", "-q", self.distribution]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        return "installed" if not completed.returncode else f"left out: {last_line(completed.stderr)}"


@dataclass(frozen=True)
class Program:
    """One or more programs, built from source.

    Attributes
    ----------
    programs : tuple of str
        Paths in the folder of peers.
    archive : str
        Address of a tar file that `make` builds; empty if the program must be built by hand.
    """

    name: str
    version: str
    home: str
    programs: tuple[str, ...]
    archive: str = ""

    def state(self) -> str:
        is_built = all((peers_folder() / program).exists() for program in self.programs)
        return self.version if is_built else f"not built ({self.version})"

    def install(self) -> str:
        if all((peers_folder() / program).exists() for program in self.programs):
            return "is here"
        if not self.archive:
            return f"left out: build {' and '.join(self.programs)} by hand from {self.home}"
        try:
            return f"built; the archive has SHA-256 {self._build()}"
        except (OSError, subprocess.CalledProcessError, tarfile.TarError) as error:
            return f"left out: {last_line(str(error))}"

    def _build(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            packed = Path(folder, "archive")
            with urllib.request.urlopen(self.archive, timeout=60) as source, packed.open("wb") as target:
                shutil.copyfileobj(source, target)
            with tarfile.open(packed) as archive:
                archive.extractall(folder, filter="data")
            makefile = min(Path(folder).rglob("[Mm]akefile"), key=lambda path: len(path.parts))
            subprocess.run(["make", "-C", makefile.parent], capture_output=True, check=True)
            for program in self.programs:
                target_path = peers_folder() / program
                target_path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(makefile.parent / target_path.name, target_path)
            return hashlib.sha256(packed.read_bytes()).hexdigest()


CORNELL = "https://www.cs.cornell.edu/people/tj/svm_light"
CORNELL_FILES = "https://osmot.cs.cornell.edu"
PEERS: tuple[Wheel | Program, ...] = (
    Wheel("LIBLINEAR", "liblinear-official", "https://www.csie.ntu.edu.tw/~cjlin/liblinear"),
    Wheel("LIBSVM", "libsvm-official", "https://www.csie.ntu.edu.tw/~cjlin/libsvm"),
    Wheel("scikit-learn", "scikit-learn", "https://scikit-learn.org"),
    Wheel("Vowpal Wabbit", "vowpalwabbit", "https://vowpalwabbit.org"),
    Wheel("river", "river", "https://riverml.xyz"),
    Wheel("LightGBM", "lightgbm", "https://github.com/microsoft/LightGBM"),
    Wheel("XGBoost", "xgboost-cpu", "https://github.com/dmlc/xgboost"),
    Wheel("CatBoost", "catboost", "https://github.com/catboost/catboost"),
    Wheel("EBM", "interpret-core", "https://github.com/interpretml/interpret"),
    Wheel("CRFsuite", "python-crfsuite", "https://www.chokkan.org/software/crfsuite"),
    Wheel("ONNX Runtime", "onnxruntime", "https://onnxruntime.ai"),
    Wheel("skl2onnx", "skl2onnx", "https://github.com/onnx/sklearn-onnx"),
    Wheel("nltk", "nltk", "https://www.nltk.org"),
    Wheel("UDPipe", "ufal.udpipe", "https://ufal.mff.cuni.cz/udpipe/1"),
    Program(
        "SVMperf", "3.00", f"{CORNELL}/svm_perf.html", ("svm_perf_learn",),
        f"{CORNELL_FILES}/svm_perf/current/svm_perf.tar.gz",
    ),
    Program(
        "SVMrank", "1.00", f"{CORNELL}/svm_rank.html", ("svm_rank_learn",),
        f"{CORNELL_FILES}/svm_rank/current/svm_rank.tar.gz",
    ),
    Program(
        "SVM-light-TK", "1.5", "https://github.com/aseveryn/SVMTK-Multiclass-Classifier",
        ("svm-light-tk/svm_learn", "svm-light-tk/svm_classify"),
    ),
    Program("pecco", "r1875", "https://github.com/lighttransport/jdepp-python", ("pecco-bench",)),
    Program("opal", "r1934", "https://github.com/lighttransport/jdepp-python", ("opal",)),
    Program("LIBLINEAR-poly2", "2.01", "https://github.com/cttsai/ner", ("liblinear-poly2-train",)),
    Program("WHInter", "2018", "https://github.com/marineLM/WHInter", ("whinter",)),
    Program("libocas", "0.97", "https://cmp.felk.cvut.cz/~xfrancv/ocas/html", ("rivals.py",)),
)  # fmt: skip


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason was given"])[-1]


def main(words: Sequence[str] | None = None, peers: Sequence[Wheel | Program] = PEERS) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--install", action="store_true", help="install or build what can be had")
    options = parser.parse_args(words)
    for peer in peers:
        status = peer.install() if options.install else peer.state()
        print(f"{peer.name:16} {status:28} {'' if options.install else peer.home}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
