"""`kafkaform alter`: change what no block manages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from ...core.errors import Interrupted, KafkaformError, OtherSystem, UsageError
from ...plan.model import Options
from ...provider.commands import Alteration
from ...render.text import inline, render_json, render_page
from ...workflow.alter import make_workspace, plan_alteration, rehearse
from ...workflow.applying import run_apply
from ...workflow.model import ApplyRequest
from ..options.flags import take_flags
from ..options.plan_flags import IDLE, VALIDATED, RunOptions, read_run_options
from ..options.provider_commands import Opener, get_terminal_width, make_app, take_connection
from ..terminal.console import Console
from ..terminal.screen import accept, advise, open_screen, show_run

READS = "this shell only reads; nothing was sent"


def _carry_out(make: Callable[..., Alteration], provider: str) -> Callable[..., None]:
    """A command that carries out the alteration that `make` makes of its flags."""

    @take_connection(provider)
    @take_flags("doing", read_run_options)
    @take_flags("alteration", make, first=True)
    def command(opener: Opener, doing: RunOptions, alteration: Alteration) -> None:
        _alter(replace(opener, provider=provider), doing, alteration)

    return command


app = make_app("alter", _carry_out)


def _alter(opener: Opener, doing: RunOptions, alteration: Alteration) -> None:
    """Plan, ask, apply, verify, and describe the result; or only plan. Raises the error of the exit
    code."""
    console = replace(opener.console, interactive=opener.console.interactive and doing.input)
    connection = opener.resolve_connection()
    named = opener.inputs.direct or opener.inputs.provider is not None
    if connection.configuration is None and not named:
        # Questions take the only cluster of a repository. What changes it has to be meant.
        raise UsageError(
            "alter at the top of a repository needs the name of the cluster",
            "Add --provider cluster.NAME, or change to the folder that the object belongs to.",
        )
    # The id first: without a configuration it names the folder of the state and the log.
    with opener.open_session() as session:
        scope_id = session.facts.scope_id
    # A shell that only reads shows the plan all the same, and then refuses it.
    sends = not doing.validate and (opener.shell is None or opener.shell.writes)
    with open_screen(
        console,
        json=doing.json,
        quiet=doing.quiet,
        detail=doing.detail,
        command="alter",
        sends=sends,
    ) as screen:
        space = make_workspace(connection, scope_id, doing.state, doing.policies, keep=sends)
        ask = ApplyRequest(
            Options(accept=doing.accept),
            approve=accept if doing.auto_approve else screen.ask_approval,
            approved_by="auto_approve" if doing.auto_approve else "terminal",
            wait=doing.wait,
            lock_timeout=doing.lock_timeout,
            command="alter",
            instance=connection.instance,
            make=lambda scene: plan_alteration(scene, connection, alteration),
            rerun=advise("alter"),
        )
        if not sends:
            plan = rehearse(space, ask, screen.progress, validate=doing.validate)
            if not doing.validate:
                raise UsageError(READS, "Start it with --allow-apply to make changes.")
            screen.note(VALIDATED if plan.effective else IDLE)
            return
        applied = show_run(screen, partial(run_apply, space, ask), outputs=False)
        if applied.report is None:
            screen.note(IDLE)
    _show_documents(opener, console, alteration, json=doing.json)


def _show_documents(
    opener: Opener, console: Console, alteration: Alteration, *, json: bool
) -> None:
    """Describe what was altered. A failure is only noted: the change itself is applied."""
    try:
        # The apply has closed its sessions. These documents are read as anybody would read them.
        with opener.open_session() as session:
            documents = [(ask, ask.read(session).document) for ask in alteration.documents]
    except (Interrupted, OtherSystem):
        raise
    except KafkaformError as error:
        # Such as a group that went with its last offset.
        console.note(f"The result cannot be described: {inline(error.message)}")
        return
    for question, document in documents:
        if json:
            console.write(render_json(document))
        else:
            width = get_terminal_width(console)
            console.write_lines(["", *render_page(question.page(document), width)])
