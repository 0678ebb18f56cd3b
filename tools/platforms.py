"""Compile and test unkernel for other compilers, systems and Pythons, and record what ran.

    python tools/platforms.py suite              # all fast tests on this machine, after `make test`
    python tools/platforms.py clang-libcxx       # Clang and its standard library: core, tests, extension
    python tools/platforms.py other-char-sign    # char unsigned where it is signed here, or the reverse
    python tools/platforms.py musl               # static programs for musl; needs `pip install ziglang`
    python tools/platforms.py windows            # compiled and linked for Windows; needs ziglang, too
    python tools/platforms.py pythons python3.12 python3.13     # the same wheel on other Pythons
    python tools/platforms.py other-architecture # aarch64 on x86-64 and the other way round, under emulation

Each command exits with 0 on success, and writes docs/trust/platforms/<target>.json: the commit, the date, the
compiler, the compiled parts, and the tests that passed and failed. tools/platforms_page.py makes
docs/trust/platforms.md from these files, so the page lists only what ran. Builds stay in build/platforms.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "platforms"
RESULTS = ROOT / "docs" / "trust" / "platforms"
MACHINE = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())

# -O1 halves the time of compilation and changes neither warnings nor results. Assertions stay enabled.
NATIVE = (
    *("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1", "-DUNKERNEL_TESTS=ON"),
    *("-DUNKERNEL_DEVELOPER=ON", "-DUNKERNEL_UNITY=ON"),
)
FAST = "not slow and not docs and not hostile"
# Files, training, engines, records and models of earlier versions.
PYTHON_TESTS = (
    *("tests/test_package.py", "tests/data/rows/test_read_svmlight.py", "tests/data/test_atomic_write.py"),
    *("tests/engines/test_golden_engines.py", "tests/engines/test_score_one.py"),
    *("tests/engines/test_daemon_threads.py", "tests/models/test_golden_files.py", "tests/poly/test_svc.py"),
    *(
        "tests/records/test_binding.py",
        "tests/records/test_dates.py",
        "tests/records/test_record_classifier.py",
    ),
)
# Emulated tests take ten times as long, so only tests of readers of bytes and of exact numbers run.
EMULATED_TESTS = (
    *("tests/models/test_golden_files.py", "tests/parsing/test_golden_parsers.py"),
    *("tests/engines/test_golden_engines.py", "tests/engines/test_tree_golden.py"),
    *("tests/serve/test_plain_json.py", "tests/records/test_encoder.py"),
)


class FailedError(RuntimeError):
    """A step that failed."""


@dataclass
class Result:
    """Record of one run, in the form of the target's file."""

    target: str
    commit: str
    date: str
    machine: str
    compiler: str = ""
    python: str = ""
    compiled: list[str] = field(default_factory=list)
    native_tests: dict[str, int] | None = None
    python_tests: dict[str, int] | None = None
    left_out: dict[str, str] = field(default_factory=dict)  # tests that cannot succeed there, with reasons
    seconds: dict[str, int] = field(default_factory=dict)
    verdict: str = "failed"
    reason: str = ""


# --- Steps --------------------------------------------------------------------------------------------


def run(command: Sequence[str | Path], log: Path, environment: dict[str, str] | None = None) -> str:
    """Run a command, append its output to a log, and return it; a FailedError shows the end of the output."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a+", encoding="utf-8", errors="replace") as file:
        print("$", *command, file=file, flush=True)
        begin = file.tell()
        completed = subprocess.run(
            [str(part) for part in command],
            env=os.environ | (environment or {}),
            cwd=ROOT,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
        file.seek(begin)
        message = file.read()
    if completed.returncode != 0:
        words = " ".join(map(str, command[:4])).replace(f"{ROOT}/", "")
        end = f"{log.relative_to(ROOT)} ends:\n{message[-4000:]}"
        raise FailedError(f"{words} ended with {completed.returncode}; {end}")
    return message


def new_result(target: str) -> Result:
    """Return a result with the commit and the date; a plus stands for uncommitted changes."""
    commit = run_command("git", "-C", str(ROOT), "rev-parse", "HEAD")[:12]
    changes = ("status", "--porcelain", "--untracked-files=no", "--", ":!docs/trust")
    changed = run_command("git", "-C", str(ROOT), *changes)
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Result(target, commit + ("+" if changed else ""), day, MACHINE)


def run_command(*command: str) -> str:
    """Return the output of a command."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def first_line(*command: str) -> str:
    """Return the first line of a command's output, such as the version of a compiler."""
    return run_command(*command).splitlines()[0].strip()


