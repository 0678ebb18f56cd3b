"""Replace model files under load: no request fails, memory does not grow, and no descriptor stays open.

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
DAMAGED_EVERY = 10  # one in ten files is damaged


def children(process: int) -> list[int]:
    """Return the child processes of a process."""
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def workers(server: Server) -> list[int]:
    """Return the processes that answer requests, without the helper process of multiprocessing."""
    children_of_server = children(server.process.pid)
    return [
        process_id
        for process_id in children_of_server
        if b"spawn_main" in Path(f"/proc/{process_id}/cmdline").read_bytes()
    ]


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


def run_campaign(reloads: int, folder: Path) -> list[str]:
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
            old_usage: dict[int, tuple[int, int]] = {}
            with httpx.Client(base_url=server.address, timeout=60) as client:
                for number in range(reloads):
                    is_damaged = number % DAMAGED_EVERY == DAMAGED_EVERY - 1
                    shutil.copy(models[number % 2], folder / "new.uk").replace(served)
                    if is_damaged:
                        served.write_bytes(served.read_bytes()[:-20])
                    status = client.post("/models/people/load").status_code
                    if status != (409 if is_damaged else 200):
                        faults.append(f"reload {number}: {status}")
                    if number == reloads // 10:
                        old_usage = {worker: usage(worker) for worker in workers(server)}
            new_usage = {worker: usage(worker) for worker in workers(server)}
        finally:
            for asker in askers:
                asker.ended.set()
                asker.join()
    faults += compare_usage(old_usage, new_usage)
    counts = [asker.statuses for asker in askers]
    faults += [f"requests: {count}" for count in counts if set(count) != {200}]
    n_requests = sum(sum(count.values()) for count in counts)
    print(f"{reloads:,} reloads, {n_requests:,} requests; {old_usage} {new_usage}")
    return faults


def compare_usage(old_usage: dict[int, tuple[int, int]], new_usage: dict[int, tuple[int, int]]) -> list[str]:
    if len(old_usage) != 2 or set(old_usage) != set(new_usage):
        return [f"workers {sorted(old_usage)} became {sorted(new_usage)}"]
    faults = []
    for worker, (private, descriptors) in old_usage.items():
        private_now, open_now = new_usage[worker]
        if private_now > private + MOST_GROWTH:
            faults.append(f"worker {worker} grew from {private:,} to {private_now:,} bytes")
        if open_now > descriptors + 2:  # connections come and go
            faults.append(f"worker {worker} had {descriptors} descriptors, and has {open_now}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reloads", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        faults = run_campaign(options.reloads, Path(folder))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
