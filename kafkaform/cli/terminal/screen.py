"""Show a plan or an apply while it runs, ask for approval, and advise at its end: as text for
people, or as JSON lines for programs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import typer
from msgspec import Struct, field
from msgspec.structs import replace

from ...apply.obligations import describe_work
from ...apply.recovery import SUPERSEDED, Recovered
from ...apply.report import Report, Rerun, Result, Work
from ...apply.verify import Invisible, Sight
from ...core.change import Action, Verdict
from ...core.clock import SystemClock
from ...core.diagnostics import Diagnostics
from ...core.errors import KafkaformError, UsageError, exit_code
from ...core.progress import Reporter as ReportTo
from ...core.progress import ignore_event, report_slow_tasks
from ...core.resource import FaultClass, Output
from ...core.words import NEUTRAL
from ...plan.model import Mode, Options, Plan
from ...render import stream
from ...render.change_entries import join_names
from ...render.report import (
    ApplyReport,
    list_validation_events,
    make_apply_report,
    render_apply_summary,
    render_validation,
)
from ...render.terraform import Data
from ...render.text import Detail, inline, render_count
from ...version import VERSION
from ...workflow.model import Applied, DryRun, Note, PlanChosen, RunEvent
from ...workflow.plan_documents import read_words, render_plan
from ...workflow.planning import list_option_words
from .console import ELSEWHERE, Console, Unwritable, outlive_output
from .progress import open_bars
from .results import render_output, write_paged
from .signals import stop_on_signals

_WITHOUT_ASKING = {
    Mode.NORMAL: "Use --auto-approve, or review a plan and give its approval with --expect.",
    Mode.REFRESH: "Use --auto-approve, or review `plan --refresh-only` and give its approval with "
    "--expect.",
    Mode.DESTROY: "Name the clusters with --confirm CLUSTER, or review `plan --destroy` and give "
    "its approval with --expect.",
}
_ALTER_WITHOUT_ASKING = "Use --auto-approve."
_FEW = 5
"""How many steps with the same end get a line of their own."""


class TextScreen(Struct):
    """For people: plans and results on stdout, progress and questions on stderr."""

    console: Console
    bars: ReportTo = ignore_event
    """Draws the progress."""
    clear: Callable[[], None] = lambda: None
    """Takes the progress from the terminal, before anything else is written there."""
    detail: Detail = "grouped"
    """How much of each change is shown."""
    command: str = "apply"
    """The command that advice is for."""
    sends: bool = False
    """The command changes something after it has shown its plan."""
    pages: bool = False
    """Show a plan that is longer than the screen in the user's pager."""
    quiet: bool = False
    """Show results and errors only."""
    approved: bool = False
    """The command line has approved the plan already."""

    def progress(self, event: RunEvent) -> None:
        """Show one event of a run."""
        match event:
            case PlanChosen():
                _show_chosen(self, event)
            case DryRun():
                self.show_verdicts(event.plan, event.verdicts)
            case Recovered():
                self.show_recovered(event)
            case Work():
                self.show_work(event)
            case Note():
                self.note(event.text)
            case _:
                self.bars(event)

    def show_plan(self, plan: Plan) -> None:
        self.clear()
        colour, width = self.console.colour, self.console.width
        text = render_plan(
            plan, colour=colour, width=width, detail=self.detail, approval=self.needs_approval()
        )
        if self.pages:
            write_paged(self.console, text)
        else:
            self.console.write(text)

    def needs_approval(self) -> bool:
        """True if somebody may have to type the approval of the plan."""
        if self.sends:
            # On a terminal the command asks, and takes `yes`.
            return not self.console.interactive and not self.approved
        # On a terminal the command that follows the plan has the approval, unless it is quiet.
        return not self.console.interactive or self.quiet

    def show_verdicts(self, plan: Plan, verdicts: Mapping[str, Verdict]) -> None:
        self.clear()
        self.console.write("\n" + render_validation(plan, verdicts, read_words(plan)))

    def ask_approval(self, plan: Plan) -> bool:
        """Ask for `yes`, or for the cluster ID of each instance before a destroy."""
        if not self.console.interactive:
            raise UsageError(
                "No terminal to ask for approval, so nothing was applied.",
                _advise_approval(self.command, plan),
            )
        if plan.options.mode is Mode.DESTROY:
            names = sorted(name for name, item in plan.instances.items() if not item.unread)
            return all(self._type_cluster(name, plan) for name in names)
        # As in Terraform, "y" is not enough: too many fingers type it without reading.
        refreshes = plan.options.mode is Mode.REFRESH
        action = "Record this in the state" if refreshes else "Apply these changes"
        answer = self.console.ask(f'\n{action}? Only "yes" is accepted: ')
        return answer == "yes"

    def _type_cluster(self, instance: str, plan: Plan) -> bool:
        scope = plan.instances[instance].facts.scope_id
        system = read_words(plan).get(instance, NEUTRAL).system
        consequence = f'{_count_deletions(instance, plan)} that kafkaform manages on "{instance}"'
        question = f"\nThis deletes {consequence}. Type the {system} ID to confirm.\n"
        prompt = f"{system.capitalize()} ID ({inline(scope)}): "
        return self.console.ask(question + prompt) == scope

    def show_recovered(self, recovered: Recovered) -> None:
        for line in _render_recovered(recovered):
            self.note(line)
        if recovered.taken_in:
            outcomes = render_count(recovered.taken_in, "outcome")
            self.note(f"Took {outcomes} of an earlier run into the state.")
        if recovered.edits:
            edits = render_count(recovered.edits, "edit")
            self.note(f"Repeated {edits} that the state lacked (`state rm`, `state mv`, ...).")
        for identity in recovered.released:
            self.note(
                f"{inline(str(identity))} is no longer managed: an edit by an earlier version can "
                "have forgotten it. If it is yours, adopt it again."
            )

    def note(self, text: str) -> None:
        self.clear()
        self.console.note(text)

    def show_next(self, command: str) -> None:
        """Name the command that goes on from here, after the plan."""
        if not self.quiet:
            self.clear()
            self.console.write(f"\nNext: {inline(command)}")

    def show_work(self, work: Work) -> None:
        self.note(inline(describe_work(work)))

    def show_result(self, report: Report, run: str, plan: Plan, *, complete: bool) -> None:
        """Show how every change ended. complete: the command ends without an error."""
        self.clear()
        lines = make_report(report, run, plan, complete=complete)
        self.console.write("\n" + render_apply_summary(lines, colour=self.console.colour))
        self._show_late(report.invisible)

    def _show_late(self, late: tuple[Invisible, ...]) -> None:
        for text in _render_late(late):
            self.note(text)

    def show_outputs(self, outputs: tuple[Output, ...]) -> None:
        if outputs:
            self.clear()
            self.console.write("\nOutputs:\n\n")
            self.console.write_lines(map(render_output, outputs))

    def show_diagnostics(self, diagnostics: Diagnostics) -> None:
        self.console.show_diagnostics(diagnostics)


