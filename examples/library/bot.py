"""A bot that makes a cluster what its configuration says, within limits, and reports as JSON lines.

    python bot.py [--max-changes N] [FOLDER]

It applies a plan by itself if that deletes nothing and changes few objects. Any other plan it
shows, with the approval that a reviewer can hand to `kafkaform apply --expect`.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial

import kafkaform
from kafkaform import Applied, KafkaformError, Message, Note, Plan, RunEvent


def say(kind: str, **facts: object) -> None:
    """One JSON line on standard output."""
    sys.stdout.write(json.dumps({"event": kind, **facts}) + "\n")
    sys.stdout.flush()


def describe(plan: Plan) -> list[dict[str, object]]:
    """The changes of a plan, as a chat message or a dashboard would list them."""
    return [
        {
            "address": change.address,
            "action": change.action.value,
            "paths": [".".join(item.path) for item in change.paths],
            "blocked": change.blocked.text if change.blocked else None,
        }
        for change in plan.changes
    ]


def approve(max_changes: int, plan: Plan) -> bool:
    """Whether the bot may apply this plan without a human."""
    return not plan.taking and len(plan.effective) <= max_changes


def watch(event: RunEvent) -> None:
    """Report what goes on; bars and the rest are not for a log."""
    match event:
        case Message(text=text) | Note(text=text):
            say("progress", text=text)


def report(applied: Applied) -> None:
    """What became of each change, and the outputs."""
    for result in applied.results:
        fault = result.outcome.fault
        say(
            "result",
            address=result.change.address,
            status=result.outcome.status.value,
            why=fault.message if fault else None,
        )
    say("outputs", values={output.name: str(output.value) for output in applied.outputs})


def keep(folder: str, max_changes: int) -> None:
    """Plan the folder, and apply it if the bot may."""
    workspace = kafkaform.open_workspace(folder)
    plan = kafkaform.plan_changes(workspace, progress=watch)
    say("plan", changes=describe(plan), approval=plan.token)
    if plan.idle:
        return
    if not approve(max_changes, plan):
        sys.stderr.write(kafkaform.render_plan(plan))
        say("review", why="it deletes something, or changes too much", approval=plan.token)
        return
    decide = partial(approve, max_changes)
    report(kafkaform.apply_changes(workspace, plan, approve=decide, progress=watch))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", default=".")
    parser.add_argument("--max-changes", type=int, default=10)
    given = parser.parse_args()
    try:
        keep(given.folder, given.max_changes)
    except KafkaformError as error:
        if error.applied is not None:  # some of it was sent
            report(error.applied)
        for item in error.diagnostics:
            say("error", summary=item.summary, advice=item.advice)
        return kafkaform.exit_code(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
