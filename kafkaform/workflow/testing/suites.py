"""Run test files: each on new simulated systems, its runs one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from ...core.clock import SimulatedClock, SystemClock
from ...core.diagnostics import Diagnostic, Diagnostics, has_errors, suggest
from ...core.errors import ConfigurationError, UsageError
from ...core.secret import watched
from ...language.declare.declarations import Declarations
from ...language.declare.top_level import declare_blocks
from ...language.expectations import find_mistakes, find_unknown_expectations
from ...language.suites import ENDING, Suite, parse_suite
from ...language.values.faults import make_error, suggest_near
from ...render.suite_results import RunResult, Status, SuiteResult, SuiteStart
from ..configuration.evaluation import Configuration
from ..secrecy import keep_secrets
from .files import SuiteFile
from .objects import create_given
from .runs import execute_run
from .stage import Stage, Subject
from .systems import SimulatedSystems, read_settings

SuiteEvent = SuiteStart | RunResult | SuiteResult


class ParsedSuite(Struct, frozen=True):
    """A test file that was read, and whether it can run."""

    suite: Suite
    faults: Diagnostics


def run_suites(
    configuration: Configuration, files: Sequence[SuiteFile], names: Sequence[str] = ()
) -> Iterator[SuiteEvent]:
    """Run test files, and yield each result as soon as it is known.

    configuration: read with simulated inputs. names: globs of the runs that are wanted, all by
    default; apply runs before them are carried out too, because they prepare them. Raises
    ConfigurationError for a configuration that cannot be parsed, UsageError for a glob that matches
    no run.
    """
    # Such a fault would fail every run of every file in the same way.
    if has_errors(configuration.tree.diagnostics):
        faults = configuration.tree.diagnostics
        raise ConfigurationError("the configuration has faults", diagnostics=faults)
    declarations, _ = declare_blocks(configuration.tree)
    faults = configuration.evaluate(offline=True).desired.diagnostics
    subject = Subject(configuration, declarations, find_mistakes(faults, declarations))
    parsed = [_parse_file(file, declarations) for file in files]
    _refuse_idle_names(parsed, names)
    with keep_secrets(watched()):
        for parsed_suite in parsed:
            selected = _select_runs(parsed_suite.suite, names)
            if selected or parsed_suite.faults:
                yield from _run_suite(subject, parsed_suite, selected)


def _parse_file(file: SuiteFile, declarations: Declarations) -> ParsedSuite:
    suite, faults = parse_suite(file.content, file.name)
    return ParsedSuite(suite, (*faults, *_find_unknown_names(suite, declarations)))


def _find_unknown_names(suite: Suite, declarations: Declarations) -> Iterator[Diagnostic]:
    """An error for each variable and each expected failure that the configuration does not have."""
    for values in (suite.variables, *(run.variables for run in suite.runs)):
        for name, item in values.items():
            if name not in declarations.variables:
                summary = f'The configuration has no variable "{name}"'
                yield make_error(item, summary, advice=suggest_near(name, declarations.variables))
    for run in suite.runs:
        yield from find_unknown_expectations(run.expected, declarations)


# ── which runs ──────────────────────────────────────────────────────────────────────────


def _refuse_idle_names(parsed: Sequence[ParsedSuite], names: Sequence[str]) -> None:
    """Raises UsageError for a glob that matches no run, because that is a typing error."""
    run_names = [run.name for suite in parsed for run in suite.suite.runs]
    for glob in names:
        if not any(fnmatchcase(name, glob) for name in run_names):
            raise UsageError(f"--filter {glob!r} matches no run", _advise_name(glob, run_names))


def _advise_name(glob: str, names: Sequence[str]) -> str:
    # Terraform's flag of this name selects files.
    if glob.endswith(ENDING):
        return f"Name a test file without a flag: `kafkaform test {glob}`."
    return suggest(glob, names) or f"The runs are: {', '.join(names[:10])}."


def _select_runs(suite: Suite, names: Sequence[str]) -> frozenset[str]:
    """The names of the runs that are wanted, and of the apply runs that prepare them."""
    if not names:
        return frozenset(run.name for run in suite.runs)
    matching = [any(fnmatchcase(run.name, glob) for glob in names) for run in suite.runs]
    last = max((index for index, match in enumerate(matching) if match), default=-1)
    return frozenset(
        run.name
        for index, run in enumerate(suite.runs)
        if matching[index] or (run.applies and index < last)
    )


# ── one file ────────────────────────────────────────────────────────────────────────────


def _run_suite(
    subject: Subject, parsed: ParsedSuite, selected: frozenset[str]
) -> Iterator[SuiteEvent]:
    suite, faults = parsed.suite, parsed.faults
    yield SuiteStart(suite.file)
    stage, stage_faults = _prepare_stage(subject, suite, faults)
    results: list[RunResult] = []
    if stage is not None:
        for result in _execute_runs(stage, selected):
            # Plans of large configurations are not kept until the end.
            results.append(replace(result, plan=None))
            yield result
    yield SuiteResult(suite.file, tuple(results), stage_faults)


def _prepare_stage(
    subject: Subject, suite: Suite, faults: Diagnostics
) -> tuple[Stage | None, Diagnostics]:
    """The world of a file with its given objects; None and the faults if it cannot be made."""
    registry = subject.configuration.registry
    aliases = [name for name in subject.found.providers if "." in name]
    settings, setting_faults = read_settings(suite.systems, registry, aliases)
    faults = (*faults, *setting_faults)
    if has_errors(faults):
        return None, faults
    # A clock of today, so that dates in the configuration mean what they mean outside of tests.
    systems = SimulatedSystems(registry, SimulatedClock(SystemClock().now()), settings)
    stage = Stage(subject, suite, systems, watched())
    try:
        create_given(stage, suite.given, suite.variables)
    except ConfigurationError as error:
        return None, error.diagnostics
    return stage, ()


def _execute_runs(stage: Stage, selected: frozenset[str]) -> Iterator[RunResult]:
    """Each run in order. After an apply run that did not pass, the others are skipped: they would
    start from another world than they expect."""
    failed = ""
    for run in stage.suite.runs:
        if run.name not in selected:
            continue
        if failed:
            reason = f'run "{failed}" did not pass'
            yield RunResult(stage.suite.file, run.name, Status.SKIP, reason=reason)
            continue
        result = execute_run(stage, run)
        if run.applies and result.status is not Status.PASS:
            failed = run.name
        yield result
