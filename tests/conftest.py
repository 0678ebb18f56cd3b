"""What holds for all tests: none depends on the clock, or on how pytest was started."""

from __future__ import annotations

import os
import signal

# Tests run in as many processes as there are processors: more threads in each would only wait for each other.
# Set before numpy is imported, and inherited by the programs that tests start.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# What a shell starts in the background ignores Ctrl-C, and so would the programs that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from hypothesis import HealthCheck, settings  # noqa: E402

# A busy machine takes its time: that is no failure.
settings.register_profile("any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any_machine")
