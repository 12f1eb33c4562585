"""Make the plan of a workspace. Takes no lock and writes nothing.

A plan says when and by whom each drifted object was last set from here, and who changed it since.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from ..apply.ledger import complete_records, describe_bindings
from ..apply.obligations import add_owed_removals, ask_progress, find_owed, find_settings
from ..apply.preflight import refuse_failed, run_first_pass
from ..apply.recovery import replay_log
from ..apply.secrets import (
    find_missing,
    find_plan_secrets,
    make_missing_error,
    refuse_exposed,
    resolve_plan_secrets,
)
from ..audit.history import UNDO
from ..audit.index import LogIndex, list_pending
from ..audit.records import parse_time, render_time
from ..audit.writes import LastWrite, ObjectWrites
from ..core.address import matches
from ..core.change import BOOKKEEPING, Action, Change, Path, PathChange, Verdict, add_findings
from ..core.diagnostics import has_errors, suggest
from ..core.errors import Blocked, ConfigurationError, UsageError
from ..core.progress import ignore_event
from ..core.resource import Desired, Identity, World
from ..core.secret import keep_secrets
from ..fleet import answers
from ..plan.build import PlanHeader, make_plan
from ..plan.completion import complete_declared
from ..plan.diff import render_path
from ..plan.drift import refuse_idle_options
from ..plan.judge import explain_lifts, judge_plan, list_ended_lifts, list_new_breaches
from ..plan.model import Mode, Options, Plan, seal_plan
from ..plan.observe import read_world
from ..plan.rules import UNDONE, list_breaches
from ..plan.select import names_unread, set_untyped_aside
from ..provider.contract import Session
from ..render.text import render_count
from ..state.model import State
from ..version import VERSION
from .configuration.policies import NO_POLICIES, find_today, make_judge, refuse_other_policies
from .configuration.untrusted import dry_run_error
from .judgement import check_accepted, describe_conditions, refuse_idle_accepted
from .model import Announcer, DryRun, Listener, Note, PlanChosen
from .outside_changes import find_fleet_root
from .workspace import (
    Reached,
    Records,
    Workspace,
    find_parked_objects,
    find_providers,
    has_grown,
    list_display_settings,
    open_selected,
    read_records,
    refuse_lost_state,
    require_workspace,
)

NEVER = "never set here"
UNKNOWN = "the audit log does not show when it was set here"
OUTSIDE = "changed outside kafkaform"

SETTLE_WINDOW_SECONDS = 60.0
_ROUNDS = 3
"""How often a plan is made, if an apply that runs at the same time seems to block it."""
NO_SECRETS = (
    "An apply of this plan needs it. A job that has no secrets on purpose plans with --untrusted."
)


def plan_changes(
    workspace: Workspace,
    options: Options = Options(),
    *,
    validate: bool = False,
    verify_log: bool = False,
    progress: Listener = ignore_event,
) -> Plan:
    """Find out what an apply would change. It only reads, and takes no lock.

    validate: also do the dry run that an apply does first. verify_log: check the whole audit log,
    and not only what came since its last checkpoint. progress: called with events; the last
    ones are a `PlanChosen` and, after a dry run, a `DryRun`.

    Raises DryRunRefused with every step that the dry run refuses, ConfigurationError for faults,
    for a plan that contains a secret and for secrets that an apply would not find, UsageError for
    an option that matches nothing, ConnectError, PlanRefused, StorageError.
    """
    require_workspace(workspace)
    if validate:
        _refuse_useless_dry_run(workspace, options)
    accepted = check_accepted(options.accept, workspace.configuration.registry)
    options = replace(options, accept=accepted)
    announce = Announcer(progress)
    with keep_secrets(workspace.known_secrets):
        records = workspace.records
        for rounds_left in reversed(range(_ROUNDS)):
            records = records or _load_records(workspace, verify_log)
            state, index = records.state, records.index
            refuse_lost_state(records.stored, index, workspace)
            # The log is ahead of the state after a crash: its outcomes count, and an intent
            # without an outcome is only pending, because its request may have been lost.
            if index.unsaved:
                state = replay_log(index, state).state
            with open_selected(workspace, state, index, options) as reached:
                plan = plan_workspace(workspace, reached, state, index, options, announce)
                # No lock is held: an apply that runs at the same time creates objects that look
                # foreign to the state and the log that were read before. Then read all again.
                blocked = any(change.blocked for change in plan.changes)
                if rounds_left and blocked and has_grown(workspace.sink, index):
                    records = None
                    continue
                verdicts = (
                    run_first_pass(plan, (), reached.sessions, workspace.clock, announce)
                    if validate
                    else {}
                )
                break
        # Before the plan is shown, which masks them. A missing one is an error before the merge.
        # A plan of files that are not trusted looks up none: it could be made to show them.
        needed = {} if workspace.configuration.inputs.untrusted else find_plan_secrets(plan)
        missing = find_missing(needed, workspace.configuration.find_secrets) if needed else {}
        announce(PlanChosen(plan))
        if missing:
            raise make_missing_error(missing, NO_SECRETS)
        if validate:
            refuse_dry_run(workspace, plan, verdicts, announce)
        else:
            refuse_exposed(plan)
    return plan


def _load_records(workspace: Workspace, verify_log: bool) -> Records:
    stored = workspace.backend.load().state
    return read_records(stored, workspace.sink, whole=verify_log)


def _refuse_useless_dry_run(workspace: Workspace, options: Options) -> None:
    """Raises UsageError for a dry run of untrusted files, or of a plan that sends nothing."""
    if workspace.configuration.inputs.untrusted:
        raise dry_run_error()
    if options.mode is Mode.REFRESH:
        raise UsageError(
            "--validate cannot be combined with --refresh-only",
            "A refresh-only plan sends nothing, so there is nothing to try out.",
        )


def refuse_dry_run(
    workspace: Workspace, plan: Plan, verdicts: Mapping[str, Verdict], announce: Announcer
) -> None:
    """Announce the result of the dry run. Raises ConfigurationError for missing secrets,
    DryRunRefused with every refused step."""
    announce(DryRun(plan, verdicts))
    resolve_plan_secrets(plan, workspace.configuration.find_secrets)
    refuse_exposed(plan)
    refuse_failed(verdicts, {step.id: step for change in plan.effective for step in change.steps})


def plan_workspace(
    space: Workspace,
    reached: Reached,
    state: State,
    index: LogIndex,
    options: Options,
    announce: Announcer,
) -> Plan:
    """Read the live objects and make the plan."""
    state, index = complete_records(state, index, reached.bindings)
    for line in describe_bindings(reached.bindings, space.words, "The next apply records that."):
        announce(Note(line))
    if options.mode is Mode.REFRESH:
        refuse_idle_options(options)
    desired, sessions = space.desired, reached.sessions
    if options.adopt:
        _refuse_idle_adopt(desired, options)
    refuse_idle_accepted(options.accept, desired, state)
    parked = find_parked_objects(space, sessions, state, index, space.clock.now(), options.mode)
    world = _read_typed(
        space, reached, replace(desired, parked=parked), state, index, options, announce
    )
    desired = complete_declared(desired, space.types, sessions, world)
    # Only now is it known what the systems have set, such as ids that outputs show.
    if desired.settles:
        planned = options.mode is not Mode.REFRESH
        desired = space.configuration.evaluate_settled(desired, sessions, planned=planned)
    if has_errors(desired.diagnostics):
        raise ConfigurationError("the configuration has faults", diagnostics=desired.diagnostics)
    lifted = space.policies.list_lifted(find_today(space.clock))
    plan = make_plan(
        replace(desired, parked=parked),
        world,
        state,
        list_pending(index),
        {i: p for i, p in find_providers(space, world).items() if i in world},
        reached.look_further(space, world),
        options,
        _make_header(space, state),
        tuple(lifted),
    )
    if plan.drifted:
        plan = add_last_writes(plan, index)
    plan = note_undone(plan, index)
    # A refresh-only plan changes nothing on a system: no policy judges it, and what is to be
    # removed there stays.
    if options.mode is Mode.REFRESH:
        return plan
    return add_removals(judge_by_policies(plan, space), space, sessions, index)


def judge_by_policies(plan: Plan, space: Workspace) -> Plan:
    """The plan with what the policies of the workspace find, and with the waivers that lift
    something."""
    if space.policies is NO_POLICIES:
        return plan
    lifted = space.policies.list_lifted(find_today(space.clock))
    judge = make_judge(space.policies, space.words, space.clock, len(plan.changes))
    return judge_plan(explain_lifts(plan, lifted), judge, space.policies.folders)


def _make_header(space: Workspace, state: State) -> PlanHeader:
    head = state.audit_head
    return PlanHeader(
        created=render_time(space.clock.now()),
        kafkaform_version=VERSION,
        audit_head=f"{head.seq}/{head.hash}" if head else "",
        display=list_display_settings(space),
    )


def _read_typed(
    space: Workspace,
    reached: Reached,
    desired: Desired,
    state: State,
    index: LogIndex,
    options: Options,
    announce: Announcer,
) -> World:
    """Read the live objects, without those whose type is not known. Raises StorageError if the
    options do not leave these out."""
    recorded = find_providers(space, {identity.instance for identity in state.objects})
    typed, _ = set_untyped_aside(state, recorded, options)
    return read_world(
        reached.sessions,
        desired,
        typed,
        space.clock,
        unread=reached.unread,
        settle=_choose_settle_time(space, reached.sessions, index),
        report=announce,
    )


def add_removals(
    plan: Plan, space: Workspace, sessions: Mapping[str, Session], index: LogIndex
) -> Plan:
    """Add what earlier runs have left to remove to the plan."""
    if not index.obligations:
        return plan
    owed_removals = find_owed(index.grounds, index.obligations)
    return add_owed_removals(
        plan, owed_removals, ask_progress(find_settings(owed_removals.open), sessions)
    )


def _refuse_idle_adopt(desired: Desired, options: Options) -> None:
    """Raises UsageError for an --adopt that matches nothing, because that is a typing error."""
    addresses = [str(item.address) for item in desired.declared]
    for glob in options.adopt:
        unread = any(names_unread((glob,), block) for block in desired.unread)
        if not unread and not any(matches(glob, address) for address in addresses):
            raise UsageError(
                f"--adopt {glob!r} matches no declared object",
                suggest(glob, addresses) or "Only what the configuration declares can be adopted.",
            )


def _choose_settle_time(
    space: Workspace, sessions: Mapping[str, Session], index: LogIndex
) -> float:
    """How long an object must stay missing before it counts as absent, in seconds."""
    # Systems apply changes with a delay: for a while after a write, a read can miss the object.
    last = max((parse_time(run.time) for run in index.runs.values()), default=0.0)
    if space.clock.now() - last > SETTLE_WINDOW_SECONDS:
        return 0.0
    return max((session.facts.operation_timeout for session in sessions.values()), default=0.0)


def _name_change(change: Change) -> str:
    """Its address, with the place of its block."""
    range = change.range
    return change.address if range is None else f"{change.address} ({range.file}:{range.line})"


def refuse_if_blocked(plan: Plan, fail_on: Sequence[str], *, leaves_out: bool = True) -> None:
    """Raises Blocked for changes that stop an apply, and for --fail-on conditions that hold.

    leaves_out: what cannot be read is left out. A command that names its objects needs all of them.
    """
    stopping = list(plan.list_blocked(stopping=True))
    if not leaves_out:
        stopping += plan.left_out
    if stopping:
        raise Blocked(
            f"{render_count(len(stopping), 'change')} cannot be made: "
            + ", ".join(map(_name_change, stopping[:5]))
            + (" ..." if len(stopping) > 5 else ""),
            "See each blocked change above for its reason and fix.",
        )
    advice = "Without this --fail-on it can be applied."
    if not (plan.effective or plan.outputs):
        advice = "There is nothing else to apply."
    conditions = describe_conditions(plan, fail_on)
    if conditions:
        raise Blocked(
            f"--fail-on: the plan has {' and '.join(conditions)}; nothing was sent",
            f"Look at the plan. {advice}",
        )


def refuse_new_breaches(plan: Plan, space: Workspace) -> None:
    """Judge a reviewed plan again: a waiver can have ended since.

    Raises PlanRefused if other policies from outside judged it, and Blocked for each change that
    the policies forbid now.
    """
    refuse_other_policies(plan, space.policies)
    if breaches := list_breaches(plan, space.desired.fence, space.providers):
        change, finding = breaches[0]
        suffix = f" (and {len(breaches) - 1} more)" if len(breaches) > 1 else ""
        raise Blocked(
            f"{change.address}: {finding.text}{suffix}", f"{finding.fix} Nothing was sent."
        )
    if space.policies is NO_POLICIES:
        return
    judge = make_judge(space.policies, space.words, space.clock, len(plan.changes))
    lifted = space.policies.list_lifted(find_today(space.clock))
    if ended := list_ended_lifts(plan, lifted):
        raise Blocked(
            "the waivers of this plan have ended: "
            + ", ".join(change.address for change in ended[:5])
            + (" ..." if len(ended) > 5 else ""),
            "Plan again and look at what blocks these changes. Nothing was sent.",
        )
    broken = list_new_breaches(plan, judge_plan(plan, judge, plan.policies))
    if broken:
        raise Blocked(
            f"the policies forbid {render_count(len(broken), 'change')} of this plan now: "
            + "; ".join(f"{c.address}: {c.blocked.text}" for c in broken[:5] if c.blocked)
            + (" ..." if len(broken) > 5 else ""),
            "Plan again and look at what the policies say. Nothing was sent.",
        )


def find_unmet(plan: Plan) -> Blocked | None:
    """The error for changes that were asked for and that an apply of the plan leaves out; None if
    there are none. The apply makes all other changes."""
    unmet = [change.address for change in plan.list_unmet()]
    conditions = list(dict.fromkeys((*unmet, *plan.unevaluated)))
    if not conditions:
        return None
    named = ", ".join(conditions[:5]) + (" ..." if conditions[5:] else "")
    return Blocked(
        f"{render_count(len(conditions), 'object')} {'is' if len(conditions) == 1 else 'are'} "
        "blocked and left as "
        f"{'it is' if len(conditions) == 1 else 'they are'}: {named}",
        "See each blocked change above for its reason and fix.",
    )


def render_apply_command(plan: Plan) -> str:
    """The command that applies exactly this plan after its review, with its planning flags."""
    return shlex.join(["kafkaform", *list_apply_words(plan)])


def list_apply_words(plan: Plan) -> list[str]:
    """The command and its planning flags, which apply exactly this plan after its review."""
    command = "destroy" if plan.options.mode is Mode.DESTROY else "apply"
    policies = [f"--policy={folder}" for folder in plan.policies.folders]
    flags = list_option_words(plan.options) if plan.options != Options() else []
    return [command, "--expect", plan.token, *flags, *policies]


def list_option_words(options: Options) -> list[str]:
    """The flags of an apply, or of a destroy, that mean these options."""
    words = ["--refresh-only"] if options.mode is Mode.REFRESH else []
    # A destroy takes nothing over and has no limit for other losses, so it has no such flags.
    destroys = options.mode is Mode.DESTROY
    for flag, globs in (
        ("--target", options.target),
        ("--exclude", options.exclude),
        ("--adopt", () if destroys else options.adopt),
    ):
        words += [f"{flag}={glob}" for glob in globs]
    if options.max_deletes is not None:
        words.append(f"--max-deletes={options.max_deletes}")
    if options.max_data_loss is not None and not destroys:
        words.append(f"--max-data-loss={options.max_data_loss}")
    if options.impact is not Options().impact:
        words.append(f"--impact={options.impact}")
    words += ["--sample"] * options.sample
    return [*words, *(f"--accept={name}" for name in options.accept)]


def note_undone(plan: Plan, index: LogIndex) -> Plan:
    """The plan that says of each change which `undo` it takes back."""
    undos = {run.run for run in index.runs.values() if run.command == UNDO}
    changing = {change.identity for change in plan.effective if change.steps}
    if not undos or not changing:
        return plan

    def note(change: Change) -> Change:
        paths_by_write: dict[LastWrite, list[Path]] = {}
        # A creation or a deletion takes back what made or removed the object as a whole.
        whole = change.action in (Action.CREATE, Action.DELETE)
        paths = [()] if whole else [item.path for item in change.paths]
        for path, write in _find_writes(index, change.identity, paths).items():
            if write is not None and write.run in undos:
                paths_by_write.setdefault(write, []).append(path)
        return add_findings(
            change,
            *(
                UNDONE.find(
                    f"{', '.join(filter(None, map(render_path, paths))) or 'it'} was "
                    f"{_render_undo(write)}; revert the configuration, or this apply makes it again"
                )
                for write, paths in paths_by_write.items()
            ),
        )

    noted = (note(c) if c.identity in changing else c for c in plan.changes)
    return seal_plan(replace(plan, changes=tuple(noted)))


def add_last_writes(plan: Plan, index: LogIndex) -> Plan:
    """The plan with `Change.last_set` of its drifted objects."""
    last = {c.identity: _find_writes(index, c.identity, _list_drifted(c)) for c in plan.drifted}
    since = _ask_fleet(plan, plan.drifted, last)

    def describe(change: Change) -> str:
        texts = [
            _render_writes(last[change.identity], recorded=change.identity in index.writes),
            since.get(change.identity, ""),
        ]
        return "; ".join(filter(None, texts))

    return replace(
        plan,
        changes=tuple(
            replace(change, last_set=describe(change)) if change.drift else change
            for change in plan.changes
        ),
    )


def tell_writers(
    index: LogIndex, plan: Plan, differing: Mapping[Identity, Collection[Path]]
) -> Mapping[Identity, str]:
    """Who changed these objects since the plan was made, as text. differing: object -> the paths
    that are not as the plan saw them."""
    changed = [
        replace(change, drift=tuple(PathChange(p, None, None) for p in differing[change.identity]))
        for change in plan.changes
        if change.identity in differing
    ]
    last = {identity: _find_writes(index, identity, paths) for identity, paths in differing.items()}
    since = _ask_fleet(plan, changed, last)

    def describe(identity: Identity) -> str:
        # A record can differ in what only the state has, such as a label.
        whole = () in differing[identity] and identity in index.writes
        newest = index.writes[identity].last if whole else _find_newest(last[identity])
        if newest is not None and newest.time >= plan.created:
            return _render_change(newest)
        texts = (
            OUTSIDE,
            _render_writes(last[identity], recorded=identity in index.writes),
            since.get(identity, ""),
        )
        return "; ".join(filter(None, texts))

    return {identity: describe(identity) for identity in differing}


def tell_writers_since(
    index: LogIndex, plan: Plan, identities: Collection[Identity], since: str
) -> Mapping[Identity, str]:
    """Who changed these objects of a new plan since an earlier one was made, as text, without those
    of which nobody knows. since: when that was, RFC 3339."""
    drifted = {change.identity: change.last_set for change in plan.drifted}
    writers = {}
    for identity in identities:
        write = index.writes[identity].last if identity in index.writes else None
        if write is not None and write.time >= since:
            writers[identity] = _render_change(write)
        elif identity in drifted:
            writers[identity] = f"{OUTSIDE}; {drifted[identity]}"
    return writers


def _list_drifted(change: Change) -> Sequence[Path]:
    # An object that is gone has drifted in all of its paths; the step that set it last says enough.
    gone = change.action in (Action.CREATE, Action.FORGET)
    return [()] if gone else [item.path for item in change.drift]


def _find_writes(
    index: LogIndex, identity: Identity, paths: Collection[Path]
) -> Mapping[Path, LastWrite | None]:
    """Path -> the step that set it last, None if the log does not show it."""
    writes = index.writes.get(identity, ObjectWrites())
    return {
        path: writes.paths.get(path) if path and writes.paths else _find_object_write(writes)
        for path in paths
    }


def _find_object_write(writes: ObjectWrites) -> LastWrite | None:
    """The step that set something of an object last. A label that only the state has is nothing of
    it; of an object that was deleted here, nothing else is known."""
    values = {path: write for path, write in writes.paths.items() if path[0] not in BOOKKEEPING}
    return _find_newest(values) or writes.last


def _find_newest(writes: Mapping[Path, LastWrite | None]) -> LastWrite | None:
    steps = [write for write in writes.values() if write is not None]
    return max(steps, key=lambda write: write.time, default=None)


def _ask_fleet(
    plan: Plan,
    changed: Sequence[Change],
    last: Mapping[Identity, Mapping[Path, LastWrite | None]],
) -> Mapping[Identity, str]:
    """What the fleet's tables know about who changed these objects, whose drift names the paths."""
    root = find_fleet_root()
    if root is None:
        return {}
    scopes = {instance: item.facts.scope_id for instance, item in plan.instances.items()}
    times = {
        identity: write.time
        for identity, writes in last.items()
        if (write := _find_newest(writes)) is not None
    }
    return answers.history.find_outside_changes(root, scopes, changed, times)


def _render_writes(writes: Mapping[Path, LastWrite | None], *, recorded: bool) -> str:
    """When and by whom each path was last set; paths that one step set together are told once.

    recorded: the log shows what was set of the object.
    """
    paths: dict[LastWrite | None, list[str]] = {}
    for path, write in writes.items():
        paths.setdefault(write, []).append(render_path(path))
    if not any(paths):
        return NEVER if recorded else UNKNOWN
    texts = {
        write: NEVER
        if write is None
        else f"last set here {_render_time(write)} by {write.actor} (run {write.run})"
        for write in paths
    }
    if len(paths) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{', '.join(names)}: {texts[write]}" for write, names in paths.items())


def _render_undo(write: LastWrite) -> str:
    return f"undone by run {write.run} on {_render_time(write)} by {write.actor}"


def _render_change(write: LastWrite) -> str:
    return f"changed {_render_time(write)} by {write.actor} (run {write.run})"


def _render_time(write: LastWrite) -> str:
    return datetime.fromisoformat(write.time).strftime("%Y-%m-%d %H:%M UTC")
