"""Build unkernel for another architecture than this machine's, and run it under emulation.

On x86-64 the other architecture is aarch64, and the other way round. A cross compiler builds the extension
and the native tests; qemu-user runs them. Python for the other architecture comes from Debian's packages, and
numpy, scipy and scikit-learn come from wheels; both are unpacked into build/other, and nothing is installed
on this machine. Packages required on Debian and Ubuntu: g++-aarch64-linux-gnu (or g++-x86-64-linux-gnu),
qemu-user, cmake and ninja-build.

`python tools/platforms.py other-architecture` runs the tests. After that, build/other/python is a Python of
the other architecture with the package: build/other/python -m pytest tests/records
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from requirements import requirements

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "build" / "other"
# The Python of Debian 12, without a dependency on its version.
DEBIAN_PACKAGES = ("python3", "libstdc++6", "libgomp1", "tzdata", "media-types")
# From the oldest C library of wheels to the one of Debian 12.
MANYLINUX = (
    "manylinux1",
    "manylinux2010",
    "manylinux2014",
    *(f"manylinux_2_{minor}" for minor in range(5, 37)),
)
# Scores of one model file are the same bits everywhere. Training also calls functions of the C library, such
# as logarithms, whose last digits may differ between architectures.
TRAINED_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Architecture:
    """The names of one architecture in CMake, Debian and qemu."""

    processor: str
    debian: str

    @property
    def compiler(self) -> str:
        return f"{self.processor}-linux-gnu-g++"

    @property
    def emulator(self) -> str:
        return f"qemu-{self.processor}"


ARCHITECTURES = {
    "x86_64": Architecture("x86_64", "amd64"),
    "aarch64": Architecture("aarch64", "arm64"),
}
OTHER_OF = {"x86_64": "aarch64", "aarch64": "x86_64", "arm64": "x86_64"}


def other_architecture() -> Architecture:
    machine = platform.machine()
    if machine not in OTHER_OF:
        raise RuntimeError(
            f"this machine is {machine}: only x86_64 and aarch64 have an other architecture here"
        )
    return ARCHITECTURES[OTHER_OF[machine]]


OTHER = other_architecture()
ROOT = FOLDER / "root"
PACKAGES = FOLDER / "packages"
BUILD = FOLDER / "build"
PYTHON = FOLDER / "python"


def run(command: Sequence[str | Path], log: Path | None = None, **options: object) -> None:
    """Run a command; its output goes to `log` and is shown only if it fails."""
    words = [str(word) for word in command]
    if log is None:
        completed = subprocess.run(words, check=False, **options)  # type: ignore[call-overload]
    else:
        with log.open("ab") as out:
            completed = subprocess.run(words, check=False, stdout=out, stderr=out, **options)  # type: ignore[call-overload]
    if completed.returncode != 0:
        if log is not None:
            sys.stderr.write(log.read_text(encoding="utf-8", errors="replace")[-8000:])
        raise RuntimeError(f"failed ({completed.returncode}): {' '.join(words)}")


def check_tools() -> None:
    missing = [
        tool
        for tool in (OTHER.compiler, OTHER.emulator, "cmake", "ninja", "apt-get")
        if not shutil.which(tool)
    ]
    if missing:
        compiler = f"g++-{OTHER.processor.replace('_', '-')}-linux-gnu"
        packages = f"{compiler} qemu-user cmake ninja-build"
        raise RuntimeError(f"not installed: {', '.join(missing)} (Debian and Ubuntu: apt install {packages})")


def unpack_debian_packages() -> None:
    """Fill `ROOT` with a Python and the libraries that it needs, using separate package lists."""
    if (ROOT / "done").exists():
        return
    print(f"unpacking Python for {OTHER.processor} ...", flush=True)
    lists = FOLDER / "apt"
    for folder in (lists / "lists" / "partial", lists / "cache" / "archives" / "partial", ROOT):
        folder.mkdir(parents=True, exist_ok=True)
    (lists / "status").touch()
    settings = {
        "APT::Architecture": OTHER.debian,
        "APT::Architectures": OTHER.debian,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Dir::State::status": lists / "status",
        "Dir::State::lists": lists / "lists",
        "Dir::Cache": lists / "cache",
        "Debug::NoLocking": "true",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    log = FOLDER / "apt.txt"
    run(["apt-get", *options, "-q", "update"], log)
    run(["apt-get", *options, "-q", "-y", "--download-only", "install", *DEBIAN_PACKAGES], log)
    for package in sorted((lists / "cache" / "archives").glob("*.deb")):
        run(["dpkg-deb", "-x", package, ROOT], log)
    # Absolute links in packages, such as the loader's, would lead out of `ROOT`.
    for link in ROOT.rglob("*"):
        if link.is_symlink() and link.readlink().is_absolute():
            target = ROOT / link.readlink().relative_to("/")
            link.unlink()
            link.symlink_to(os.path.relpath(target, link.parent))
    (ROOT / "done").touch()


def python_program() -> Path:
    """Return the single Python of `ROOT`."""
    result = sorted(path for path in (ROOT / "usr" / "bin").glob("python3.*") if path.suffix[1:].isdigit())
    if not result:
        raise RuntimeError(f"no Python in {ROOT}: remove {FOLDER} and begin again")
    return result[-1]


def install_wheels() -> None:
    if (PACKAGES / "done").exists():
        return
    print(f"installing wheels for {OTHER.processor} ...", flush=True)
    platforms = [word for name in MANYLINUX for word in ("--platform", f"{name}_{OTHER.processor}")]
    version = python_program().name.removeprefix("python")
    needed = [*requirements("dependencies"), *requirements("test")]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    target = ["--target", PACKAGES, "--upgrade", "--only-binary=:all:", "--implementation", "cp"]
    run([*pip, *target, "--python-version", version, *platforms, *needed], FOLDER / "pip.txt")
    (PACKAGES / "done").touch()


def write_python() -> None:
    """Write the program `PYTHON`: Python of the other architecture, with its packages, under emulation."""
    home = ROOT / "usr"
    PYTHON.write_text(
        "#!/bin/sh\n"
        f'export PYTHONHOME={home} PYTHONPATH="{FOLDER / "site"}:{PACKAGES}:$PYTHONPATH"\n'
        f'exec {OTHER.emulator} -cpu max -L {ROOT} {python_program()} "$@"\n',
        encoding="utf-8",
    )
    PYTHON.chmod(0o755)
    # Tests start sys.executable, which must be the emulated Python, too.
    site = FOLDER / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(
        f"import sys\nsys.executable = {str(PYTHON)!r}\n", encoding="utf-8"
    )


def build() -> None:
    """Cross-compile the extension and the native tests."""
    log = FOLDER / "build.txt"
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count()))
    print(f"compiling for {OTHER.processor} ...", flush=True)
    settings = {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": OTHER.processor,
        "CMAKE_CXX_COMPILER": OTHER.compiler,
        # The emulator's own memory counts as the program's, so fuzz targets must not limit it.
        "CMAKE_CROSSCOMPILING_EMULATOR": f"{OTHER.emulator};-cpu;max;-L;{ROOT};-E;UNKERNEL_MEMORY_LIMIT=0",
        "UNKERNEL_TESTS": "ON",
        "UNKERNEL_DEVELOPER": "ON",
        "UNKERNEL_UNITY": "ON",
        "Python_EXECUTABLE": sys.executable,
        # The headers of this machine's Python suffice: the extension uses the stable ABI, and both
        # architectures are 64-bit and little-endian.
        "Python_INCLUDE_DIR": sysconfig.get_path("include"),
    }
    defines = [f"-D{name}={value}" for name, value in settings.items()]
    run(["cmake", "-S", PROJECT, "-B", BUILD, "-G", "Ninja", *defines], log)
    run(["cmake", "--build", BUILD, "--parallel", jobs], log)
    site = FOLDER / "site" / "unkernel"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(
        PROJECT / "src" / "unkernel", site, ignore=shutil.ignore_patterns("__pycache__", "_core*.so")
    )
    shutil.copy(BUILD / "_core.abi3.so", site)


def prepare() -> None:
    """Unpack a Python with its packages, and compile for it."""
    check_tools()
    FOLDER.mkdir(parents=True, exist_ok=True)
    unpack_debian_packages()
    install_wheels()
    write_python()
    build()


def largest_difference(scores: dict[str, list[str]], other_scores: dict[str, list[str]]) -> float:
    """Return the largest difference of two sets of scores, relative to the larger of 1 and the score."""
    pairs = [
        (float.fromhex(score), float.fromhex(other_score))
        for name in scores
        for score, other_score in zip(scores[name], other_scores[name], strict=True)
    ]
    return max(abs(score - other_score) / max(1.0, abs(score)) for score, other_score in pairs)


def compare_answers() -> None:
    """Score golden models and models trained from a seed on both architectures, and compare the scores."""
    script = [PROJECT / "tests" / "campaigns" / "architectures.py"]
    answers = []
    for python, name in ((Path(sys.executable), "native"), (PYTHON, "emulated")):
        target = FOLDER / f"{name}.json"
        run(
            [python, *script, target],
            cwd=PROJECT / "tests",
            env={**os.environ, "PYTHONPATH": str(PROJECT / "tests")},
        )
        answers.append(json.loads(target.read_text(encoding="utf-8")))
    native, emulated = answers
    failed = False
    for kind, tolerance in (("stored", 0.0), ("trained", TRAINED_TOLERANCE)):
        if native[kind].keys() != emulated[kind].keys():
            raise RuntimeError(f"the two machines scored different {kind} models")
        for name in native[kind]:
            difference = largest_difference({name: native[kind][name]}, {name: emulated[kind][name]})
            if difference > tolerance:
                print(f"{kind} model {name}: scores differ by {difference:.3g}; allowed: {tolerance:g}")
                failed = True
        equal = sum(native[kind][name] == emulated[kind][name] for name in native[kind])
        largest = largest_difference(native[kind], emulated[kind])
        print(
            f"{kind} models: {len(native[kind])}; the same bits on {platform.machine()} and "
            f"{OTHER.processor}: {equal}; largest difference {largest:.3g}"
        )
    if failed:
        raise RuntimeError("the scores of models differ between the architectures")
