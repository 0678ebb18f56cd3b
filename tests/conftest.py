"""Settings for all tests: none depends on the clock, or on how pytest was started."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

# There are as many test processes as processors, so more threads in each would only compete. Set before numpy
# is imported, and inherited by programs that tests start.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Processes that a shell starts in the background ignore Ctrl-C, and so would programs that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Files of tests need not survive a power failure: waiting for the disk would take a tenth of the time.
os.fsync = lambda _: None  # type: ignore[assignment]

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# Slow tests on a busy machine are not failures. Continuous integration tries the same examples in every run;
# other runs try new ones.
settings.register_profile(
    "any_machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
    max_examples=12,
)
# `make test-all` tries many more: pytest --hypothesis-profile=thorough
settings.register_profile(
    "thorough", settings.get_profile("any_machine"), derandomize=False, max_examples=500
)
settings.load_profile("any_machine")

# The files that take longest for few tests. Processes take whole files from one list, so a long file at its
# end would leave other processes idle. Nothing else depends on this order.
LONGEST = (
    "records/test_pipelines.py",
    "one_answer/test_one_answer.py",
    "cli/test_process.py",
    "distributed/cluster/test_lost_workers.py",
    "distributed/cutplane/test_svc.py",
    "engines/test_compiled_files.py",
    "cli/test_train_large.py",
    "engines/test_tree_reference.py",
    "engines/test_tree_kernels.py",
    "parsing/test_parser_files.py",
    "parsing/arc_eager/test_arc_real_data.py",
    "parsing/arc_eager/test_arc_twins.py",
    "cli/test_parse_run.py",
    "tree/test_svc_errors.py",
    "cutplane/test_checkpoints.py",
    "poly/test_split.py",
    "parsing/test_streams.py",
    "test_demo.py",
    "test_numpy_alone.py",
)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):  # pytest-xdist would start with the files of many tests
        config.option.loadscopereorder = False
    if "UNKERNEL_NO_SKIPS" in os.environ:
        from reference import expected_skips

        config.pluginmanager.register(expected_skips)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the longest files first, then those with many tests."""
    tests = Path(__file__).parent
    places = {tests / name: place for place, name in enumerate(LONGEST)}
    counts = Counter(item.path for item in items)
    items.sort(key=lambda item: (places.get(item.path, len(places)), -counts[item.path]))