class JsonScreen(Struct):
    """For programs: one JSON object per line on stdout, in the shape of Terraform's."""

    console: Console
    command: str = "apply"
    """The command that advice is for."""
    sends: bool = False
    """The command changes something after it has shown its plan."""
    stream: stream.Stream = field(default_factory=lambda: stream.Stream(SystemClock()))

    def progress(self, event: RunEvent) -> None:
        """Write one event of a run."""
        match event:
            case PlanChosen():
                _show_chosen(self, event)
            case DryRun():
                self.show_verdicts(event.plan, event.verdicts)
            case Recovered():
                self.show_recovered(event)
            case Work():
                self.show_work(event)
            case Note():
                self.note(event.text)
            case _:
                self._put(stream.make_progress(event))

    def begin(self) -> None:
        self._put(stream.make_version(VERSION))

    def show_plan(self, plan: Plan) -> None:
        for line in self.stream.render_lines(stream.list_plan_events(plan, read_words(plan))):
            self.console.write(line)

    def show_verdicts(self, plan: Plan, verdicts: Mapping[str, Verdict]) -> None:
        for line in self.stream.render_lines(
            list_validation_events(plan, verdicts, read_words(plan))
        ):
            self.console.write(line)

    def ask_approval(self, plan: Plan) -> bool:
        raise UsageError(
            "--json asks no questions; nothing was sent", _advise_approval(self.command, plan)
        )

    def show_recovered(self, recovered: Recovered) -> None:
        for result in recovered.closed:
            self._put(stream.make_apply_result(result.change, result.outcome, 0.0))

    def note(self, text: str) -> None:
        self._put(stream.make_log(text))

    def show_next(self, command: str) -> None:
        self.note(f"Next: {command}")

    def show_work(self, work: Work) -> None:
        ticket = work.obligation.body["ticket"]
        self._put(stream.make_log(inline(describe_work(work))) | {"kafkaform": {"ticket": ticket}})

    def show_result(self, report: Report, run: str, plan: Plan, *, complete: bool) -> None:
        for result in report.results:
            self._put(
                stream.make_apply_result(result.change, result.outcome, result.duration_ms / 1000)
            )
        summary = make_report(report, run, plan, complete=complete)
        self._put(stream.make_apply_summary(summary))
        for text in _render_late(report.invisible):
            self.note(text)

    def show_outputs(self, outputs: tuple[Output, ...]) -> None:
        self._put(stream.make_outputs(outputs))

    def show_diagnostics(self, diagnostics: Diagnostics) -> None:
        for item in diagnostics:
            self._put(stream.make_diagnostic(item))

    def show_event(self, event: Data) -> None:
        """Write an event that is already data."""
        self._put(event)

    def _put(self, event: Data) -> None:
        self.console.write(self.stream.render_line(event))


