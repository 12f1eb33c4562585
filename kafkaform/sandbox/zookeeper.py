"""Render what ZooKeeper reads, its logins, and the command that stores the first users in it.

Kafka before 4.0 can keep its metadata there instead of with a controller of its own.
"""

from __future__ import annotations

from pathlib import Path

from .configuration import ADMIN, CI, INTERNAL, SCRAM, escape_value, make_java_command
from .record import HOST, Sandbox

MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
PROPERTIES_FILE = "zookeeper.properties"
_LOGIN = "org.apache.zookeeper.server.auth.DigestLoginModule required"


def render_properties(sandbox: Sandbox) -> str:
    """The text of ZooKeeper's properties file."""
    settings = {
        "dataDir": str(sandbox.data / "zookeeper"),
        "clientPort": str(sandbox.brokers[0].ports.controller),
        "clientPortAddress": HOST,
        # The web page of ZooKeeper's administrator listens on all addresses.
        "admin.enableServer": "false",
        # Any local user could connect, read the credentials and write ACLs. Without a login
        # ZooKeeper answers nothing (ZOOKEEPER-3561).
        "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "enforce.auth.enabled": "true",
        "enforce.auth.schemes": "sasl",
    }
    return "".join(f"{key}={escape_value(value)}\n" for key, value in settings.items())


def render_logins(sandbox: Sandbox) -> str:
    """The text of the JAAS file of ZooKeeper and its clients."""
    password = sandbox.broker_password
    return (
        f'Server {{\n  {_LOGIN} user_{INTERNAL}="{password}";\n}};\n'
        f'Client {{\n  {_LOGIN} username="{INTERNAL}" password="{password}";\n}};\n'
    )


def make_users_command(sandbox: Sandbox, java: Path, user: str) -> list[str]:
    """The command line that stores the SCRAM credentials of a user."""
    # As the storage tool does with a controller: before the first broker runs, nobody could be
    # asked to alter them.
    password = {ADMIN: sandbox.admin_password, CI: sandbox.ci_password}[user]
    credentials = ",".join(f"{mechanism}=[password={password}]" for mechanism in SCRAM)
    address = f"{HOST}:{sandbox.brokers[0].ports.controller}"
    arguments = ("--zookeeper", address, "--alter", "--add-config", credentials)
    entity = ("--entity-type", "users", "--entity-name", user)
    return make_java_command(sandbox, java, "kafka.admin.ConfigCommand", *arguments, *entity)
