"""The operations that change something: apply, destroy, import one object.

Each takes the lock, makes or checks its plan, has it approved, reads everything that it touches
once more, does a dry run, and records every request before it sends it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..apply.report import Rerun
from ..apply.stop import Stop
from ..core.address import Address, parse_address
from ..core.diagnostics import Range
from ..core.errors import UsageError
from ..core.progress import ignore_event
from ..core.resource import Import
from ..core.value import FrozenMap
from ..plan.model import Mode, Options, Plan
from .applying import run_apply
from .configuration.policies import NO_POLICIES
from .judgement import check_accepted, check_fail_on
from .model import Applied, ApplyRequest, Approve, Listener
from .workspace import Workspace, require_workspace

CALLER = Range("command line", 1, 1, 1, 1)
"""The place of an import block that a command stands for."""
REPEATED = "the same"
"""How errors name the call that a program repeats; a command line names itself."""


def apply_changes(
    workspace: Workspace,
    plan: Plan | None = None,
    *,
    options: Options = Options(),
    approve: Approve | None = None,
    approved_by: str = "callback",
    expect: str | None = None,
    reviewed: FrozenMap | None = None,
    fail_on: Sequence[str] = (),
    wait: bool = True,
    lock_timeout: float = 0.0,
    verify_log: bool = False,
    progress: Listener = ignore_event,
    stop: Stop | None = None,
    rerun: Rerun | None = None,
) -> Applied:
    """Send exactly what a plan says, and verify it.

    plan: the plan to apply; without it, one is made from `options` under the lock. approve: called
    with the plan before anything is sent; only True approves. approved_by: what the log calls the
    approval. expect: the token of a reviewed plan (`Plan.token`): any other plan is refused, and
    `approve` is not called. reviewed: that plan as its JSON (`load_plan_document`), so that a
    refusal can say what differs. fail_on: refuse a plan with `deletes`, `blocked` changes,
    `drift`, a level, a harm, or findings of a rule or of a policy (`policy/NAME`). wait: wait until
    every live node shows the changes. lock_timeout: seconds to wait for the lock of the state.
    verify_log: check the whole audit log, and not only what came since its last checkpoint.
    progress: called with events (`RunEvent`). stop: lets another thread end the run in an orderly
    way.
    rerun: how errors name the way to continue.

    Raises KafkaformError. Its `applied` is not None if something can have been sent:
    AppliedInPart, OutcomeUnknown, Interrupted, or Blocked for a change that was left out. Raised
    before that: UsageError, ConfigurationError, ConnectError, DryRunRefused, PlanRefused, Locked,
    Blocked, StorageError.
    """
    require_workspace(workspace)
    if not isinstance(plan, Plan | None):
        raise TypeError(f"a Plan is needed, not {type(plan).__name__}: load a file with load_plan")
    # Its own options are a part of what was approved.
    if plan is not None and options != Options():
        raise UsageError(
            "a saved plan takes no planning flags", "Give them to `kafkaform plan -out=FILE`."
        )
    registry = workspace.configuration.registry
    ask = ApplyRequest(
        replace(options, accept=check_accepted(options.accept, registry)),
        plan,
        expect,
        reviewed,
        approve,
        approved_by,
        check_fail_on(fail_on, registry, list_policies=lambda: workspace.policies.ids),
        wait,
        lock_timeout,
        "apply",
        rerun=rerun or Rerun("apply", REPEATED, reviewed=plan is not None or expect is not None),
        verify_log=verify_log,
    )
    return run_apply(workspace, ask, progress=progress, stop=stop)


def destroy(
    workspace: Workspace,
    *,
    confirm: Sequence[str] = (),
    options: Options = Options(),
    approve: Approve | None = None,
    approved_by: str = "callback",
    expect: str | None = None,
    wait: bool = True,
    lock_timeout: float = 0.0,
    progress: Listener = ignore_event,
    stop: Stop | None = None,
    rerun: Rerun | None = None,
) -> Applied:
    """Delete everything that the state owns and that is not protected.

    confirm: the scope ids of exactly the systems that lose something, instead of `approve`.
    Everything else is as in `apply_changes`.
    """
    require_workspace(workspace)
    # Conditions of --fail-on do not go with a destroy, whose plan deletes on purpose.
    ask = ApplyRequest(
        replace(
            options,
            mode=Mode.DESTROY,
            accept=check_accepted(options.accept, workspace.configuration.registry),
        ),
        None,
        expect,
        None,
        approve,
        approved_by,
        (),
        wait,
        lock_timeout,
        "destroy",
        tuple(confirm),
        rerun=rerun or Rerun("destroy", REPEATED, reviewed=expect is not None),
    )
    return run_apply(workspace, ask, progress=progress, stop=stop)


def import_object(
    workspace: Workspace,
    address: str,
    id: str,
    *,
    lock_timeout: float = 0.0,
    progress: Listener = ignore_event,
    stop: Stop | None = None,
    rerun: Rerun | None = None,
) -> Applied:
    """Record a live object in the state as it is, without changing it.

    address: of a declared object; id: the id that an import block would have, such as the name.
    The next plan shows where block and object differ. Raises as `apply_changes` does.
    """
    return import_objects(
        workspace,
        [(address, id)],
        lock_timeout=lock_timeout,
        progress=progress,
        stop=stop,
        rerun=rerun,
    )


def import_objects(
    workspace: Workspace,
    objects: Sequence[tuple[str, str]],
    *,
    lock_timeout: float = 0.0,
    progress: Listener = ignore_event,
    stop: Stop | None = None,
    rerun: Rerun | None = None,
) -> Applied:
    """Record live objects, each an address and an id, in one run: see `import_object`."""
    require_workspace(workspace)
    # They go the way of import blocks, so that both are checked and recorded alike.
    blocks = [Import(check_address(address), id, CALLER) for address, id in objects]
    desired = replace(workspace.desired, imports=(*workspace.desired.imports, *blocks))
    # Policies judge what a plan changes, and an import only records what is there.
    workspace = replace(workspace, desired=desired, policies=NO_POLICIES)
    ask = ApplyRequest(
        Options(target=tuple(address for address, _ in objects)),
        approve=_approve_record,
        approved_by="import",
        lock_timeout=lock_timeout,
        command="import",
        imported=tuple(objects),
        rerun=rerun or Rerun("import", REPEATED),
    )
    return run_apply(workspace, ask, progress=progress, stop=stop)


def check_address(text: str) -> Address:
    """Parse an address. Raises UsageError."""
    try:
        return parse_address(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _approve_record(plan: Plan) -> bool:
    """Approve an import: the caller named the object, and the plan sends nothing."""
    return True
