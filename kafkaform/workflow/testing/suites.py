"""Run test files: each on new simulated systems, its runs one after the other. What happened in a
run is compared with what it expects; assertions see its plan behind `plan.` (docs/testing.md).

Of many folders, one whose configuration cannot be read counts as one error, and the others go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...core.address import parse_address
from ...core.change import Change, Path, PathChange
from ...core.clock import SimulatedClock, SystemClock
from ...core.diagnostics import Diagnostic, Diagnostics, Severity, has_errors, suggest
from ...core.errors import (
    Blocked,
    ConfigurationError,
    Ended,
    Interrupted,
    KafkaformError,
    UsageError,
)
from ...core.secret import keep_secrets, watched
from ...core.value import FrozenMap
from ...language.declare.blocks import Declarations
from ...language.declare.top_level import declare_blocks
from ...language.desired import Built
from ...language.tests.assertions import (
    BlockFault,
    check_assertions,
    compare_failures,
    find_failures,
    find_mistakes,
    find_unknown_expectations,
)
from ...language.tests.suites import (
    ENDING,
    Suite,
    SuiteRun,
    evaluate_outputs,
    make_variable_file,
    parse_suite,
)
from ...language.values.conversion import lift_value
from ...language.values.faults import make_error, suggest_near
from ...language.values.value import SENSITIVE, Marked
from ...plan.completion import complete_declared
from ...plan.model import Mode, Options, Plan
from ...render.plan_view import make_view
from ...render.suite_results import RunResult, Status, SuiteResult, SuiteStart
from ...syntax.nodes import Attribute
from ..configuration.evaluation import Configuration, Inputs, read_configuration
from ..configuration.policies import NO_POLICIES, describe_findings, load_policies
from ..configuration.repository import RepositoryFolder
from ..configuration.repository_choice import FolderChoice
from ..model import PlanChosen, RunEvent
from ..operations import apply_changes
from ..planning import plan_changes
from ..repository.checking import place_fault
from ..workspace import Workspace, open_instance
from .files import SuiteFile, list_default_files, read_suite_files
from .stage import SimulatedSystems, Stage, Subject, create_given, list_blocked, read_settings

COUNTS = (
    "add",
    "change",
    "destroy",
    "imports",
    "adopt",
    "forget",
    "blocked",
    "drift",
    "unchanged",
)
"""The counts that assertions see, named as in a plan's JSON."""

# Long work, such as moving data, has ended then, and no read waits for a write of an earlier run.
SECONDS_BETWEEN = 3600.0
Values = Mapping[str, Attribute]
"""What a run gives to variables."""
SuiteEvent = SuiteStart | RunResult | SuiteResult


class Attempt(Struct, frozen=True):
    """What happened when a run was carried out."""

    built: Built
    """The configuration as evaluated, with what the servers have set if a plan was made."""
    plan: Plan | None
    """None if the configuration has faults."""
    faults: Diagnostics
    """All faults and warnings, except blocked changes."""


def execute_run(stage: Stage, run: SuiteRun) -> RunResult:
    """Carry out a run. Any error is its result; only a signal ends it (Ended)."""
    clock = SystemClock()
    began = clock.monotonic()
    try:
        values = {**stage.suite.variables, **run.variables}
        create_given(stage, run.given, values)
        attempt = _attempt_run(stage, run, values)
    except KafkaformError as error:
        result = RunResult(stage.suite.file, run.name, Status.ERROR, diagnostics=error.diagnostics)
    else:
        result = _judge_attempt(stage, run, values, attempt)
    stage.systems.clock.sleep(SECONDS_BETWEEN)
    return replace(result, seconds=clock.monotonic() - began)


def _attempt_run(stage: Stage, run: SuiteRun, values: Values) -> Attempt:
    configuration = stage.configure(make_variable_file(stage.suite, values))
    try:
        built = configuration.evaluate()
        if has_errors(built.desired.diagnostics):
            return Attempt(built, None, built.desired.diagnostics)
        policies = load_policies(configuration, built, ()) if built.policies else NO_POLICIES
        space = stage.open_workspace(
            configuration, built.desired, stage.backend, stage.sink, policies
        )
        plan, error = _carry_out(space, run)
        if built.desired.settles:
            built = _evaluate_live(configuration, built, space, planned=not run.applies)
    finally:
        configuration.asking.close()
    faults = built.desired.diagnostics
    # A blocked change is a failure of its own, which may be expected.
    if error is not None and not (isinstance(error, Blocked) and list_blocked(plan)):
        faults = (*faults, *error.diagnostics)
    return Attempt(built, plan, tuple(dict.fromkeys(faults)))


