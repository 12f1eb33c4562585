"""How every command is typed in the matrix. The walk over typer's commands is in the test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafkaform.cli.command_tree import get_commands

LINES: Mapping[str, tuple[str, ...]] = {
    "init": (),
    "validate": ("--json",),
    "fmt": ("--diff", "--no-write"),
    "test": ("--verbose", "--json", "--junit=results.xml"),
    "plan": ("-out=new.kfplan", "--comment=review.md"),
    "apply": ("-auto-approve",),
    "destroy": ("--confirm=simulated",),
    "show": ("saved.kfplan",),
    "output": ("--json",),
    "import": ("--all", "--out=generated.kf.hcl"),
    "describe topics": (),
    "describe configs": ("--entity-type=brokers", "--json"),
    "describe acls": (),
    "describe quotas": (),
    "describe users": ("--json",),
    "describe delegation-tokens": ("--json",),
    "describe brokers": (),
    "describe cluster": (),
    "describe features": (),
    "describe groups": ("--json",),
    "describe transactions": ("--json",),
    "describe connectors": ("--json",),
    "describe subjects": (),
    "alter topic": ("foreign", "--add-config=retention.ms=7", "-auto-approve"),
    "alter broker": ("1", "--add-config=background.threads=9", "-auto-approve"),
    "alter user": (
        "somebody",
        "--add-config=SCRAM-SHA-256=[iterations=4096,password=env:CANARY]",
        "-auto-approve",
    ),
    "alter client": ("app", "--add-config=request_percentage=7", "-auto-approve"),
    "alter ip": ("10.0.0.1", "--add-config=connection_creation_rate=7", "-auto-approve"),
    "alter group": ("g", "--add-config=consumer.session.timeout.ms=46000", "-auto-approve"),
    "alter client-metrics": ("m", "--add-config=interval.ms=60000", "-auto-approve"),
    "alter delegation-token": ("--create", "--hmac-file=token.hmac", "-auto-approve"),
    "alter schema": ("orders-value", "--delete-version=1", "-auto-approve"),
    "alter features": ("group.version=0", "--downgrade", "-auto-approve"),
    "alter connector": ("orders", "--reset-offsets", "-auto-approve"),
    "explain access": ("--principal=User:alice", "--topic=orders"),
    "explain quota": ("--user=alice", "--client-id=app"),
    "explain config": ("topic", "orders", "retention.ms"),
    "explain rule": ("topic-deleted",),
    "explain connector": ("orders",),
    "explain schema": ("orders-value", "--json"),
    "check": ("--sarif",),
    "propose placement": ("--json",),
    "shell": ("--allow-apply",),
    "console": (),
    "graph": (),
    "providers schema": (),
    "providers json-schema": (),
    "export": ("terraform",),
    "state list": (),
    "state show": ("kafka_topic.orders",),
    "state rm": ("kafka_topic.orders",),
    "state mv": ("kafka_topic.orders", "kafka_topic.renamed"),
    "state pull": (),
    "state push": ("kafkaform.state.json", "--force"),
    "state rebind": ("kafka", "--from=http://127.0.0.1:1"),
    "history": ("topic/orders",),
    "undo": (),
    "lock show": (),
    "lock release": ("0123456789ab",),
    "audit show": (),
    "audit verify": (),
    "audit head": (),
    "audit mend": (),
    "audit archive": ("--before=2000-01-01", "--to=archive"),
    "audit export": ("--csv",),
    "audit publish": ("--to-topic=audit",),
    # A sandbox has passwords of its own and knows none of the user's; none is started here.
    "sandbox up": ("--help",),
    "sandbox down": ("--name=nobody",),
    "sandbox status": (),
    "sandbox env": ("--name=nobody",),
    "sandbox logs": ("--name=nobody",),
    "fleet snapshot": ("--quiet",),
    # What reads tables and starts Spark has no landing files here, and nothing to read them for.
    "fleet run": ("--root=nowhere", "--quiet"),
    "fleet report": ("--root=nowhere",),
    "fleet query": ("SELECT 1", "--root=nowhere"),
    "fleet who-can": ("READ", "topic/orders", "--root=nowhere"),
    "fleet permissions": ("--root=nowhere", "--expand"),
    "fleet history": ("--key=topic/orders", "--cluster=one", "--root=nowhere"),
    "fleet status": ("--root=nowhere",),
    "fleet unused": ("--root=nowhere",),
    "fleet doctor": ("--root=nowhere",),
    # Anywhere else it would start Spark and leave what it keeps.
    "fleet prepare": ("--master=spark://nowhere:7077",),
    # These run until they are stopped. What they show is tested in tests/unit/window and editor.
    "serve": ("--help",),
    "lsp": ("--help",),
    "version": (),
}
"""Command -> its words."""

WORLDLY = ("plan", "apply", "alter user")
"""Commands that go all the way through a session, and each in its own way."""

TYPED: Mapping[str, tuple[str, ...]] = {
    "shell": (
        "describe users",
        "alter broker 1 --add-config background.threads=8 --auto-approve",
        "alter user x --add-config SCRAM-SHA-512=[password=env:CANARY] --auto-approve",
        "plan",
        "nonsense",
    ),
    "console": ("var.password", "kafka_topic.orders.name", '"${var.password}!"', "nope(", "1 + 1"),
}
"""What is typed into commands that ask."""

LITERALS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "plan": (("--var", "password={}"),),
    "validate": (("--var", "password={}"), ("--var", "{}")),
    "describe users": (
        ("--bootstrap-server=b:1", "--client-property", "sasl.password={}"),
        ("--bootstrap-server=b:1", "--client-property", "sasl.jaas.config=a.b.Module required {}"),
        ("--bootstrap-server=b:1", "--client-property", "ssl.keystore.key={}"),
    ),
    "alter user": (
        ("somebody", "--add-config=SCRAM-SHA-256=[iterations=4096,password={}]", "-auto-approve"),
        ("somebody", "--add-config=SCRAM-SHA-256=[password={},", "-auto-approve"),
    ),
    "alter broker": (
        ("1", "--add-config=listener.name.x.ssl.keystore.password={}", "-auto-approve"),
    ),
}
"""Secrets where none may stand: typed instead of the words above."""


def every_command(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[str]:
    """All commands that typer knows, with the groups that they are in."""
    inner = getattr(group or get_commands(), "commands", None)
    if inner is None:
        yield " ".join(path)
        return
    for name in list(inner):
        yield from every_command(inner[name], (*path, name))
