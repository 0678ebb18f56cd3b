"""Small training texts for the learners of the command line."""

from __future__ import annotations

from reference.parse_corpora import bunsetsu, chunks, treebank

ROWS = "1 1:1 2:1\n-1 3:1\n1 1:1\n-1 2:1 3:1\n" * 5
TREES = "1 |BT| (S (NP dogs) (VP bark)) |ET|\n-1 |BT| (S (NP cats) (VP sleep)) |ET|\n" * 5
RANKING = "".join(f"{i % 3} qid:{i // 6} 1:{i % 3} 2:{i % 2}\n" for i in range(60))
DATA = {
    "poly": ROWS,
    "logistic": ROWS,
    "linear": ROWS,
    "rank": RANKING,
    "tree": TREES,
    "parser": treebank(12, 0),
    "text": treebank(12, 0),
    "bunsetsu": bunsetsu(30, 0),
    "chunker": chunks(30, 0),
}