def _carry_out(space: Workspace, run: SuiteRun) -> tuple[Plan | None, KafkaformError | None]:
    """Plan or apply. The plan is None if an error came before it."""
    plans: list[Plan] = []

    def note(event: RunEvent) -> None:
        if isinstance(event, PlanChosen):
            plans.append(event.plan)

    error = None
    options = _make_options(run)
    try:
        if run.applies:
            apply_changes(space, options=options, approve=lambda plan: True, progress=note)
        else:
            plan_changes(space, options, progress=note)
    except Interrupted as interrupted:
        # What an apply says of a real system would be wrong here.
        raise Ended(interrupted.signal_number) from None
    except KafkaformError as fault:
        error = fault
    return plans[-1] if plans else None, error


def _make_options(run: SuiteRun) -> Options:
    options = dict(run.options)
    return Options(mode=Mode(options.pop("mode", Mode.NORMAL)), **options)


def _evaluate_live(
    configuration: Configuration, built: Built, space: Workspace, *, planned: bool
) -> Built:
    """The configuration with what the servers have set, which outputs and rules can need."""
    instances = {declared.identity.instance for declared in built.desired.declared}
    with ExitStack() as stack:
        sessions = {name: open_instance(space, name) for name in sorted(instances)}
        for session in sessions.values():
            stack.callback(session.close)
        desired = complete_declared(built.desired, space.types, sessions)
        return configuration.evaluate_live(desired, sessions, planned=planned)


def _judge_attempt(stage: Stage, run: SuiteRun, values: Values, attempt: Attempt) -> RunResult:
    blocked, subject = list_blocked(attempt.plan), stage.subject
    failures = (
        *find_failures(attempt.faults, subject.declarations, values, subject.mistakes),
        *(BlockFault(_name_block(address), fault) for address, fault in blocked),
    )
    unexpected, missing = compare_failures(failures, run.expected)
    unmet: Diagnostics = ()
    if attempt.plan is not None and not unexpected:
        unmet = check_assertions(run.assertions, attempt.built, describe_plan(attempt.plan))
    status = Status.ERROR if unexpected else Status.FAIL if missing or unmet else Status.PASS
    failed = {diagnostic.fault for diagnostic in failures}
    warnings = tuple(
        diagnostic
        for diagnostic in attempt.faults
        if diagnostic.severity is Severity.WARNING and diagnostic not in failed
    )
    reported = (*warnings, *unexpected, *missing, *unmet)
    return RunResult(stage.suite.file, run.name, status, diagnostics=reported, plan=attempt.plan)


def _name_block(address: str) -> str:
    """The block of the root that a change belongs to; "" if it belongs to none."""
    try:
        parsed = parse_address(address)
    except ValueError:  # an object without a block has its identity in place of an address
        return ""
    return "" if parsed.module else f"{parsed.type}.{parsed.name}"


class ParsedSuite(Struct, frozen=True):
    """A test file that was read, and whether it can run."""

    suite: Suite
    faults: Diagnostics


def run_suites(
    configuration: Configuration,
    files: Sequence[SuiteFile],
    names: Sequence[str] = (),
    *,
    requires_runs: bool = True,
) -> Iterator[SuiteEvent]:
    """Run test files, and yield each result as soon as it is known.

    configuration: read with simulated inputs. names: globs of the runs that are wanted, all by
    default; apply runs before them are carried out too, because they prepare them. Raises
    ConfigurationError for a configuration that cannot be parsed, UsageError for a glob that matches
    no run, unless that is allowed (requires_runs).
    """
    # Such a fault would fail every run of every file in the same way.
    if has_errors(configuration.tree.diagnostics):
        faults = configuration.tree.diagnostics
        raise ConfigurationError("the configuration has faults", diagnostics=faults)
    declarations, _ = declare_blocks(configuration.tree)
    faults = configuration.evaluate(offline=True).desired.diagnostics
    subject = Subject(configuration, declarations, find_mistakes(faults, declarations))
    parsed = [_parse_file(file, declarations) for file in files]
    if requires_runs:
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
    aliases = [name for name in subject.declarations.providers if "." in name]
    settings, setting_faults = read_settings(suite.systems, registry, aliases)
    outputs, output_faults = evaluate_outputs(suite.outputs)
    faults = (*faults, *setting_faults, *output_faults)
    if has_errors(faults):
        return None, faults
    # A clock of today, so that dates in the configuration mean what they mean outside of tests.
    systems = SimulatedSystems(registry, SimulatedClock(SystemClock().now()), settings)
    stage = Stage(subject, suite, systems, watched(), outputs)
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


