"""Render how clients reach a sandbox: provider block, client properties, shell exports."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from .configuration import ADMIN
from .record import Sandbox

PASSWORD = "KAFKAFORM_SANDBOX_PASSWORD"


class Format(StrEnum):
    PROVIDER = "provider"
    PROPERTIES = "properties"
    SHELL = "shell"


def render(sandbox: Sandbox, form: Format) -> str:
    """The connection to a sandbox in this format, with a final newline. The provider block has the
    variable of the password instead of the password."""
    return _FORMATS[form](sandbox)


def render_provider(sandbox: Sandbox) -> str:
    """A provider block."""
    servers = ", ".join(f'"{server}"' for server in sandbox.bootstrap.split(","))
    return f"""\
provider "kafka" {{
  bootstrap_servers = [{servers}]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "{ADMIN}"
  sasl_password     = secret_env("{PASSWORD}")
}}
"""


def render_properties(sandbox: Sandbox) -> str:
    """Properties for Kafka's own tools (`--command-config FILE`)."""
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return f"""\
bootstrap.servers={sandbox.bootstrap}
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config={login} required username="{ADMIN}" password="{sandbox.admin_password}";
"""


def locate_properties(sandbox: Sandbox) -> Path:
    """The file into which `up` writes the client properties."""
    return sandbox.folder / "client.properties"


def render_shell(sandbox: Sandbox) -> str:
    """Exports for a POSIX shell: `eval "$(kafkaform sandbox env --format shell)"`."""
    values = {
        "KAFKAFORM_SANDBOX_BOOTSTRAP": sandbox.bootstrap,
        PASSWORD: sandbox.admin_password,
        "KAFKAFORM_SANDBOX_CI_PASSWORD": sandbox.ci_password,
        "KAFKAFORM_SANDBOX_CLIENT_PROPERTIES": str(locate_properties(sandbox)),
    }
    if sandbox.bootstrap_tls is not None:
        values["KAFKAFORM_SANDBOX_BOOTSTRAP_TLS"] = sandbox.bootstrap_tls
        values["KAFKAFORM_SANDBOX_CA_FILE"] = str(sandbox.ca_file)
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())


_FORMATS: dict[Format, Callable[[Sandbox], str]] = {
    Format.PROVIDER: render_provider,
    Format.PROPERTIES: render_properties,
    Format.SHELL: render_shell,
}
