"""Work in threads: results come in order, few tasks wait at a time, and errors are raised in their turn."""

import threading

import pytest

from unkernel.parsing.ordered_work import map_in_order


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_the_order_of_tasks(threads):
    task_1_done = threading.Event()

    def work(number):
        if number == 0 and threads > 1:
            task_1_done.wait(10)  # later tasks end before this one
        if number == 1:
            task_1_done.set()
        return number * 2

    assert list(map_in_order(work, range(50), threads)) == list(range(0, 100, 2))


def test_few_tasks_are_started_in_advance():
    started = []
    results = map_in_order(str, (started.append(k) or k for k in range(1000)), 3)
    next(results)
    assert len(started) < 20
    results.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_are_raised_after_all_earlier_results(threads):
    results = []
    with pytest.raises(ZeroDivisionError):
        for result in map_in_order(lambda k: 6 // (3 - k), range(9), threads):
            results.append(result)
    assert results == [2, 3, 6]
