"""Model files whose trees share so many subtrees that, written out, they would not fit into memory."""

from __future__ import annotations

import numpy as np
import pytest

import unkernel
from reference.selection import slow_after
from unkernel import LimitError, TreeModel, load, write_model
from unkernel._core import Forest as SubtreeTable
from unkernel.data import Forest
from unkernel.models.decision import Decision
from unkernel.models.tree import TREE_KERNELS, ExampleKernel

SMALL = "(N (N w w) (N w w))"


def make_doubled_trees(depth):
    """Return a tree of 2^depth leaves in depth + 1 nodes: each contains the previous one twice."""
    return SubtreeTable.from_arrays(
        np.frombuffer(b"wN", np.uint8),
        np.array([1, 2]),
        np.array([0] + [1] * depth, np.int32),
        np.array([0, 0] + [2 * (k + 1) for k in range(depth)]),
        np.repeat(np.arange(depth, dtype=np.int32), 2),
    )


def model_of(kernel, depth, roots, decay=0.4):
    support = Forest._from_table(make_doubled_trees(depth), {"0": np.array(roots, np.int32)}, {})
    coefficients = np.resize([[1.0], [-1.0]], (len(roots), 1))
    decision = Decision("binary", np.array([-1, 1]))
    kernel = ExampleKernel(kernel, decay, 0.4, normalize=False)
    return TreeModel(kernel, support, coefficients, np.zeros(1), decision, {"format": "svmlight-tk"})


def loaded(tmp_path, *arguments, **options):
    path = tmp_path / "model.uk"
    model_of(*arguments, **options).save(path)
    return load(path)


@pytest.mark.parametrize("decay", slow_after(1, [0.4, 2.0]))
@pytest.mark.parametrize("kernel", TREE_KERNELS)
def test_sixty_nodes_that_are_a_vast_tree(tmp_path, kernel, decay):
    fast = loaded(tmp_path, kernel, 60, [60, 2], decay=decay)
    support = fast.model.support
    assert np.isfinite(fast.decision_function([SMALL])).all()
    np.testing.assert_allclose(fast.score_one(SMALL), fast.decision_function([SMALL])[0])
    np.testing.assert_array_equal(
        support.table.tree_sizes(np.array([60, 2, -1], np.int32)), [2**61 - 1, 7, 0]
    )
    assert repr(fast) and repr(fast.model) and repr(support) and support.compact().nodes == 61
    assert str(fast.explain(SMALL))
    for ask in (
        lambda: str(support[0]),
        support.brackets,
        lambda: write_model(fast.model, tmp_path / "text.model"),
    ):
        with pytest.raises(ValueError, match=r"cannot be written: .* longer than .* subtrees"):
            ask()
    assert not (tmp_path / "text.model").exists()
    try:
        assert fast.heaviest(3)
    except ValueError as error:
        assert "cannot be written" in str(error)


def test_trees_that_are_too_many_together(tmp_path):
    """Each tree would fit into memory when written out, but all trees together would not."""
    support = loaded(tmp_path, "sst", 18, [18] * 1000).model.support
    assert len(str(support[0])) > 1_000_000
    with pytest.raises(ValueError, match=r"after \d+ of them, their text is longer"):
        support.brackets()


def test_vast_trees_have_the_scores_of_their_nodes(tmp_path):
    """Compared with the same trees, written out and read again."""
    fast = loaded(tmp_path, "sst", 12, [12, 2])
    texts = fast.model.support.brackets()
    reread = Forest(texts)
    assert reread.nodes == 13
    np.testing.assert_allclose(fast.decision_function(reread), fast.decision_function(fast.model.support))


def test_support_trees_times_subtrees(tmp_path):
    """Engines list the subtrees of each support tree, so many copies of one large tree need much memory."""
    depth, count = 20_000, 20_000
    table = SubtreeTable.from_arrays(
        np.frombuffer(b"wN", np.uint8),
        np.array([1, 2]),
        np.array([0] + [1] * depth, np.int32),
        np.array([0, *range(depth + 1)]),
        np.arange(depth, dtype=np.int32),
    )
    chain = Forest._from_table(table, {"0": np.full(count, depth, np.int32)}, {})
    model = model_of("sst", 2, [2])
    path = tmp_path / "model.uk"
    TreeModel(model.kernel, chain, np.ones((count, 1)), np.zeros(1), model.decision, {}).save(path)
    with pytest.raises(LimitError, match="the weights of subtrees would take"):
        unkernel.load(path)
