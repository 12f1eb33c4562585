"""Run test files: each on new simulated systems, its runs one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from ...core.clock import SimulatedClock, SystemClock
from ...core.diagnostics import Diagnostic, Diagnostics, has_errors, suggest
from ...core.errors import ConfigurationError, UsageError
from ...core.redaction import watched
from ...language.declare.blocks import Declarations
from ...language.declare.top_level import declare_blocks
from ...language.tests.assertions import find_mistakes, find_unknown_expectations
from ...language.tests.suites import ENDING, Suite, parse_suite
from ...language.values.faults import make_error, suggest_near
from ...render.suites.results import RunResult, Status, SuiteResult, SuiteStart
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
    found, _ = declare_blocks(configuration.tree)
    faults = configuration.evaluate(offline=True).desired.diagnostics
    subject = Subject(configuration, found, find_mistakes(faults, found))
    parsed = [_parse_file(file, found) for file in files]
    _refuse_idle_names(parsed, names)
    with keep_secrets(watched()):
        for one in parsed:
            wanted = _select_runs(one.suite, names)
            if wanted or one.faults:
                yield from _run_suite(subject, one, wanted)


def _parse_file(file: SuiteFile, found: Declarations) -> ParsedSuite:
    suite, faults = parse_suite(file.content, file.name)
    return ParsedSuite(suite, (*faults, *_find_unknown_names(suite, found)))


def _find_unknown_names(suite: Suite, found: Declarations) -> Iterator[Diagnostic]:
    """An error for each variable and each expected failure that the configuration does not have."""
    for values in (suite.variables, *(run.variables for run in suite.runs)):
        for name, item in values.items():
            if name not in found.variables:
                summary = f'The configuration has no variable "{name}"'
                yield make_error(item, summary, advice=suggest_near(name, found.variables))
    for run in suite.runs:
        yield from find_unknown_expectations(run.expected, found)


# ── which runs ──────────────────────────────────────────────────────────────────────────


def _refuse_idle_names(parsed: Sequence[ParsedSuite], names: Sequence[str]) -> None:
    """Raises UsageError for a glob that matches no run, because that is a typing error."""
    known = [run.name for one in parsed for run in one.suite.runs]
    for glob in names:
        if not any(fnmatchcase(name, glob) for name in known):
            raise UsageError(f"--filter {glob!r} matches no run", _advise_name(glob, known))


def _advise_name(glob: str, known: Sequence[str]) -> str:
    # Terraform's flag of this name selects files.
    if glob.endswith(ENDING):
        return f"Name a test file without a flag: `kafkaform test {glob}`."
    return suggest(glob, known) or f"The runs are: {', '.join(known[:10])}."


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
    subject: Subject, parsed: ParsedSuite, wanted: frozenset[str]
) -> Iterator[SuiteEvent]:
    suite, faults = parsed.suite, parsed.faults
    yield SuiteStart(suite.file)
    stage, more = _prepare_stage(subject, suite, faults)
    results: list[RunResult] = []
    if stage is not None:
        for result in _execute_runs(stage, wanted):
            # Plans of large configurations are not kept until the end.
            results.append(replace(result, plan=None))
            yield result
    yield SuiteResult(suite.file, tuple(results), more)


def _prepare_stage(
    subject: Subject, suite: Suite, faults: Diagnostics
) -> tuple[Stage | None, Diagnostics]:
    """The world of a file with its given objects; None and the faults if it cannot be made."""
    registry = subject.configuration.registry
    aliases = [name for name in subject.found.providers if "." in name]
    settings, more = read_settings(suite.systems, registry, aliases)
    faults = (*faults, *more)
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


def _execute_runs(stage: Stage, wanted: frozenset[str]) -> Iterator[RunResult]:
    """Each run in order. After an apply run that did not pass, the others are skipped: they would
    start from another world than they expect."""
    failed = ""
    for run in stage.suite.runs:
        if run.name not in wanted:
            continue
        if failed:
            reason = f'run "{failed}" did not pass'
            yield RunResult(stage.suite.file, run.name, Status.SKIP, reason=reason)
            continue
        result = execute_run(stage, run)
        if run.applies and result.status is not Status.PASS:
            failed = run.name
        yield result