def describe_plan(plan: Plan) -> dict[str, Any]:
    """The plan as values that expressions can use."""
    counts = make_view(plan).counts
    return {
        "changes": {change.address: describe_change(change) for change in plan.changes},
        "counts": {name: getattr(counts, name) for name in COUNTS},
    }


def describe_change(change: Change) -> dict[str, Any]:
    """One change; sensitive values can be compared and not shown."""
    hidden = frozenset(item.path for item in (*change.paths, *change.drift) if item.sensitive)
    blocked = change.blocked
    return {
        "type": change.identity.kind,
        "key": change.identity.key,
        "instance": change.identity.instance,
        "action": change.action.value,
        "adopts": change.adopts,
        "before": _mark_tree(change.before, hidden, ()),
        "after": _mark_tree(change.after, hidden, ()),
        "paths": _describe_paths(change.paths),
        "drift": _describe_paths(change.drift),
        **describe_findings(change.findings),
        "blocked": None
        if blocked is None or blocked.block is None
        else {"kind": blocked.block.value, "reason": blocked.text, "stops": blocked.stops},
    }


def _describe_paths(items: Iterable[PathChange]) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "path": ".".join(item.path),
            "before": _mark(item.before, item.sensitive),
            "after": _mark(item.after, item.sensitive),
        }
        for item in items
    )


def _mark_tree(item: Any, hidden: frozenset[Path], path: Path) -> Any:
    if path in hidden:
        return _mark(item, sensitive=True)
    if not isinstance(item, FrozenMap):
        return item
    return {name: _mark_tree(inner, hidden, (*path, name)) for name, inner in item.items()}


def _mark(item: Any, sensitive: bool) -> Any:
    return Marked(lift_value(item), frozenset((SENSITIVE,))) if sensitive else item


def run_folder_suites(
    choice: FolderChoice, inputs: Inputs, names: Sequence[str] = ()
) -> Iterator[SuiteEvent]:
    """Run the test files of the chosen folders, folder by folder.

    inputs: simulated ones; names: globs of the runs that are wanted. Raises UsageError if none of
    the folders has a test file, and for globs that match no run of any folder.
    """
    tested = [
        folder
        for folder in choice.folders
        if list_default_files(choice.repository.path / folder.path)
    ]
    if not tested and choice.folders:
        raise UsageError(
            "none of these folders has a test file",
            "Write one, such as tests/main.kftest.hcl in a folder.",
        )
    ran = False
    for folder in tested:
        for event in _run_folder(choice, folder, inputs, names):
            ran = ran or not isinstance(event, SuiteStart)
            yield event
    if names and not ran:
        raise UsageError(
            f"--filter {' '.join(names)} matches no run of any folder", "Names are globs."
        )


def _run_folder(
    choice: FolderChoice, folder: RepositoryFolder, inputs: Inputs, names: Sequence[str]
) -> Iterator[SuiteEvent]:
    top = choice.repository.path
    path = top / folder.path
    try:
        if folder.faults:
            raise ConfigurationError(f"{folder.path} cannot be used", diagnostics=folder.faults)
        files = [
            replace(file, name=f"{folder.path}/{file.name}")
            for file in read_suite_files(folder=path)
        ]
        configuration = read_configuration(path, inputs, repository_folder=folder)
        for event in run_suites(configuration, files, names, requires_runs=False):
            yield _place_event(choice, folder, files, event)
    except KafkaformError as error:
        faults = _place_faults(choice, folder, (), error.diagnostics)
        yield SuiteResult(folder.path, diagnostics=faults)


def _place_event(
    choice: FolderChoice, folder: RepositoryFolder, files: Sequence[SuiteFile], event: SuiteEvent
) -> SuiteEvent:
    """The event with paths that are seen from the top of the repository."""
    if isinstance(event, RunResult):
        return replace(event, diagnostics=_place_faults(choice, folder, files, event.diagnostics))
    if isinstance(event, SuiteResult):
        faults = _place_faults(choice, folder, files, event.diagnostics)
        runs = (_place_event(choice, folder, files, run) for run in event.runs)
        return replace(event, diagnostics=faults, runs=tuple(runs))
    return event


def _place_faults(
    choice: FolderChoice,
    folder: RepositoryFolder,
    files: Sequence[SuiteFile],
    faults: Diagnostics,
) -> Diagnostics:
    # The names of test files are seen from the top already.
    own = {file.name for file in files}
    return tuple(
        fault
        if fault.range is not None and fault.range.file in own
        else place_fault(choice.repository, folder, fault)
        for fault in faults
    )