def compile_native(result: Result, options: Sequence[str], programs: Sequence[str] = ("all",)) -> Path:
    """Configure and compile in the target's own folder; return that folder."""
    folder = BUILD / result.target
    log = folder / "log.txt"
    log.unlink(missing_ok=True)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    start = time.monotonic()
    run(["cmake", "-S", ROOT, "-B", folder, *generator, *NATIVE, *options], log)
    run(["cmake", "--build", folder, "--target", *programs, "--parallel", jobs()], log)
    result.seconds["compiling"] = round(time.monotonic() - start)
    return folder


def jobs() -> str:
    return os.environ.get("JOBS") or str(os.cpu_count() or 1)


def run_native_tests(result: Result, folder: Path | None = None) -> None:
    """Run the native tests in the target's folder or another one; record how many passed."""
    log = BUILD / result.target / "log.txt"
    start = time.monotonic()
    try:
        message = run(["ctest", "--test-dir", folder or log.parent, "--output-on-failure", "-j", jobs()], log)
    except FailedError as error:
        result.native_tests = read_ctest_counts(str(error))
        raise
    result.native_tests = read_ctest_counts(message)
    result.seconds["native tests"] = round(time.monotonic() - start)


def read_ctest_counts(output: str) -> dict[str, int]:
    """Return how many tests passed and failed, from the last lines of ctest."""
    search = re.search(r"(\d+) tests? failed out of (\d+)", output)
    if search is None:
        raise FailedError("ctest does not say how many tests ran")
    failed, total = int(search[1]), int(search[2])
    return {"passed": total - failed, "failed": failed}


def run_python_tests(
    result: Result,
    python: Path | str,
    environment: dict[str, str] | None = None,
    tests: Sequence[str] = PYTHON_TESTS,
) -> None:
    """Run the Python tests, or a part of them on other platforms; add up their numbers."""
    report = BUILD / result.target / "pytest.xml"
    start = time.monotonic()
    left_out = [f"--deselect={test}" for test in result.left_out]
    command = [python, "-m", "pytest", "-q", "-m", FAST, "--junitxml", report, *left_out, *tests]
    try:
        run(command, BUILD / result.target / "log.txt", environment)
    finally:
        if report.exists():
            counts = read_pytest_counts(report.read_text(encoding="utf-8"))
            previous = result.python_tests or dict.fromkeys(counts, 0)
            result.python_tests = {name: previous[name] + count for name, count in counts.items()}
    spent = round(time.monotonic() - start)
    result.seconds["Python tests"] = result.seconds.get("Python tests", 0) + spent


def read_pytest_counts(report: str) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped, from a JUnit report."""
    counts = re.findall(r'(errors|failures|skipped|tests)="(\d+)"', report)
    result = {name: int(count) for name, count in counts}
    failed = result["errors"] + result["failures"]
    passed = result["tests"] - failed - result["skipped"]
    return {"passed": passed, "failed": failed, "skipped": result["skipped"]}


def package_beside(folder: Path) -> dict[str, str]:
    """Copy the package next to a build's extension; return the environment in which Python finds it."""
    package = folder / "python" / "unkernel"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(
        ROOT / "src" / "unkernel", package, ignore=shutil.ignore_patterns("_core.*", "__pycache__")
    )
    (extension,) = folder.glob("_core.*.so")
    shutil.copy(extension, package)
    return {"PYTHONPATH": str(package.parent)}


# --- Targets ------------------------------------------------------------------------------------------


