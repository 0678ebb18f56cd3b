"""The commands, one file each; only the file of the command that runs is imported."""

# Each module has a function with the name of the command or, for commands with several kinds (``train``
# and ``tune``), a function ``register(app, arguments)``.
COMMANDS = {
    "train": "Train a model, or a parser of text, on a file.",
    "tune": "Choose parameters of a model by cross-validation.",
    "update": "Update a model of records with new records, without the old ones.",
    "predict": "Predict the labels of the rows, records or trees in a file.",
    "evaluate": "Measure the quality of a model or a parser on a file with labels.",
    "report": "Write an HTML report about a model, or about several models side by side.",
    "compile": "Compile a model, of unkernel or another program, for speed.",
    "inspect": "Show what is in a model file, of unkernel or of another program.",
    "verify": "Check that model files are undamaged, by the digests inside.",
    "explain": "Explain a score: list the contribution of each conjunction, or tree fragment.",
    "bench": "Measure the speed of a model on the rows, records or trees of a file.",
    "parse": "Parse text, or sentences, from files or a stream.",
    "serve": "Serve models over HTTP.",
}
