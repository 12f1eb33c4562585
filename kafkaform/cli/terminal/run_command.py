"""Run the commands that change something: approval, advice, and how they show their end."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from ...apply.again import Again
from ...core.errors import KafkaformError
from ...plan.model import Mode, Options, Plan
from ...workflow.planning import list_option_words
from ...workflow.run import Applied
from .outlet import ELSEWHERE, Unwritable
from .screen import Screen
from .signals import stop_on_signals


def show_run(shown: Screen, run: Callable[..., Applied], *, outputs: bool = True) -> Applied:
    """Run an operation, show its progress and its result, also after an error, and raise the error.

    run: takes `progress` and `stop`.
    """
    try:
        with stop_on_signals() as stop:
            applied = run(progress=shown.progress, stop=stop)
    # Only before the first send: after it, the rest of the output is dropped instead.
    except Unwritable as fault:
        raise KafkaformError(f"{fault}; nothing was sent", ELSEWHERE) from None
    except KafkaformError as error:
        if error.applied is not None:
            _show_applied(shown, error.applied, outputs, complete=False)
        raise
    _show_applied(shown, applied, outputs, complete=True)
    return applied


def _show_applied(shown: Screen, applied: Applied, outputs: bool, *, complete: bool) -> None:
    if applied.report is not None:
        shown.show_result(applied.report, applied.run, applied.plan, complete=complete)
    stays = applied.plan.options.mode is not Mode.DESTROY
    if outputs and stays and (applied.report is not None or applied.outputs):
        shown.show_outputs(applied.outputs)
    shown.show_diagnostics(applied.diagnostics)


def accept(plan: Plan) -> bool:
    """Approve a plan that a flag or a saved plan has approved."""
    return True


def advise(
    command: str,
    plan_file: Path | None = None,
    expect: str | None = None,
    options: Options = Options(),  # noqa: B008  # it is frozen
) -> Again:
    """How the user continues if this command line is refused or ends in part.

    options: those of an `apply` that plans, so that the advice has its flags.
    """
    plan = [shlex.quote(str(plan_file))] if plan_file else []
    token = ["--expect", expect] if expect else []
    flags = map(shlex.quote, list_option_words(options))
    words = " ".join(("kafkaform", command, *plan, *token, *flags))
    same = f"`{words}`" if command == "apply" else f"the same `{words}`"
    return Again(command, same, reviewed=bool(plan or token))
