"""One folder with several systems of which some do not answer: what is left out, what is applied,
and what stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafkaform_connect import session
from kafkaform_schema_registry.memory import SimulatedRegistry

from ...kit.commands.fixtures import here  # noqa: F401  # pytest finds it here
from ...kit.commands.folder import Said
from ...kit.commands.here import Here
from ...kit.connect.folder import answer, connector, make_workers
from ...kit.entry_point import offer_provider
from ...kit.http.server import Request, Served, serving
from ...kit.schema_registry.server import read_call

DEAD = "http://127.0.0.1:9"
KAFKA = """
provider "kafka" {
  bootstrap_servers = ["127.0.0.1:9"]
  operation_timeout = "2s"
}
"""


def schema(name: str, type: str = "int") -> str:
    return (
        f'resource "schema_registry_schema" "{name}" {{\n  subject = "{name}-key"\n'
        f'  schema  = jsonencode("{type}")\n}}\n'
    )


def topic(name: str) -> str:
    return f'resource "kafka_topic" "{name}" {{\n  name = "{name}"\n  partitions = 1\n}}\n'


@dataclass
class Systems:
    """A folder with simulated workers and a simulated registry. down: those that answer 503."""

    here: Here
    connect: Served
    registry: Served
    subjects: SimulatedRegistry
    down: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)

    def declare(self, *blocks: str, kafka: bool = False) -> None:
        """Write the configuration; systems in `dead` are at an address that nobody listens at."""
        urls = {
            name: DEAD if name in self.dead else served.url
            for name, served in (("connect", self.connect), ("registry", self.registry))
        }
        providers = (
            f'provider "kafka_connect" {{\n  url = "{urls["connect"]}"\n'
            "  operation_timeout = 1\n}\n",
            f'provider "schema_registry" {{\n  url = "{urls["registry"]}"\n'
            "  operation_timeout = 1\n}\n",
            KAFKA if kafka else "",
        )
        self.here.write("main.kf.hcl", "\n".join((*providers, *blocks)))

    def forget_requests(self) -> None:
        self.connect.asked.clear()
        self.registry.asked.clear()

    def rows(self) -> dict[str, Any]:
        """Address -> row."""
        state = json.loads((self.here.path / "kafkaform.state.json").read_text())
        return {row["owners"][0]: row for row in state["objects"]}

    def apply(self, *flags: str) -> Said:
        return self.here.run("apply", "-auto-approve", *flags)


@pytest.fixture
def systems(
    here: Here,  # noqa: F811  # the fixture
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Systems]:
    """Nothing is declared yet."""
    site: Path = tmp_path_factory.mktemp("site")
    offer_provider("kafka_connect", site, monkeypatch)
    offer_provider("schema_registry", site, monkeypatch)
    monkeypatch.setattr(session, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(session, "WAIT_SECONDS", 1.0)
    workers, subjects = make_workers(), SimulatedRegistry()
    down: set[str] = set()

    def guard(name: str, answers: Any, request: Request) -> tuple[int, Any]:
        if name in down:
            return 503, {"error_code": 503, "message": "away"}
        found: tuple[int, Any] = answers(request)
        return found

    def answer_subjects(request: Request) -> tuple[int, Any]:
        found = subjects.answer(read_call(request), "admin")
        return found.status, found.body

    with (
        serving(partial(guard, "connect", partial(answer, workers))) as connect,
        serving(partial(guard, "registry", answer_subjects)) as registry,
    ):
        yield Systems(here, connect, registry, subjects, down)


def test_the_rest_is_applied(systems: Systems) -> None:
    """A system that is away is left out with its reason and exit code 8; the rest is applied, and
    the rows of the absent system stay as they were."""
    systems.declare(connector("sink"), schema("a"))
    assert systems.apply().code == 0
    before = systems.rows()["kafka_connect_connector.sink"]
    systems.dead.add("connect")
    systems.declare(connector("sink"), schema("a", "long"), schema("b"))
    planned = systems.here.run("plan")
    assert planned.code == 8 and "could not be read" in planned.text, planned.text
    assert DEAD in planned.text
    applied = systems.apply()
    assert applied.code == 8, applied.text
    assert "kafka_connect_connector.sink" in applied.text
    assert systems.subjects.subjects.list_names() == ["a-key", "b-key"]
    assert systems.rows()["kafka_connect_connector.sink"] == before
    systems.dead.clear()
    systems.declare(connector("sink"), schema("a", "long"), schema("b"))
    assert systems.apply().code == 0


@pytest.mark.parametrize("away", ["connect", "registry", "kafka"])
def test_only_what_is_selected_is_opened(systems: Systems, away: str) -> None:
    """With --target and --exclude, a system that nothing selected needs is not even asked."""
    blocks = {"connect": connector("sink"), "registry": schema("a"), "kafka": topic("t")}
    systems.dead.add(away)
    addresses = {
        "connect": "kafka_connect_connector.sink",
        "registry": "schema_registry_schema.a",
        "kafka": "kafka_topic.t",
    }
    reachable = {"connect", "registry"} - {away}
    for name in sorted(reachable):
        systems.declare(*blocks.values(), kafka=True)
        systems.forget_requests()
        said = systems.apply(f"--target={addresses[name]}")
        assert said.code == 0, said.text
        other = {"connect": systems.registry, "registry": systems.connect}[name]
        assert not other.asked
    excluded = [f"--exclude={addresses[name]}" for name in sorted({away, "kafka"})]
    assert systems.apply(*excluded).code == 0


def test_every_system_away_is_an_error_of_the_connection(systems: Systems) -> None:
    """Without any system that answers, nothing is known: exit code 1, as with a single one."""
    systems.dead |= {"connect", "registry"}
    systems.declare(connector("sink"), schema("a"))
    assert systems.apply().code == 1


def test_what_was_left_out_is_part_of_the_approval(systems: Systems) -> None:
    """A plan that read everything is applied although a system in which it does nothing is away;
    one that left something out is another plan, and says so in each form."""
    systems.declare(connector("a"), schema("a"))
    assert systems.apply().code == 0
    systems.declare(connector("a"), connector("b"), schema("a"))
    token = find_token(systems.here.done("plan"))
    systems.down.add("registry")
    narrow = systems.here.run("plan", "-comment=c.md", "-html=p.html", "-out=p.kfplan")
    assert narrow.code == 8 and find_token(narrow) != token
    for name in ("c.md", "p.html"):
        text = (systems.here.path / name).read_text()
        assert "could not be asked" in text and "schema_registry_schema.a" in text
    shown = systems.here.json("show", "-json", "p.kfplan")
    assert "503" in shown["kafkaform"]["instances"]["schema_registry"]["unread"]
    assert shown["complete"] is False
    details = [one["kafkaform"] for one in shown["resource_changes"]]
    (blocked,) = [one["blocked"] for one in details if one.get("blocked")]
    assert blocked["kind"] == "unreadable" and blocked["unmet"] and not blocked["stops"]
    before = systems.rows()["schema_registry_schema.a"]
    said = systems.here.run("apply", "--expect", token)
    assert said.code == 0 and "the approved plan does nothing with it" in said.text, said.text
    assert "kafka_connect_connector.b" in systems.rows()
    assert systems.rows()["schema_registry_schema.a"] == before


def test_a_plan_that_left_something_out_does_no_more(systems: Systems) -> None:
    """When the system is back, a saved plan does what was approved and says what is left; the
    approval alone is refused."""
    systems.declare(connector("a"), connector("b"), schema("a"))
    systems.down.add("registry")
    narrow = systems.here.run("plan", "-out=narrow.kfplan")
    assert narrow.code == 8
    systems.down.clear()
    refused = systems.here.run("apply", "--expect", find_token(narrow))
    assert refused.code == 4, refused.text
    assert not (systems.here.path / "kafkaform.state.json").exists() or not systems.rows()
    applied = systems.here.run("apply", "narrow.kfplan")
    assert applied.code == 8, applied.text
    assert systems.rows().keys() == {"kafka_connect_connector.a", "kafka_connect_connector.b"}
    again = systems.here.run("apply", "narrow.kfplan")
    assert again.code == 8 and "Already applied" in again.text, again.text


def test_a_system_that_goes_away_after_the_plan(systems: Systems) -> None:
    """A saved plan is applied as a whole or not at all."""
    systems.declare(connector("a"), schema("a"))
    systems.here.done("plan", "-out=both.kfplan")
    systems.down.add("registry")
    said = systems.here.run("apply", "both.kfplan")
    assert said.code == 1 and "cannot be applied" in said.text, said.text
    assert not [one for one in systems.connect.writes if "validate" not in one.path]
    systems.down.clear()
    systems.here.done("apply", "both.kfplan")


def test_a_destroy_leaves_out_what_is_away(systems: Systems) -> None:
    """It names and deletes what it can read; the rest stays recorded and is deleted later."""
    systems.declare(connector("a"), schema("a"))
    assert systems.apply().code == 0
    systems.down.add("registry")
    said = systems.here.run("destroy", "--confirm", "connect:simulated-kafka")
    assert said.code == 8, said.text
    assert systems.rows().keys() == {"schema_registry_schema.a"}
    systems.down.clear()
    both = ("connect:simulated-kafka", "simulated/schema-registry")
    systems.here.done("destroy", *(f"--confirm={one}" for one in both))
    assert not systems.rows()


def test_a_refresh_leaves_out_what_is_away(systems: Systems) -> None:
    """Nothing that could not be read is forgotten or refreshed."""
    systems.declare(connector("a"), schema("a"))
    assert systems.apply().code == 0
    before = systems.rows()
    systems.down.add("registry")
    assert systems.here.run("plan", "-refresh-only").code == 8
    assert systems.apply("-refresh-only").code == 8
    assert systems.rows() == before
    assert systems.here.run("plan", "-fail-on=drift").code == 8


def test_a_target_that_is_away_is_an_error(systems: Systems) -> None:
    """A selection of which nothing can be read applies nothing."""
    systems.declare(connector("a"), schema("a"))
    systems.down.add("registry")
    assert systems.apply("--target=schema_registry_schema.a").code == 1


def test_an_import_needs_its_own_system_only(systems: Systems) -> None:
    """Another system that is away does not matter; its own one does."""
    systems.declare(connector("a"), schema("a"))
    assert systems.apply("--target=kafka_connect_connector.a").code == 0
    systems.here.done("state", "rm", "kafka_connect_connector.a")
    systems.down.add("registry")
    systems.here.done("import", "kafka_connect_connector.a", "a")
    systems.here.fails("import", "schema_registry_schema.a", "a-key")


def test_a_provider_that_is_gone_for_good(systems: Systems) -> None:
    """Without its block, its objects are left out; one command forgets them all, and then a new
    system can have the name."""
    systems.declare(connector("a"), schema("a"), schema("b"))
    assert systems.apply().code == 0
    text = (systems.here.path / "main.kf.hcl").read_text()
    start = text.index('provider "schema_registry"')
    rest = text[:start] + text[text.index('resource "kafka_connect') :]
    rest = rest[: rest.index('resource "schema_registry')]
    systems.here.write("main.kf.hcl", rest + connector("b"))
    said = systems.apply()
    assert said.code == 8 and "kafkaform state rm --provider schema_registry" in said.text
    assert "kafka_connect_connector.b" in systems.rows()
    forgot = systems.here.done("state", "rm", "--provider", "schema_registry")
    assert "Forgot 2 objects of schema_registry" in forgot.text
    assert systems.rows().keys() == {"kafka_connect_connector.a", "kafka_connect_connector.b"}
    state = json.loads((systems.here.path / "kafkaform.state.json").read_text())
    assert state["providers"].keys() == {"kafka_connect"}
    systems.here.done("plan")
    systems.here.done("audit", "verify")
    assert "nothing of a provider instance" in systems.here.fails("state", "rm", "--provider=x")
    systems.here.fails("state", "rm")
    systems.here.fails("state", "rm", "kafka_connect_connector.a", "--provider=kafka_connect")


DATA = """
data "schema_registry_schemas" "all" {
}
resource "kafka_connect_connector" "each" {
  for_each = toset(data.schema_registry_schemas.all.subjects)
  name     = each.key
  class    = "FileStreamSource"
  config   = { topic = "orders", file = "/dev/null" }
}
output "subjects" {
  value = data.schema_registry_schemas.all.subjects
}
"""


def test_what_needs_an_unread_data_source_is_left_out(systems: Systems) -> None:
    """Nothing that a data source would have declared is deleted or changed while its system is
    away; the rest is applied, and outputs stay as they were recorded."""
    systems.declare(schema("a"))
    assert systems.apply().code == 0
    systems.declare(schema("a"), DATA)
    assert systems.apply().code == 0
    row = systems.rows()['kafka_connect_connector.each["a-key"]']
    token = find_token(systems.here.done("plan", "-destroy"))
    assert token
    systems.declare(schema("a"), DATA, connector("b"))
    systems.down.add("registry")
    planned = systems.here.run("plan", "-out=p.kfplan")
    assert planned.code == 8 and "cannot be read" in planned.text, planned.text
    assert "1 resource block is left out" in planned.text
    assert "to destroy" not in planned.text.replace("0 to destroy", "")
    shown = systems.here.json("show", "-json", "p.kfplan")
    assert shown["kafkaform"]["unevaluated"] == ["kafka_connect_connector.each"]
    said = systems.apply()
    assert said.code == 8 and "kafka_connect_connector.each" in said.text, said.text
    assert systems.rows()['kafka_connect_connector.each["a-key"]'] == row
    assert "kafka_connect_connector.b" in systems.rows()
    assert systems.here.json("output", "-json")["subjects"]["value"] == ["a-key"]
    systems.down.clear()
    assert systems.apply().code == 0


def test_an_import_of_everything_names_what_it_could_not_ask(systems: Systems) -> None:
    """What can be listed is written; a system that is away is a gap and not an empty one."""
    systems.declare(connector("a"), schema("a"))
    assert systems.apply().code == 0
    for address in systems.rows():
        systems.here.done("state", "rm", address)
    systems.declare()
    systems.down.add("registry")
    said = systems.here.run("import", "--all", "-out=all.kf.hcl")
    assert said.code != 0 and "schema_registry, which could not be asked" in said.text, said.text
    assert "kafka_connect_connector" in (systems.here.path / "all.kf.hcl").read_text()


def test_what_depends_on_the_absent_system_waits(systems: Systems) -> None:
    """With Kafka away, a schema of a topic that does not exist yet waits; another one does not."""
    of_topic = (
        'resource "schema_registry_schema" "t" {\n  topic  = "t"\n  schema = jsonencode("int")\n}\n'
    )
    systems.declare(schema("a"), of_topic, topic("t"), kafka=True)
    said = systems.apply()
    assert said.code == 8, said.text
    assert "it depends on kafka_topic.t" in said.text, said.text
    assert systems.rows().keys() == {"schema_registry_schema.a"}


def find_token(said: Said) -> str:
    """The approval that a plan shows."""
    found = re.search(r"Approval: (\S+)", said.out)
    assert found is not None, said.text
    return found[1]
