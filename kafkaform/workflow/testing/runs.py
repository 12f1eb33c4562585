"""Carry out one run of a test file, and compare what happened with what it expects."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from msgspec import Struct
from msgspec.structs import replace

from ...core.address import parse_address
from ...core.clock import SystemClock
from ...core.diagnostics import Diagnostics, Severity, has_errors
from ...core.errors import Blocked, Ended, Interrupted, KafkaformError
from ...language.assertions import check_assertions
from ...language.desired import Built
from ...language.expectations import Failure, compare_failures, find_failures
from ...language.suites import SuiteRun, make_variable_file
from ...plan.model import Mode, Options, Plan
from ...render.suite_results import RunResult, Status
from ...syntax.nodes import Attribute
from ..configuration.evaluation import Configuration
from ..configuration.policies import NO_POLICIES, load_policies
from ..events import PlanChosen, RunEvent
from ..operations import apply_changes
from ..planning import plan_changes
from ..workspace import Workspace, open_instance
from .objects import create_given
from .plan_values import describe_plan
from .stage import Stage, list_blocked

# Long work, such as moving data, has ended then, and no read waits for a write of an earlier run.
SECONDS_BETWEEN = 3600.0

Values = Mapping[str, Attribute]
"""What a run gives to variables."""


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
        return configuration.evaluate_live(built.desired, sessions, planned=planned)


# ── the result ──────────────────────────────────────────────────────────────────────────


def _judge_attempt(stage: Stage, run: SuiteRun, values: Values, attempt: Attempt) -> RunResult:
    blocked, subject = list_blocked(attempt.plan), stage.subject
    failures = (
        *find_failures(attempt.faults, subject.found, values, subject.mistakes),
        *(Failure(_name_block(address), fault) for address, fault in blocked),
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
