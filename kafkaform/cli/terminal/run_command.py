"""Run the commands that change something: approval, advice, and how they show their end."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from ...apply.report import Rerun
from ...core.errors import KafkaformError
from ...plan.model import Mode, Options, Plan
from ...workflow.planning import list_option_words
from ...workflow.run import Applied
from .outlet import ELSEWHERE, Unwritable
from .screen import Screen
from .signals import stop_on_signals


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
            _show_applied(screen, error.applied, outputs, complete=False)
        raise
    _show_applied(screen, applied, outputs, complete=True)
    return applied


def _show_applied(screen: Screen, applied: Applied, outputs: bool, *, complete: bool) -> None:
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
    options: Options = Options(),  # noqa: B008  # it is frozen
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
