"""``unkernel tune KIND``: choose parameters by cross-validation, or on held-out sentences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from unkernel.cli.commands.train import (
    RUN_PARTS,
    choose_data_argument,
    import_learner,
    make_record_parts,
    make_shared_parts,
    report,
)
from unkernel.cli.learners import LEARNERS, PARSERS
from unkernel.cli.options import shared_options, train_options
from unkernel.cli.options.command_groups import add_commands, new_group
from unkernel.cli.options.command_signatures import REQUIRED, Parts, given_options, make_command
from unkernel.cli.options.estimator_options import make_choices
from unkernel.cli.options.help_text import reflow
from unkernel.cli.options.value_grids import make_grid_parts

_MEASURE_ALIASES = {"auc": "roc_area", "roc_auc": "roc_area"}
_HELP = """Choose parameters of a model by cross-validation.

    Each kind has its own options: see unkernel tune KIND --help.

    \b
    [dim]$[/dim] unkernel tune poly train.svm --degree 1,2,3 --C 0.001:10 --cv 5
    [dim]$[/dim] unkernel tune poly adult.train.csv --target income --C 0.1:10 -o income.uk
    [dim]$[/dim] unkernel tune logistic train.svm --C 0.1:10:5 --by roc_area --plot tuned.svg
    [dim]$[/dim] unkernel tune linear train.svm --loss hinge,squared_hinge --C 0.01:100 -o best.uk
    [dim]$[/dim] unkernel tune rank letor.txt --C 0.01:10 --by ndcg --ndcg-at 5 -j 4
    [dim]$[/dim] unkernel tune tree questions.dat --kernel sst,ptk --decay 0.2,0.4 --json
    [dim]$[/dim] unkernel tune parser train.conllu --dev dev.conllu --epochs 5,10,20
    [dim]$[/dim] unkernel tune bunsetsu train.knp --degree 1,2,3 --cv 5
    [dim]$[/dim] unkernel tune chunker conll2000.txt.gz --C 0.1:10 --cv 5
    """

# Sentences that occur in the help of several kinds.
_HELP_SENTENCES = {
    "options": """Options take several values: a list such as 1,2,3, or a range such as 0.001:10, whose values
    have equal ratios: powers of ten, or a given number of values (0.001:10:9 has nine). All combinations are
    tried.""",
    "classes": "Each fold has about the same share of each class.",
    "paths": """Settings that differ only in C are trained one after the other, with warm starts if the
    learner supports them; folds and other settings run in parallel.""",
    "costs": "Without any list or range, C is tried from 0.01 to 100.",
    "sentences": """Every setting is trained on DATA and measured on the sentences of --dev; without --dev,
    folds of the sentences of DATA are held out in turn (--cv).""",
}


def register(app: typer.Typer, arguments: Sequence[str]) -> None:
    """Add ``tune`` to the application; load only the kind that `arguments` name."""
    group = new_group()
    kinds = {**LEARNERS, **PARSERS}

    def load(kind: str) -> None:
        learner = _import_parser_learner(kind) if kind in PARSERS else import_learner(kinds[kind][0])
        help = learner.tune_help.format(**_HELP_SENTENCES)
        group.command(kind)(make_command(partial(_tune, learner), _make_parts(learner), help))

    add_commands(group, {kind: summary for kind, (_, summary) in kinds.items()}, arguments, load)
    app.add_typer(group, name="tune", help=reflow(_HELP))


def _import_parser_learner(kind: str) -> Any:
    from unkernel.cli.learners.parser_search import PARSER_LEARNERS

    return PARSER_LEARNERS[kind]


def _make_parts(learner: Any) -> Parts:
    aliases = [alias for alias, name in _MEASURE_ALIASES.items() if name in learner.criteria]
    criteria: Any = make_choices("criteria", [*learner.criteria, *aliases])
    by = typer.Option("--by", help="Measure to optimise.", show_default=learner.criteria[0])
    plot = typer.Option(
        "--plot",
        metavar="FILE",
        readable=False,
        show_default="none",
        help="Draw the measure: a .png, .svg or .pdf file. Replaces no file without --force.",
    )
    parts: dict[str, tuple[Any, Any]] = {
        "data": (choose_data_argument(learner, large_data=False), REQUIRED),
        **_make_validation_parts(learner),
        "by": (Annotated[criteria | None, by], None),
        "plot": (Annotated[Path | None, plot], None),
        "output": (train_options.BestOutput, None),
    }
    if learner.unit == "sentence" and learner.task.name == "trees":
        parts["format"] = (train_options.Format, None)
    parts |= make_grid_parts(learner.options())
    if learner.unit == "row":
        parts |= make_record_parts(learner)
    parts |= make_shared_parts(learner)
    return {**parts, **RUN_PARTS}


def _make_validation_parts(learner: Any) -> dict[str, tuple[Any, Any]]:
    if learner.unit != "sentence":
        return {"cv": (train_options.TuneFolds, None)}
    return {"dev": (train_options.TuneDevFile, None), "cv": (train_options.TuneFolds, None)}


def _tune(learner: Any, arguments: dict[str, Any]) -> None:
    """Tune a kind of model, given the values of all arguments and options."""
    from unkernel.cli.learners.parameter_search import Search, tune
    from unkernel.cli.render.training_summary import print_tuning
    from unkernel.cli.terminal.progress import Display

    # Only flags are converted here: `Search.from_arguments` parses the other options, which are text.
    flags = [option for option in learner.options() if option.kind is bool]
    options = given_options({name: value for name, value in arguments.items() if value != []}, flags)
    if learner.takes_records:
        from unkernel.cli.learners.record_training import adapt_to_records, are_records, check_options

        records = are_records(arguments["data"], options)
        check_options(options, arguments["data"], records=records)
        learner = adapt_to_records(learner) if records else learner
    search = Search.from_arguments(learner, options)
    _check_outputs(arguments)
    if arguments["by"] is not None:
        arguments["by"] = _MEASURE_ALIASES.get(arguments["by"].value, arguments["by"].value)
    with Display(quiet=arguments["quiet"] or arguments["json"], verbose=arguments["verbose"]) as display:
        result = tune(
            search, arguments["data"], arguments, shared_options.count_threads(arguments["jobs"]), display
        )
    result["plot"] = _draw(arguments["plot"], result)
    report(result, arguments, print_tuning)


def _check_outputs(arguments: dict[str, Any]) -> None:
    from unkernel.cli.output_files import check_different, check_model_output, check_output

    # These options are comma-separated lists of files, or of names of built-in templates.
    option_values = [arguments.get("templates") or "", arguments.get("clusters") or ""]
    listed_files = [name for names in option_values for name in names.split(",") if name]
    inputs = [*arguments["data"], arguments.get("dev"), arguments.get("schema"), *listed_files]
    check_different(arguments["output"], arguments["plot"])
    if arguments["output"] is not None:
        check_model_output(arguments["output"], *inputs, force=arguments["force"])
    if arguments["plot"] is not None:
        from unkernel.report import search_plot

        search_plot.check_format(arguments["plot"])
        check_output(arguments["plot"], *inputs, force=arguments["force"])
        search_plot.check_matplotlib()


def _draw(plot: Path | None, result: dict[str, Any]) -> str | None:
    if plot is None:
        return None
    from unkernel.report.tuning_plot import draw_tuning

    draw_tuning(plot, result)
    return str(plot)
