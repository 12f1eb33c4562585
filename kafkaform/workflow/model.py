"""The nouns of one run: what was asked for, the events that tell its progress, what it works with,
and what it did. Everything that leaves a run is without secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..apply.ledger import Ledger
from ..apply.recovery import Recovered
from ..apply.report import PLAIN_APPLY, Report, Rerun, Result, Work
from ..apply.stop import Stop
from ..audit.index import LogIndex
from ..core.change import Outcome, Verdict
from ..core.diagnostics import Diagnostics
from ..core.progress import Event, Message
from ..core.resource import Output
from ..core.secret import mask_secrets
from ..core.value import EMPTY, FrozenMap, Value
from ..plan.model import Options, Plan
from ..provider.contract import Session
from ..state.model import Lease, State
from .workspace import Reached, Workspace

IN_SPITE = "The run went on without this callback; what it did is recorded."
Approve = Callable[[Plan], bool]
"""Decides whether a plan is applied. Only True approves it."""


class Note(Struct, frozen=True):
    """A line for people that stays on the screen; a `Message` is about work in progress."""

    text: str


class PlanChosen(Struct, frozen=True):
    """The plan that was asked for, or that is going to be approved and applied."""

    plan: Plan
    run: str = ""
    """The earlier run that began or finished this plan, "" if there is none."""


class DryRun(Struct, frozen=True):
    """The result of a plan's dry run."""

    plan: Plan
    verdicts: Mapping[str, Verdict]
    """Step id -> verdict."""


RunEvent = Event | Note | PlanChosen | DryRun | Recovered | Work


Listener = Callable[[RunEvent], None]


class Announcer(Struct):
    """Hands events to the caller's callback, without secrets.

    Before anything is sent, what the callback raises ends the run. After that it cannot: the run
    goes on without the callback to its recorded end.
    """

    listener: Listener
    sending: bool = False
    """From now on an error of the callback does not end the run."""
    error: Exception | None = None
    """What the callback raised while the run was sending."""

    def __call__(self, event: RunEvent) -> None:
        if self.error is not None:
            return
        # Only these contain foreign text: error messages of systems can repeat a secret.
        if isinstance(event, Message | Note):
            event = replace(event, text=mask_secrets(event.text))
        try:
            self.listener(event)
        except Exception as error:
            if not self.sending:
                raise
            # A screen that fails must not leave a request without its outcome in the log.
            error.add_note(IN_SPITE)
            self.error = error


class ApplyRequest(Struct, frozen=True):
    """What the caller of a run asked for."""

    options: Options = Options()
    plan: Plan | None = None
    """Apply this plan and no other."""
    expect: str | None = None
    """The token of a reviewed plan: any other plan is refused."""
    reviewed: FrozenMap | None = None
    """The plan that `expect` approves, as its JSON: a refusal says what differs from it."""
    approve: Approve | None = None
    """Approves the plan, unless `expect` or `confirm` does."""
    approved_by: str = "callback"
    """What the log calls the approval."""
    fail_on: tuple[str, ...] = ()
    """Conditions of --fail-on."""
    wait: bool = True
    """Wait until every node shows the changes."""
    lock_timeout: float = 0.0
    """Seconds to wait for the lock of the state."""
    command: str = "apply"
    """The name of the command, for the lock, the log and messages."""
    confirm: tuple[str, ...] = ()
    """The scope ids of the systems that a destroy can delete from."""
    imported: tuple[tuple[str, str], ...] | None = None
    """Address and id of each object that is only recorded."""
    instance: str | None = None
    """The provider instance of a command that needs no block."""
    make: Callable[[Scene], Plan] | None = None
    """Makes the plan of a command that plans something else than the configuration."""
    undoes: str | None = None
    """The run that an `undo` undoes."""
    further: tuple[str, ...] = ()
    """The provider instances of that run, which nothing may declare or record any more."""
    rerun: Rerun = PLAIN_APPLY
    """How errors name the way to continue."""
    verify_log: bool = False
    """Check the whole log, and not only what came since its last checkpoint."""

    @property
    def names_objects(self) -> bool:
        """True for an `alter`: its user names each object, so all of them are needed, and none has
        to be ours."""
        return self.instance is not None


