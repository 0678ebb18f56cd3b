"""New model files under load: no request fails, memory does not grow, and no descriptor stays open.

    python -m campaigns.reloads --reloads 10000

Two threads send requests to a server with two workers, while two models replace each other; one in ten files
is damaged and must be refused.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import httpx

from serve.serving import RECORDS, Server, record_model, started

MOST_GROWTH = 4 << 20  # bytes of a worker, after the first tenth of the reloads
EVERY = 10  # one of this many files is damaged


def children(process: int) -> list[int]:
    """Return the child processes of a process."""
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def workers(server: Server) -> list[int]:
    """Return the workers: they have the port open, unlike helper processes of multiprocessing."""
    result = children(server.process.pid)
    return [one for one in result if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def usage(process: int) -> tuple[int, int]:
    """Return the private bytes of a process, and its open descriptors."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    private = sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_"))
    return private, len(list(Path(f"/proc/{process}/fd").iterdir()))


class RequestSender(threading.Thread):
    """A thread that sends requests until it is stopped."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.ended = threading.Event()
        self.statuses: dict[int, int] = {}
        self._address = address

    def run(self) -> None:
        with httpx.Client(base_url=self._address, timeout=60) as client:
            while not self.ended.is_set():
                status = client.post("/models/people/predict", json=RECORDS[0]).status_code
                self.statuses[status] = self.statuses.get(status, 0) + 1


def campaign(reloads: int, folder: Path) -> list[str]:
    """Return the faults found."""
    models = [folder / "a.uk", folder / "b.uk"]
    for path, C in zip(models, (1000.0, 0.01), strict=True):
        record_model(C=C).save(path)
    served = Path(shutil.copy(models[0], folder / "people.uk"))
    faults: list[str] = []
    with started(served, "--workers", "2", "--watch", "0.2") as server:
        threading.Thread(target=lambda: list(server.process.stderr or ()), daemon=True).start()
        askers = [RequestSender(server.address) for _ in range(2)]
        for asker in askers:
            asker.start()
        try:
            before: dict[int, tuple[int, int]] = {}
            with httpx.Client(base_url=server.address, timeout=60) as client:
                for number in range(reloads):
                    damaged = number % EVERY == EVERY - 1
                    shutil.copy(models[number % 2], folder / "new.uk").replace(served)
                    if damaged:
                        served.write_bytes(served.read_bytes()[:-20])
                    status = client.post("/models/people/load").status_code
                    if status != (409 if damaged else 200):
                        faults.append(f"reload {number}: {status}")
                    if number == reloads // 10:
                        before = {worker: usage(worker) for worker in workers(server)}
            after = {worker: usage(worker) for worker in workers(server)}
        finally:
            for asker in askers:
                asker.ended.set()
                asker.join()
    faults += compare_usage(before, after)
    counts = [asker.statuses for asker in askers]
    faults += [f"requests: {count}" for count in counts if set(count) != {200}]
    print(f"{reloads:,} reloads, {sum(sum(count.values()) for count in counts):,} requests; {before} {after}")
    return faults


def compare_usage(before: dict[int, tuple[int, int]], after: dict[int, tuple[int, int]]) -> list[str]:
    if len(before) != 2 or set(before) != set(after):
        return [f"workers {sorted(before)} became {sorted(after)}"]
    faults = []
    for one, (private, descriptors) in before.items():
        now, open_now = after[one]
        if now > private + MOST_GROWTH:
            faults.append(f"worker {one} grew from {private:,} to {now:,} bytes")
        if open_now > descriptors + 2:  # connections come and go
            faults.append(f"worker {one} had {descriptors} descriptors, and has {open_now}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reloads", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        faults = campaign(given.reloads, Path(folder))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
