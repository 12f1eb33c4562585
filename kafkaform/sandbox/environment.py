"""Render how clients reach a sandbox: provider block, client properties, shell exports."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path

from .configuration import ADMIN, read_access
from .options import DEFAULT_NAME
from .record import Sandbox, ServerKind

PASSWORD = "KAFKAFORM_SANDBOX_PASSWORD"
_AUTHORIZER = """
  authorizer {{
    super_users     = {}
    allow_if_no_acl = {}
  }}
"""
_URLS = {
    ServerKind.SCHEMA_REGISTRY: "KAFKAFORM_SANDBOX_SCHEMA_REGISTRY_URL",
    ServerKind.CONNECT: "KAFKAFORM_SANDBOX_CONNECT_URL",
}
_BLOCKS = {
    ServerKind.SCHEMA_REGISTRY: """
provider "schema_registry" {{
  url = "{url}"
}}
""",
    ServerKind.CONNECT: f"""
provider "kafka_connect" {{{{
  url      = "{{url}}"
  username = "{ADMIN}"
  password = secret_env("{PASSWORD}")
}}}}
""",
}


class Format(StrEnum):
    PROVIDER = "provider"
    PROPERTIES = "properties"
    SHELL = "shell"


def render(sandbox: Sandbox, form: Format) -> str:
    """The connection to a sandbox in this format, with a final newline. The provider block has the
    variable of the password instead of the password."""
    return _FORMATS[form](sandbox)


def render_provider(sandbox: Sandbox) -> str:
    """A configuration file with the provider block, and comments that say how to get the rest."""
    name = "" if sandbox.name == DEFAULT_NAME else f" --name {sandbox.name}"
    env = f"kafkaform sandbox env{name} --format"
    # Brokers do not report the settings of their authorizer. Without them nobody can know whether
    # deleting the last ACL of a resource opens it to everybody, and a `destroy` would be blocked.
    access = read_access(sandbox)
    authorizer = (
        ""
        if access is None
        else _AUTHORIZER.format(
            _render_list(access.super_users), str(access.allow_if_no_acl).lower()
        )
    )
    description = f'"{sandbox.name}", Kafka {sandbox.kafka_version}'
    return f"""\
# The sandbox {description}. Its password is in the environment after
#   eval "$({env} {Format.SHELL})"
# Properties for Kafka's own tools: {env} {Format.PROPERTIES}
provider "kafka" {{
  bootstrap_servers = {_render_list(sandbox.bootstrap.split(","))}
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "{ADMIN}"
  sasl_password     = secret_env("{PASSWORD}")
{authorizer}}}
{_render_servers(sandbox)}"""


def _render_servers(sandbox: Sandbox) -> str:
    """The provider blocks of the servers beside the brokers."""
    return "".join(_BLOCKS[server.kind].format(url=server.url) for server in sandbox.servers)


def _render_list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_quote_string, texts))}]"


def _quote_string(text: str) -> str:
    # JSON's escapes are HCL's, apart from those of templates.
    return json.dumps(text).replace("${", "$${").replace("%{", "%%{")


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
    for server in sandbox.servers:
        values[_URLS[server.kind]] = server.url
    if sandbox.find_server(ServerKind.CONNECT) is not None:
        values["KAFKAFORM_SANDBOX_CONNECT_SECRETS"] = str(sandbox.connect_secrets)
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())


_FORMATS: dict[Format, Callable[[Sandbox], str]] = {
    Format.PROVIDER: render_provider,
    Format.PROPERTIES: render_properties,
    Format.SHELL: render_shell,
}
