"""``unkernel parse eval``: how good and how fast a parser is."""

from __future__ import annotations

from unkernel.cli.inputs.parsers import open_parser
from unkernel.cli.inputs.sentences import Input, reader, task_of
from unkernel.cli.options import parsing as own
from unkernel.cli.options import shared as options
from unkernel.cli.render.console import print_facts, print_json
from unkernel.cli.render.progress import Display
from unkernel.cli.render.results import describe_result, print_labels, result_facts
from unkernel.parsing import ChunkResult


def evaluate(
    model: own.ParserFile,
    file: own.TestFile,
    *,
    labels: own.Labels = False,
    format: own.Format = None,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Compare the answers of a parser with the right ones in a file.

    Of trees: the share of words with the right head (UAS), and with the right
    head and relation (LAS); of bunsetsu: dependencies and whole sentences; of
    chunks: F1 by the rules of CoNLL-2000. Speeds are by CPU time, without
    reading.

    \b
    [dim]$[/dim] unkernel parse eval en.uk test.conllu --labels
    [dim]$[/dim] unkernel parse eval ja.uk test.knp --jobs 1
    [dim]$[/dim] unkernel parse eval chunks.uk test.txt --json | jq .f1
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    with Display(quiet=json) as display:
        parser = open_parser(model)
        read = reader(task_of(parser), None if format is None else format.value)
        corpus = Input(file).read(read, display)
        with display.working("parsing"):
            result = parser.evaluate(corpus, n_jobs=options.threads(jobs))
    if json:
        print_json({"model": str(model), "data": file} | describe_result(result))
        return
    print_facts(file, result_facts(result))
    if labels or isinstance(result, ChunkResult):
        print_labels(result)
