"""What ``unkernel train`` and ``unkernel tune`` know of each kind of model, one file per kind."""

# Kinds of models of rows and trees: where the learner is, and what it makes.
LEARNERS = {
    "poly": ("unkernel.cli.learners.poly:PolyLearner", "An SVM with a polynomial kernel."),
    "logistic": (
        "unkernel.cli.learners.poly:LogisticLearner",
        "A log-linear model over conjunctions of features, with probabilities.",
    ),
    "linear": ("unkernel.cli.learners.linear:LinearLearner", "A linear SVM: one weight per feature."),
    "rank": (
        "unkernel.cli.learners.rank:RankLearner",
        "An SVM that ranks rows, within the groups given by qid: fields.",
    ),
    "tree": (
        "unkernel.cli.learners.tree:TreeLearner",
        "An SVM with a tree kernel.",
    ),
}

# Kinds of parsers: the task in unkernel.cli.inputs.sentences, and what is trained.
PARSERS = {
    "parser": ("trees", "A dependency parser, on a treebank in CoNLL-U or CoNLL-X."),
    "bunsetsu": ("bunsetsu", "A dependency parser of Japanese bunsetsu."),
    "chunker": ("chunks", "A chunker: phrases and names."),
}

# Trained, and not tuned: made of parts, each as it comes.
TEXT_PARSERS = {"text": ("text", "A parser of raw text, on a treebank in CoNLL-U.")}
