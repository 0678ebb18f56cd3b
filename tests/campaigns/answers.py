"""Check that all interfaces give the same answers, with generated models and records.

    python -m campaigns.answers --cases 10000 --seed 0

A case is a record, predicted by every interface in ``one_answer.ways``, ``one_answer.requests`` and
``one_answer.commands``. Every fourth model has several labels or outputs. ``--model`` draws a
model with differences again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from one_answer.comparison import RECORDS, run_model
from one_answer.subjects import draw_subject, draw_subject_of_outputs

REPORT_SECONDS = 60  # between two lines of progress


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=int, help="the number of the only model to ask")
    options = parser.parse_args()
    os.fsync = lambda _: None  # type: ignore[assignment]  # saves time: these files need not survive a power cut
    numbers = [options.model] if options.model is not None else range(-(-options.cases // RECORDS))
    n_differences, last_report = 0, time.monotonic()
    for number in numbers:
        draw = draw_subject_of_outputs if number % 4 == 3 else draw_subject
        for difference in run_model(number, options.seed, draw):
            n_differences += 1
            print(f"model {number}: {difference}", flush=True)
        if time.monotonic() - last_report > REPORT_SECONDS:
            last_report = time.monotonic()
            print(f"{(number + 1) * RECORDS:,} cases, {n_differences:,} differences", flush=True)
    print(f"{len(numbers) * RECORDS:,} cases, {n_differences:,} differences")
    return int(n_differences > 0)


if __name__ == "__main__":
    sys.exit(main())
