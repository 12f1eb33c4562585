"""Run Apicurio Registry, which has the API of Confluent's Schema Registry.

Its application keeps schemas in an H2 database. In a file, they survive a restart of the sandbox;
its variant that keeps them in Kafka would need a topic and rights on every cluster.

It has no login of its own: users come from an OpenID provider or not at all
(https://www.apicur.io/registry/docs/apicurio-registry/2.6.x/getting-started/assembly-configuring-registry-security.html).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from ...core.progress import Reporter
from .. import places
from ..jars import Source
from ..record import HOST, Sandbox, Server
from .archive import ProgramArchive, ensure_archive, parse_archive
from .program import Program

_FOLDER = "schema-registry"
# Without the second part, what was committed in the last half second is lost with the process.
_URL = f"jdbc:h2:file:./data/{_FOLDER}/registry;WRITE_DELAY=0"
"""Relative to the run folder: a path can contain characters that mean something here."""


def read_pinned_archive() -> ProgramArchive:
    file = resources.files(__package__).joinpath("class_paths", "schema-registry.txt")
    return parse_archive(file.read_text("ascii"))


def _find_class_path(_: Sandbox, report: Reporter, source: Source) -> tuple[Path, ...]:
    archive = read_pinned_archive()
    folder = ensure_archive(archive, report, source, PROGRAM.title)
    # The manifest of this jar names all others.
    (runner,) = folder.glob("*-runner.jar")
    return (runner,)


def _write_files(sandbox: Sandbox, _: Server) -> None:
    places.make_private_folder(sandbox.data / _FOLDER)


def _make_options(_: Sandbox, server: Server) -> Sequence[str]:
    settings = {
        "quarkus.http.host": HOST,
        "quarkus.http.port": str(server.port),
        "REGISTRY_DATASOURCE_URL": _URL,
        # One connection is opened at once, not 20.
        "quarkus.datasource.jdbc.initial-size": "1",
        "quarkus.datasource.jdbc.min-size": "1",
        # Every request is a line at INFO.
        "LOG_LEVEL": "WARN",
        "REGISTRY_LOG_LEVEL": "WARN",
    }
    return tuple(f"-D{key}={value}" for key, value in settings.items())


def _make_headers(_: Sandbox) -> Mapping[str, str]:
    return {}


PROGRAM = Program(
    title="Apicurio Registry",
    main="io.quarkus.runner.GeneratedMain",
    find_class_path=_find_class_path,
    write_files=_write_files,
    make_options=_make_options,
    make_arguments=lambda _, __: (),
    ready_path="/apis/ccompat/v7/subjects",
    make_headers=_make_headers,
)