Screen = TextScreen | JsonScreen


def _show_chosen(screen: Screen, event: PlanChosen) -> None:
    """Show the plan, unless an earlier run has shown it."""
    if not event.run:
        screen.show_plan(event.plan)
    # From here on the command runs to its end even if its output is lost: what it sends has to be
    # recorded, and nobody should repeat it because a pipe broke.
    if screen.sends:
        outlive_output()


def _count_deletions(instance: str, plan: Plan) -> str:
    """`all 16 objects`, or without "all" if some of the instance stay or are left out."""
    own = [change for change in plan.changes if change.identity.instance == instance]
    deleted = [change for change in own if change.action is Action.DELETE and not change.blocked]
    narrowed = plan.options.target or plan.options.exclude or plan.unchanged
    whole = len(deleted) == len(own) > 1 and not narrowed
    return f"{'all ' if whole else ''}{render_count(len(deleted), 'object')}"


def make_report(report: Report, run: str, plan: Plan, *, complete: bool) -> ApplyReport:
    """The results of a run as they are shown. complete: it ended without an error."""
    pairs = ((r.change, r.outcome) for r in report.results)
    blocked = sum(1 for change in plan.changes if change.blocked is not None)
    return make_apply_report(
        pairs,
        run,
        blocked=blocked,
        words=read_words(plan),
        complete=complete,
        removals=sum(work.is_removal for work in report.work),
    )


def _render_late(late: Collection[Invisible]) -> Iterator[str]:
    """One line for each applied object that a node does not show, or one for many alike."""
    # A node that lags behind does so with everything, and a right is missing on all nodes alike.
    alike: dict[tuple[object, ...], dict[str, Invisible]] = {}
    for item in late:
        hidden, silent = item.sight is Sight.HIDDEN, item.sight is Sight.SILENT
        node, reason = "" if hidden else item.node, item.reason if silent else ""
        key = (item.sight, item.noun, node, reason, item.deleted is None)
        alike.setdefault(key, {})[item.address] = item
    for items in alike.values():
        if len(items) <= _FEW:
            yield from (f"{inline(a)}: applied, {inline(item.text)}." for a, item in items.items())
            continue
        first = next(iter(items.values()))
        # What each of them shows instead is its own.
        first = replace(first, reason="") if first.sight is Sight.LATE else first
        rights = len({item.reason for item in items.values()}) - 1
        remainder = (
            f", and {rights:,} more like it" if first.sight is Sight.HIDDEN and rights else ""
        )
        names = join_names([inline(address) for address in items])
        objects = render_count(len(items), "object")
        yield f"{objects}: applied, {inline(first.text)}{remainder}: {names}."


def _render_recovered(recovered: Recovered) -> Iterator[str]:
    """One line for each step that was closed, or one for many with the same end."""
    alike: dict[str, list[str]] = {}
    for result in recovered.closed:
        alike.setdefault(_render_end(result), []).append(result.change.address)
    runs = f"run {recovered.runs[0]}" if len(recovered.runs) == 1 else f"{len(recovered.runs)} runs"
    for end, addresses in alike.items():
        if len(addresses) > _FEW:
            steps = render_count(len(addresses), "step")
            names = join_names([inline(address) for address in addresses])
            yield f"Recovered {steps} that {inline(runs)} left open: {end}: {names}."
        else:
            yield from (f"Recovered {inline(address)}: {end}." for address in addresses)


