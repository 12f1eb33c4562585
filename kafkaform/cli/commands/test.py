"""`kafkaform test`: run test files on simulated systems. It connects to nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ...core.clock import SystemClock
from ...core.diagnostics import Diagnostic
from ...core.errors import UsageError
from ...render import suite_results
from ...render.stream import Stream, make_version
from ...version import VERSION
from ...workflow.configuration.evaluation import Inputs, read_configuration
from ...workflow.plan_documents import render_plan, save_file
from ...workflow.testing.files import read_suite_files
from ...workflow.testing.suites import SuiteEvent, run_folder_suites, run_suites
from ..options.flags import (
    FolderFlags,
    Json,
    NoColor,
    Var,
    VarFile,
    choose_folders,
    chooses_folders,
)
from ..terminal.console import Console

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE", help="Test files, or folders with test files.", show_default=False
    ),
]


@chooses_folders
def test(
    chosen: FolderFlags,
    files: Files = None,
    filter: Annotated[
        list[str],
        typer.Option(
            "--filter",
            metavar="GLOB",
            help="Run only the runs whose name matches, and the apply runs before them.",
        ),
    ] = [],
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit",
            "--junit-xml",
            metavar="FILE",
            help="Write the results as JUnit XML to this file.",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print the plan of each run.")] = False,
    var: Var = [],
    var_file: VarFile = [],
    json: Json = False,
    no_color: NoColor = False,
) -> int:
    """Run the tests of a configuration on a simulated cluster.

    Without FILE, run *.kftest.hcl here and in the folder tests. Connects to nothing and writes no
    state. Exits with 1 if a test does not pass.
    """
    console = Console.make_standard(no_color=no_color)
    inputs = Inputs.read(var, var_file, simulated=True)
    if chosen.typed:
        if files:
            raise UsageError(
                "FILE cannot be combined with --all, --folder and --changed-since",
                "Run the tests of a file in its folder.",
            )
        events = run_folder_suites(choose_folders(chosen), inputs, filter)
    else:
        configuration = read_configuration(Path(), inputs)
        events = run_suites(configuration, read_suite_files(files or ()), filter)
    show = _show_json if json else _show_text
    results = show(console, events, verbose)
    if junit is not None:
        save_file(junit, suite_results.render_junit(results), private=False)
    return int(suite_results.has_failed(results))


def _show_text(
    console: Console, events: Iterable[SuiteEvent], verbose: bool
) -> tuple[suite_results.SuiteResult, ...]:
    results, reported = list[suite_results.SuiteResult](), set[Diagnostic]()
    colour, width = console.colour, console.width
    for event in events:
        match event:
            case suite_results.SuiteStart():
                console.write(suite_results.render_start(event))
            case suite_results.RunResult():
                console.write(suite_results.render_run(event, reported, colour=colour, width=width))
                if verbose and event.plan is not None:
                    text = render_plan(event.plan, colour=colour, width=width)
                    console.write(f"\n{text.rstrip()}\n\n")
            case suite_results.SuiteResult():
                console.write(suite_results.render_suite(event, colour=colour, width=width))
                results.append(event)
    console.write("\n" + suite_results.render_summary(results, colour=console.colour))
    return tuple(results)


def _show_json(
    console: Console, events: Iterable[SuiteEvent], verbose: bool
) -> tuple[suite_results.SuiteResult, ...]:
    stream, results = Stream(SystemClock()), list[suite_results.SuiteResult]()
    console.write(stream.render_line(make_version(VERSION)))
    for event in events:
        match event:
            case suite_results.SuiteStart():
                console.write(stream.render_line(suite_results.make_start(event)))
            case suite_results.RunResult():
                console.write_lines(
                    stream.render_lines(suite_results.list_run_events(event, verbose))
                )
            case suite_results.SuiteResult():
                console.write_lines(stream.render_lines(suite_results.list_suite_events(event)))
                results.append(event)
    console.write(stream.render_line(suite_results.make_summary(results)))
    return tuple(results)