def check_clang_libcxx(result: Result, _arguments: Sequence[str]) -> None:
    """Check Clang with libc++, as on macOS. nanobind's runtime is compiled in, as it requires."""
    compiler = os.environ.get("CLANG", "clang++-19")
    options = ["-DCMAKE_CXX_FLAGS=-stdlib=libc++", "-DUNKERNEL_BACKEND=OFF"]
    result.compiler = f"{first_line(compiler, '--version')}, libc++"
    result.left_out = {
        "tests/test_package.py::test_the_extension_keeps_to_the_stable_abi": "nanobind's runtime is inside",
        "tests/engines/test_daemon_threads.py": "glibc unwinds by libgcc, libc++ by libunwind",
    }
    check_extension(result, [f"-DCMAKE_CXX_COMPILER={compiler}", *options])


def check_other_char_sign(result: Result, _arguments: Sequence[str]) -> None:
    """Check with `char` unsigned where this machine's `char` is signed, or the reverse."""
    compiler = os.environ.get("CXX", "g++")
    result.compiler = f"{first_line(compiler, '--version')}, UNKERNEL_OTHER_CHAR_SIGN"
    check_extension(result, [f"-DCMAKE_CXX_COMPILER={compiler}", "-DUNKERNEL_OTHER_CHAR_SIGN=ON"])


def check_extension(result: Result, options: Sequence[str]) -> None:
    """Compile everything for this Python, and run native tests and a part of the Python tests."""
    result.python = platform.python_version()
    folder = compile_native(result, [*options, f"-DPython_EXECUTABLE={sys.executable}"])
    result.compiled = ["core", "native tests", "extension"]
    run_native_tests(result)
    run_python_tests(result, sys.executable, package_beside(folder))


def check_musl(result: Result, arguments: Sequence[str]) -> None:
    """Build static programs for musl; tests run if the processor is this machine's, or MACHINE is given."""
    machine = arguments[0] if arguments else MACHINE
    if machine != MACHINE:
        result.target += f"-{machine}"
    compile_native(result, [*zig_options(result, f"{machine}-linux-musl", "Linux"), "-DUNKERNEL_PYTHON=OFF"])
    result.compiled = ["core", "native tests"]
    if machine == MACHINE:
        run_native_tests(result)


def check_windows(result: Result, _arguments: Sequence[str]) -> None:
    """Compile and link programs for Windows. They run under Wine, on x86-64, if it is installed."""
    options = zig_options(result, "x86_64-windows-gnu", "Windows")
    wine = shutil.which("wine") if MACHINE == "x86_64" else None
    if wine:
        options.append(f"-DCMAKE_CROSSCOMPILING_EMULATOR={wine}")
    compile_native(result, [*options, "-DUNKERNEL_PYTHON=OFF"])
    result.compiled = ["core", "native tests"]
    if wine:
        # The first program creates Wine's folder; several programs at the same time would conflict.
        run([wine, "cmd", "/c", "exit"], BUILD / result.target / "log.txt")
        run_native_tests(result)


def check_pythons(result: Result, arguments: Sequence[str]) -> None:
    """Build one wheel with this Python; install and test it in a fresh environment of each Python."""
    pythons = [path for name in arguments or default_pythons() if (path := shutil.which(name))]
    if not pythons:
        raise FailedError("there is no other Python: name some, or set PYTHONS")
    folder = BUILD / result.target
    log = folder / "log.txt"
    shutil.rmtree(folder, ignore_errors=True)
    pip = ["-m", "pip", "--disable-pip-version-check", "-q"]
    run([sys.executable, *pip, "wheel", ROOT, "--no-deps", "--no-build-isolation", "-w", folder], log)
    (wheel,) = folder.glob("*.whl")
    versions = []
    for python in pythons:
        version = first_line(python, "-c", "import platform; print(platform.python_version())")
        environment = folder / version
        run([python, "-m", "venv", environment], log)
        inside = environment / "bin" / "python"
        needed = ["pytest", "hypothesis", "pandas", "pyarrow"]
        run([inside, *pip, "install", f"{wheel}", *needed], log)
        run_python_tests(result, inside)
        versions.append(version)
        result.python = ", ".join(versions)
    result.compiled = [wheel.name]