def list_named(ask: ApplyRequest) -> tuple[str, ...]:
    """The provider instance of a command that needs no block."""
    return () if ask.instance is None else (ask.instance,)


class Applied(Struct, frozen=True):
    """What a run did."""

    plan: Plan
    """The plan that was applied."""
    state: State
    """The state after the run."""
    run: str
    """The id of the run in the log."""
    report: Report | None = None
    """How each request ended, None if nothing was sent."""
    already: str = ""
    """The earlier run that had applied the whole plan, "" if there is none."""
    diagnostics: Diagnostics = ()
    """Rules of the configuration that do not hold after the apply."""

    @property
    def results(self) -> tuple[Result, ...]:
        """How each step of the plan ended."""
        return () if self.report is None else self.report.results

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs that the state records after the run; a sensitive one has no value."""
        return read_recorded_outputs(self.state.outputs)


class Scene(Struct, frozen=True):
    """Everything that one apply works with under the lock."""

    space: Workspace
    ask: ApplyRequest
    announce: Announcer
    stop: Stop
    reached: Reached
    """The systems that the run works with."""
    ledger: Ledger
    """The state and the log as the run changes them."""
    log_index: LogIndex
    """The log as it was when the run began, with what earlier runs left open closed."""
    lineage: str
    """The lineage that plans are made with: the one that was saved, or an empty one."""
    lease: Lease

    @property
    def sessions(self) -> Mapping[str, Session]:
        """The open session of each provider instance."""
        return self.reached.sessions

    @property
    def planned(self) -> State:
        """The state as plans see it."""
        # A first run has given its state a lineage already. The plan that was reviewed before it
        # had none, and the approval covers the lineage.
        return replace(self.ledger.state, lineage=self.lineage)


class Chosen(Struct, frozen=True):
    """The plan that a run applies."""

    plan: Plan
    outcomes: Mapping[str, Outcome]
    """The outcomes of steps that an open run has applied, by step id."""
    already: str = ""
    """The run that had applied all of the plan, "" if there is none."""
    made_now: bool = False
    """The plan was made in this run, and not read from a file or the log. Only then are its rows
    of unchanged objects recorded, because no approval covers them."""


def clean_report(report: Report) -> Report:
    """The report without secrets."""
    # Systems repeat in their error messages what was sent, such as an invalid config value.
    if report.stopped is not None:
        report.stopped.rewrite(mask_secrets)
    return replace(
        report,
        results=tuple(map(_clean_result, report.results)),
        invisible=tuple(
            replace(item, reason=mask_secrets(item.reason)) for item in report.invisible
        ),
    )


def _clean_result(result: Result) -> Result:
    fault = result.outcome.fault
    if fault is None:
        return result
    fault = replace(fault, message=mask_secrets(fault.message), advice=mask_secrets(fault.advice))
    return replace(result, outcome=replace(result.outcome, fault=fault))


def record_outputs(outputs: Sequence[Output], recorded: FrozenMap = EMPTY) -> FrozenMap:
    """The outputs as the state records them: sensitive ones without their values, and no secret of
    this run. Deferred ones, whose objects were not read, stay as they are recorded."""
    return FrozenMap(
        {
            **{
                output.name: recorded[output.name]
                for output in outputs
                if output.deferred and output.name in recorded
            },
            **{
                output.name: FrozenMap(
                    value=None if output.sensitive else _mask_value(output.value),
                    sensitive=output.sensitive,
                )
                for output in outputs
                if not output.deferred
            },
        }
    )


def _mask_value(value: Value) -> Value:
    """The value with the secrets in its strings masked."""
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, FrozenMap):
        return FrozenMap({mask_secrets(key): _mask_value(item) for key, item in value.items()})
    return tuple(map(_mask_value, value)) if isinstance(value, tuple) else value


def read_recorded_outputs(outputs: FrozenMap) -> tuple[Output, ...]:
    """The outputs that a state records."""
    return tuple(Output(name, o["value"], o["sensitive"]) for name, o in sorted(outputs.items()))
