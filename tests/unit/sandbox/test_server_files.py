"""What servers beside the brokers are told, and the pinned files that they run from."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import ConnectError, KafkaformError
from kafkaform.core.progress import Event, Progress, ignore_event
from kafkaform.sandbox import configuration, jars, record, versions
from kafkaform.sandbox.jars import Fetch, Jar, Source
from kafkaform.sandbox.record import Broker, Ports, Sandbox, Server, ServerKind
from kafkaform.sandbox.servers import start
from kafkaform.sandbox.servers.start import (
    ProgramArchive,
    ensure_archive,
    list_connect_versions,
    parse_archive,
)

FILES = {"program-runner.jar": b"the program", "lib/one.jar": b"a library"}
SERVERS = (
    Server(ServerKind.SCHEMA_REGISTRY, 20005),
    Server(ServerKind.CONNECT, 20006),
)
every_version = pytest.mark.parametrize("version", sorted(list_connect_versions()))


@pytest.fixture
def served(box: Sandbox) -> Sandbox:
    """A sandbox with both servers, on paper."""
    return replace(box, servers=SERVERS, connect_password="connect-password")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv(record.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    return tmp_path


def read_settings(box: Sandbox) -> dict[str, str]:
    text = start.render_properties(box, box.servers[1])
    lines = (line.partition("=") for line in text.splitlines())
    return {key: value for key, _, value in lines}


def pack(files: dict[str, bytes]) -> bytes:
    """An archive with these files, and one that nobody wants."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, content in {"../outside.jar": b"x", **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def pin(content: bytes) -> ProgramArchive:
    """The list for an archive with FILES."""
    hashed = {**FILES, "org.example:program:1.0:all": content}
    lines = [f"{name} {hashlib.sha256(c).hexdigest()} {len(c)}" for name, c in hashed.items()]
    return parse_archive("\n".join(["# a comment", lines.pop(), *lines]))


def serving(content: bytes) -> Source:
    """A repository that answers every request with this content."""

    def fetch(jar: Jar, folder: Path) -> Path:
        path = folder / jar.file_name
        path.write_bytes(content)
        return path

    @contextmanager
    def source() -> Iterator[Fetch]:
        yield fetch

    return source


@contextmanager
def offline() -> Iterator[Fetch]:
    """A repository that cannot be reached."""
    raise ConnectError("no network")
    yield


def test_the_worker_listens_on_the_loopback_address_and_asks_for_a_login(served: Sandbox) -> None:
    """Nothing of a sandbox can be reached from another computer."""
    found = read_settings(served)
    assert found["listeners"] == "http://127.0.0.1:20006" == served.servers[1].url
    assert found["rest.extension.classes"].endswith("BasicAuthSecurityRestExtension")


def test_connectors_have_a_user_without_rights(served: Sandbox) -> None:
    """The worker keeps its own topics as a super user, on the brokers' own listener; each client
    of a connector logs in as `connect`."""
    found = read_settings(served)
    assert found["bootstrap.servers"] == "127.0.0.1:20002"
    assert f'username="{configuration.INTERNAL}"' in found["sasl.jaas.config"]
    for client in ("producer", "consumer", "admin"):
        assert found[f"{client}.bootstrap.servers"] == served.bootstrap
        login = found[f"{client}.sasl.jaas.config"]
        assert 'username="connect" password="connect-password"' in login
    access = configuration.read_access(served)
    assert access is not None and "User:connect" not in access.super_users
    told = configuration.render_properties(served, served.brokers[0])
    assert 'user_connect="connect-password"' in told


def test_connectors_read_only_their_own_folder(served: Sandbox) -> None:
    """The passwords of the brokers are in the run folder, beside it."""
    allowed = Path(read_settings(served)["config.providers.file.param.allowed.paths"])
    assert allowed == served.connect_secrets and allowed.parent == served.folder


def test_topics_of_the_worker_have_a_replica_on_each_broker(served: Sandbox) -> None:
    """With more replicas than brokers, it could never create them."""
    ports = (Broker(number, Ports(*range(number * 10, number * 10 + 3))) for number in (1, 2, 3))
    for box, replicas in ((served, "1"), (replace(served, brokers=tuple(ports)), "3")):
        found = read_settings(box)
        factors = {key: v for key, v in found.items() if key.endswith("replication.factor")}
        assert len(factors) == 3 and set(factors.values()) == {replicas}


def test_the_registry_listens_on_the_loopback_address_and_keeps_its_schemas(
    served: Sandbox,
) -> None:
    """In a file of the data folder, so that they survive with the topics."""
    options = start.SCHEMA_REGISTRY_PROGRAM.make_options(served, served.servers[0])
    assert "-Dquarkus.http.host=127.0.0.1" in options
    assert "-Dquarkus.http.port=20005" in options
    assert any("jdbc:h2:file:./data/schema-registry/" in option for option in options)


