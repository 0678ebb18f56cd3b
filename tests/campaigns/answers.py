"""Predictions of generated models for generated records by all interfaces: each record must have one answer.

    python -m campaigns.answers --cases 10000 --seed 0

A case is a record, predicted by every interface in ``one_answer.ways``, ``one_answer.requests`` and
``one_answer.commands``. ``--model`` draws a model with differences again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from one_answer.comparison import RECORDS, run_model

EVERY_SECONDS = 60  # between two lines of progress


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=int, help="the number of the only model to ask")
    given = parser.parse_args()
    os.fsync = lambda _: None  # type: ignore[assignment]  # files of models need not outlast a power cut
    numbers = [given.model] if given.model is not None else range(-(-given.cases // RECORDS))
    found, message = 0, time.monotonic()
    for number in numbers:
        for difference in run_model(number, given.seed):
            found += 1
            print(f"model {number}: {difference}", flush=True)
        if time.monotonic() - message > EVERY_SECONDS:
            message = time.monotonic()
            print(f"{(number + 1) * RECORDS:,} cases, {found:,} differences", flush=True)
    print(f"{len(numbers) * RECORDS:,} cases, {found:,} differences")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
