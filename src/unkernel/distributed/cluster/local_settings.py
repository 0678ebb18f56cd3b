"""Dask settings for workers that share one machine with the client."""

from __future__ import annotations

# By default, workers return freed memory to the system immediately, and then get it back page by page. For
# large chunks, this takes a quarter of the time of predictions. Each process also monitors its interpreter
# and its event loop many times per second, which takes 3 to 8 % of a processor.
_KEPT_BYTES = 1 << 30  # freed memory that a worker keeps; larger arrays are returned immediately
ONE_MACHINE = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": _KEPT_BYTES,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": _KEPT_BYTES,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "1s",
}