def test_the_environment_names_the_servers(box: Sandbox, served: Sandbox) -> None:
    """A block for each one, and its address for a shell; without servers there is no word of
    them."""
    provider = configuration.render(served, configuration.Format.PROVIDER)
    assert 'provider "schema_registry" {\n  url = "http://127.0.0.1:20005/apis/ccompat/v7"\n' in (
        provider
    )
    assert 'provider "kafka_connect" {\n' in provider and "http://127.0.0.1:20006" in provider
    assert served.admin_password not in provider and served.connect_password not in provider
    shell = configuration.render(served, configuration.Format.SHELL)
    assert "KAFKAFORM_SANDBOX_SCHEMA_REGISTRY_URL=http://127.0.0.1:20005/apis/ccompat/v7" in shell
    assert "KAFKAFORM_SANDBOX_CONNECT_URL=http://127.0.0.1:20006\n" in shell
    assert f"KAFKAFORM_SANDBOX_CONNECT_SECRETS={served.connect_secrets}" in shell
    for form in configuration.Format:
        text = configuration.render(box, form)
        assert "CONNECT" not in text and "REGISTRY" not in text and "kafka_connect" not in text


@every_version
def test_list_of_connect_is_complete_and_well_formed(version: str) -> None:
    """Each list has the worker, its connectors, its login and a logging binding, with checksums."""
    pinned = start.read_pinned_jars(version)
    artifacts = {jar.artifact for jar in pinned}
    assert len({jar.file_name for jar in pinned}) == len(pinned) > 60
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) and jar.size > 0 for jar in pinned)
    wanted = {"runtime", "json", "file", "mirror", "basic-auth-extension"}
    assert {f"connect-{name}" for name in wanted} <= artifacts
    assert {"log4j-slf4j-impl", "slf4j-reload4j"} & artifacts
    assert {jar.version for jar in pinned if jar.group == "org.apache.kafka"} == {version}


def test_jars_that_brokers_and_workers_share_are_one_file() -> None:
    """All lists share one cache: no name is that of two contents."""
    brokers = (jars.read_pinned_jars(each) for each in versions.list_versions())
    workers = (start.read_pinned_jars(each) for each in list_connect_versions())
    pinned = {jar for each in (*brokers, *workers) for jar in each}
    assert len({jar.file_name for jar in pinned}) == len(pinned)


def test_the_list_of_the_registry_is_well_formed() -> None:
    """One program with its libraries, none of them outside of its folder; no host is named."""
    pinned = start.read_pinned_archive()
    names = [member.name for member in pinned.members]
    assert pinned.jar.file_name.endswith("-all.tar.gz")
    assert len(set(names)) == len(names) > 300
    assert all(re.fullmatch(r"(lib/)?[\w.+-]+\.jar", name) for name in names)
    assert [name for name in names if name.endswith("-runner.jar")] == [names[0]]
    assert all(re.fullmatch(r"[0-9a-f]{64}", member.sha256) for member in pinned.members)


def test_an_archive_is_downloaded_once(cache: Path) -> None:
    """Its pinned files are unpacked and nothing else stays; the next start needs no network."""
    content = pack(FILES)
    told: list[Event] = []
    folder = ensure_archive(pin(content), told.append, serving(content), "It")
    found = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.jar")}
    assert found == FILES
    assert sorted(path.name for path in cache.iterdir()) == sorted(["jars", folder.name])
    assert list((cache / "jars").iterdir()) == []
    last = told[-1]
    assert isinstance(last, Progress) and last.finished and last.done == len(content)
    assert ensure_archive(pin(content), ignore_event, offline, "It") == folder


def test_a_changed_file_of_an_archive_is_refused_removed_and_named(cache: Path) -> None:
    """It never runs; the next command unpacks it afresh."""
    content = pack(FILES)
    folder = ensure_archive(pin(content), ignore_event, serving(content), "It")
    (folder / "lib/one.jar").write_bytes(b"another one")
    with pytest.raises(KafkaformError, match=r"lib/one\.jar of org\.example:program:1\.0:all"):
        ensure_archive(pin(content), ignore_event, offline, "It")
    with pytest.raises(ConnectError):
        ensure_archive(pin(content), ignore_event, offline, "It")
    ensure_archive(pin(content), ignore_event, serving(content), "It")
    assert (folder / "lib/one.jar").read_bytes() == FILES["lib/one.jar"]


def test_another_archive_is_not_unpacked(cache: Path) -> None:
    """Whatever a repository answers instead of it."""
    with pytest.raises(KafkaformError, match="org.example:program"):
        ensure_archive(pin(pack(FILES)), ignore_event, serving(b"<html>sign in</html>"), "It")
    assert not list(cache.rglob("*.jar"))


def test_a_file_that_its_archive_lacks_is_explained(cache: Path) -> None:
    """A list that does not fit to its archive is a fault of ours, and no endless download."""
    content = pack({"lib/one.jar": FILES["lib/one.jar"]})
    with pytest.raises(KafkaformError, match=r"program-runner\.jar"):
        ensure_archive(pin(content), ignore_event, serving(content), "It")
