"""What every command needs, loaded once: the server that starts the commands preloads this.

Nothing here opens a connection or starts a thread, so each command begins as in a process of its
own; only the second that Python takes to import things is spent once.
"""

from kafkaform.cli import app
from kafkaform.cli.commands import apply, plan
from kafkaform.syntax.parse import parse
from kafkaform_kafka import provider, session

parse('a = "${b}"', "warm")

__all__ = ["app", "apply", "plan", "provider", "session"]
