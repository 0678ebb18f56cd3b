"""Work in threads: results in order, few tasks at a time, errors where they belong."""

import threading

import pytest

from unkernel.parsing.ordered_work import map_in_order


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_the_order_of_tasks(threads):
    first = threading.Event()

    def work(number):
        if number == 0 and threads > 1:
            first.wait(10)  # later ones end first
        if number == 1:
            first.set()
        return number * 2

    assert list(map_in_order(work, range(50), threads)) == list(range(0, 100, 2))


def test_few_tasks_are_taken_in_advance():
    taken = []
    results = map_in_order(str, (taken.append(k) or k for k in range(1000)), 3)
    next(results)
    assert len(taken) < 20
    results.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_are_raised_after_all_earlier_results(threads):
    found = []
    with pytest.raises(ZeroDivisionError):
        for result in map_in_order(lambda k: 6 // (3 - k), range(9), threads):
            found.append(result)
    assert found == [2, 3, 6]
