"""Train and tune, with one learner per kind of model."""

# The kind that ``unkernel train FILE --target COLUMN`` trains: it chooses the model itself.
TABLE = {"table": "The right model of a table, chosen among several; the word table may be left out."}

# Kinds of models for rows and trees, each with its learner class and a description.
LEARNERS = {
    "poly": ("unkernel.cli.learners.poly:PolyLearner", "An SVM with a polynomial kernel."),
    "logistic": (
        "unkernel.cli.learners.poly:LogisticLearner",
        "A log-linear model over conjunctions of features, with probabilities.",
    ),
    "linear": ("unkernel.cli.learners.linear:LinearLearner", "A linear SVM: one weight per feature."),
    "regression": (
        "unkernel.cli.learners.regression:RegressionLearner",
        "A regression on conjunctions of features: it predicts numbers.",
    ),
    "rank": (
        "unkernel.cli.learners.rank:RankLearner",
        "An SVM that ranks rows, within the groups given by qid: fields.",
    ),
    "tree": (
        "unkernel.cli.learners.tree:TreeLearner",
        "An SVM with a tree kernel.",
    ),
}

# Kinds of parsers, with the task in unkernel.cli.inputs.sentences and a description.
PARSERS = {
    "parser": ("trees", "A dependency parser, on a treebank in CoNLL-U or CoNLL-X."),
    "bunsetsu": ("bunsetsu", "A dependency parser of Japanese bunsetsu."),
    "chunker": ("chunks", "A chunker: phrases and names."),
}

# Parsers of raw text can be trained, but not tuned: they consist of several models.
TEXT_PARSERS = {"text": ("text", "A parser of raw text, on a treebank in CoNLL-U.")}

KINDS = frozenset({*TABLE, *LEARNERS, *PARSERS, *TEXT_PARSERS})