def _render_end(result: Result) -> str:
    """How a recovered step ended, and why if it failed."""
    fault = result.outcome.fault
    if fault is None:
        return result.outcome.status.value
    if fault.code == SUPERSEDED:
        return f"superseded, {fault.message}"
    if fault.kind is FaultClass.NOT_APPLIED:
        return f"not applied; {inline(fault.message)}"
    return f"{result.outcome.status.value} ({inline(fault.code)})"


def _advise_approval(command: str, plan: Plan) -> str:
    """How to approve a plan without a terminal."""
    # Such a plan cannot be saved or reviewed elsewhere, so it has no --expect.
    return (
        _ALTER_WITHOUT_ASKING
        if command in ("alter", "undo")
        else _WITHOUT_ASKING[plan.options.mode]
    )


@contextmanager
def open_screen(
    console: Console,
    *,
    json: bool,
    quiet: bool,
    detail: Detail = "grouped",
    command: str = "apply",
    sends: bool = True,
    pages: bool = False,
    approved: bool = False,
) -> Iterator[Screen]:
    """Open the screen of one run. Progress is drawn until the block ends.

    detail, command, sends, pages, approved: see `TextScreen`.
    """
    if json:
        screen = JsonScreen(console, command, sends)
        screen.begin()
        try:
            yield screen
        except KafkaformError as error:
            # Programs read errors from the same stream. The exit code must be that of the error,
            # even if the stream is lost and nobody can read it.
            outlive_output()
            screen.show_diagnostics(error.diagnostics)
            raise typer.Exit(exit_code(error)) from None
        return
    # --quiet is for scripts, which nobody helps out of a pager.
    pages = pages and console.interactive and not quiet
    with (
        open_bars(sys.stderr, SystemClock(), quiet=quiet) as bars,
        report_slow_tasks(bars),
    ):
        yield TextScreen(console, bars, bars.clear, detail, command, sends, pages, quiet, approved)


def show_run(screen: Screen, run: Callable[..., Applied], *, outputs: bool = True) -> Applied:
    """Run an operation, show its progress and its result, also after an error, and raise the error.

    run: takes `progress` and `stop`.
    """
    try:
        with stop_on_signals() as stop:
            applied = run(progress=screen.progress, stop=stop)
    # Only before the first send: after it, the rest of the output is dropped instead.
    except Unwritable as fault:
        raise KafkaformError(f"{fault}; nothing was sent", ELSEWHERE) from None
    except KafkaformError as error:
        if error.applied is not None:
            show_applied(screen, error.applied, outputs, complete=False)
        raise
    show_applied(screen, applied, outputs, complete=True)
    return applied


def show_applied(screen: Screen, applied: Applied, outputs: bool, *, complete: bool) -> None:
    """Show how a run ended. outputs: also what it has put out; complete: it ended without an
    error."""
    if applied.report is not None:
        screen.show_result(applied.report, applied.run, applied.plan, complete=complete)
    stays = applied.plan.options.mode is not Mode.DESTROY
    if outputs and stays and (applied.report is not None or applied.outputs):
        screen.show_outputs(applied.outputs)
    screen.show_diagnostics(applied.diagnostics)


def accept(plan: Plan) -> bool:
    """Approve a plan that a flag or a saved plan has approved."""
    return True


def advise(
    command: str,
    plan_file: Path | None = None,
    expect: str | None = None,
    options: Options = Options(),
) -> Rerun:
    """How the user continues if this command line is refused or ends in part.

    options: those of an `apply` that plans, so that the advice has its flags.
    """
    plan = [shlex.quote(str(plan_file))] if plan_file else []
    token = ["--expect", expect] if expect else []
    flags = map(shlex.quote, list_option_words(options))
    words = " ".join(("kafkaform", command, *plan, *token, *flags))
    repeat = f"`{words}`" if command == "apply" else f"the same `{words}`"
    return Rerun(command, repeat, reviewed=bool(plan or token))