def default_pythons() -> list[str]:
    """Return the Pythons in the variable PYTHONS, or their usual names."""
    return os.environ.get("PYTHONS", "python3.12 python3.13 python3.14").split()


def zig_options(result: Result, triple: str, system: str) -> list[str]:
    """Create zig's wrapper programs; return CMake's options for compiling with zig for another system."""
    zig = os.environ.get("ZIG", f"{sys.executable} -m ziglang")
    result.compiler = f"zig {first_line(*zig.split(), 'version')} (Clang, libc++), {triple}"
    folder = BUILD / result.target / "zig"
    folder.mkdir(parents=True, exist_ok=True)
    for name, tool in {"clang++": "c++", "ar": "ar", "ranlib": "ranlib", "rc": "rc"}.items():
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {zig} {tool} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    machine = triple.partition("-")[0]
    quiet = "-Wno-macro-redefined"  # zig configures the checks of its standard library itself
    return [
        *(f"-DCMAKE_CXX_COMPILER={folder}/clang++", f"-DCMAKE_CXX_FLAGS=-target {triple} {quiet}"),
        *(f"-DCMAKE_AR={folder}/ar", f"-DCMAKE_RANLIB={folder}/ranlib", f"-DCMAKE_RC_COMPILER={folder}/rc"),
        *(f"-DCMAKE_SYSTEM_NAME={system}", f"-DCMAKE_SYSTEM_PROCESSOR={machine}"),
    ]


def check_suite(result: Result, _arguments: Sequence[str]) -> None:
    """Run the whole suite with the installed package, like `make test`."""
    result.target += f"-{MACHINE}"
    result.compiler = first_line(os.environ.get("CXX", "g++"), "--version")
    result.python = platform.python_version()
    log = BUILD / result.target / "log.txt"
    log.unlink(missing_ok=True)
    package = ROOT / "build" / "package"
    run(["cmake", "--build", package, "--target", "native_tests", "--parallel", jobs()], log)
    result.compiled = ["core", "native tests", "extension"]
    run_native_tests(result, package)
    run_python_tests(result, sys.executable, tests=["tests", "-n", jobs(), "--dist", "loadfile"])


def check_other_architecture(result: Result, arguments: Sequence[str]) -> None:
    """Check the other architecture under emulation; scores of models must have the same bits on both."""
    import other_architecture as other

    result.target += f"-{other.OTHER.processor}"
    result.compiler = (
        f"{first_line(other.OTHER.compiler, '--version')}, {first_line(other.OTHER.emulator, '--version')}"
    )
    start = time.monotonic()
    other.prepare()
    result.seconds["compiling"] = round(time.monotonic() - start)
    result.compiled = ["core", "native tests", "extension"]
    result.python = first_line(str(other.PYTHON), "-c", "import platform; print(platform.python_version())")
    other.compare_answers()
    run_native_tests(result, other.BUILD)
    run_python_tests(result, other.PYTHON, {"OPENBLAS_NUM_THREADS": "1"}, arguments or EMULATED_TESTS)


# For a new target, add a function here, and a line in the table of tools/platforms_page.py.
TARGETS: dict[str, Callable[[Result, Sequence[str]], None]] = {
    "suite": check_suite,
    "clang-libcxx": check_clang_libcxx,
    "other-char-sign": check_other_char_sign,
    "musl": check_musl,
    "windows": check_windows,
    "pythons": check_pythons,
    "other-architecture": check_other_architecture,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a target and write its file; return 0 on success."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument(
        "rest", nargs="*", help="a machine for musl; Pythons for pythons; tests for other-architecture"
    )
    options = parser.parse_args(arguments)
    result = new_result(options.target)
    try:
        TARGETS[options.target](result, options.rest)
        result.verdict = "passed"
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        result.reason = str(error).partition(";")[0].partition("\n")[0]
        print(error, file=sys.stderr)
    write(result)
    print(f"{result.target}: {result.verdict}")
    return 0 if result.verdict == "passed" else 1


def write(result: Result) -> None:
    """Write the file of a target, and the page generated from all files."""
    from platforms_page import PAGE, page

    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(result), indent=2, ensure_ascii=False)
    (RESULTS / f"{result.target}.json").write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
