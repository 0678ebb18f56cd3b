"""The commands, one file each. A module is imported when its command is asked for."""

# Each module has a function ``register(app, arguments)`` that adds its command to the application.
COMMANDS = {
    "train": "Train a model, or a parser of text, on a file.",
    "tune": "Choose parameters of a model by cross-validation.",
    "predict": "Predict the labels of the rows, or of the trees, in a file.",
    "evaluate": "Compare the answers of a model, or of a parser, with the right ones in a file.",
    "report": "Write a page about a model, or about several side by side.",
    "compile": "Compile a model, of unkernel or another program, for speed.",
    "inspect": "Show what is in a model file, of unkernel or of another program.",
    "verify": "Check that model files are whole, by the digests inside.",
    "explain": "Explain a score: what each conjunction, or each fragment of a tree, adds to it.",
    "bench": "Measure how fast a model answers for the rows, or the trees, in a file.",
    "parse": "Parse text, or tagged sentences, as they come.",
    "serve": "Serve models over HTTP.",
}
