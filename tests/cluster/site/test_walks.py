"""The tutorial and the how-to pages lead where they say: each command is typed on a real broker."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from docs.release.build import build_wheel

from ...kit.installed import install_wheel
from ...kit.kafka.topic_clients import Clients, wait_for
from ...kit.walks import FENCE, follow

pytestmark = pytest.mark.timeout(300)
DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = sorted((DOCS / "how-to").glob("*.md"))
LIVE = """
resource "kafka_topic" "invoices" {
  name       = "billing.invoices"
  partitions = 3
  config     = { "retention.ms" = retention("30d") }
}

resource "kafka_topic" "refunds" {
  name       = "billing.refunds"
  partitions = 1
}
"""
"""What others have made before the page about taking over begins."""
SHOP = """
resource "kafka_topic" "orders" {
  name       = "shop.orders"
  partitions = 3
  config     = { "retention.ms" = retention("7d") }
}

resource "schema_registry_schema" "money" {
  subject = "shop.Money"
  schema = jsonencode({
    type   = "record", name = "Money", namespace = "shop"
    fields = [{ name = "cents", type = "long" }]
  })
}

resource "schema_registry_schema" "user" {
  subject = "%(subject)s"
  schema = jsonencode({
    type = "record", name = "%(record)s", namespace = "shop"
    fields = [{ name = "%(field)s", type = "Money" }]
  })
  references = [{ name = "shop.Money", subject = schema_registry_schema.money.subject }]
}

resource "schema_registry_subject_config" "user" {
  subject       = "%(subject)s"
  compatibility = "FULL"
  depends_on    = [schema_registry_schema.user]
}

resource "kafka_acl" "reader" {
  for_each = toset(%(rights)s)

  acl_principal       = "User:%(reader)s"
  acl_operation       = split(" ", each.value)[0]
  resource_type       = split(" ", each.value)[1]
  resource_name       = split(" ", each.value)[2]
  acl_permission_type = "Allow"
  acl_host            = "*"
}
"""
"""What another tool has made in a shop."""
ARCHIVE = """
resource "kafka_topic" "payments" {
  name       = "shop.payments"
  partitions = 3
}

resource "kafka_connect_connector" "archive" {
  name       = "shop.archive"
  class      = "org.apache.kafka.connect.file.FileStreamSinkConnector"
  config     = { topics = kafka_topic.orders.name, file = "/dev/null", "tasks.max" = 1 }
  depends_on = [kafka_acl.reader]
}
"""


def run(folder: Path, *words: str) -> str:
    """What a program prints that ends well."""
    command = [sys.executable, "-m", *words]
    done = subprocess.run(
        command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def provider(
    request: pytest.FixtureRequest,
    module_home: Path,
    own_brokers: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """The provider blocks of a sandbox with these servers; its password is in the environment."""
    folder = tmp_path_factory.mktemp("provider")
    run(folder, "kafkaform", "sandbox", "up", *request.param)
    with pytest.MonkeyPatch.context() as patch:
        shell = run(folder, "kafkaform", "sandbox", "env", "--format", "shell")
        for line in shell.splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            patch.setenv(name, value.strip("'"))
        yield run(folder, "kafkaform", "sandbox", "env")
    run(folder, "kafkaform", "sandbox", "down")


def declare_by_others(folder: Path, text: str = LIVE) -> None:
    """Objects that this folder's state doesn't know."""
    others = folder.with_name("others")
    shutil.copytree(folder, others)
    (others / "main.kf.hcl").write_text(text, encoding="utf-8")
    run(others, "kafkaform", "apply", "--auto-approve", "--accept", "access-opened")


def declare_by_jikkou(folder: Path) -> None:
    """What the files of the page declare."""
    rights = [
        "Read Topic shop.orders",
        "Describe Topic shop.orders",
        "Read Group connect-shop.archive",
    ]
    names = {"subject": "shop.payments-value", "record": "Payment", "field": "amount"}
    text = SHOP % {**names, "reader": "connect", "rights": json.dumps(rights)}
    declare_by_others(folder, text + ARCHIVE)


def declare_by_terraform(folder: Path) -> None:
    """What the state of the page has, as far as it is in Kafka and the registry."""
    names = {"subject": "shop.orders-value", "record": "Order", "field": "price"}
    rights = ["Read Topic shop.orders"]
    declare_by_others(folder, SHOP % {**names, "reader": "billing", "rights": json.dumps(rights)})


DYING = """
import os, signal
from kafkaform.cli.app import main

def write(file, data, write=os.write):
    if b'"kind":"outcome"' in bytes(data):
        os.kill(os.getpid(), signal.SIGKILL)
    return write(file, data)

os.write = write
main()
"""
"""kafkaform, killed when its request is answered and the outcome is not yet on the disk."""


def kill_an_apply(folder: Path) -> None:
    """An apply of the page's first file dies in the middle."""
    page = (DOCS / "how-to/recover-after-a-crash.md").read_text(encoding="utf-8")
    text = next(body for _, title, body in FENCE.findall(page) if title)
    (folder / "main.kf.hcl").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", DYING, "apply", "--auto-approve"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def cut_a_retention(folder: Path) -> None:
    """Somebody applies a topic, and then the page's first file."""
    page = (DOCS / "how-to/undo-a-run.md").read_text(encoding="utf-8")
    text = next(body for _, title, body in FENCE.findall(page) if title)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKAFORM_ACTOR", "dana")
        for retention in ("7d", "1h"):
            today = text.replace('retention("1h")', f'retention("{retention}")')
            (folder / "main.kf.hcl").write_text(today, encoding="utf-8")
            run(folder, "kafkaform", "apply", "--auto-approve")


def make_team_folders(folder: Path) -> None:
    """60 folders with provider blocks of their own, one of which is applied; and topics that nobody
    has declared."""
    provider = (folder / "provider.kf.hcl").read_text(encoding="utf-8")
    (folder / "provider.kf.hcl").unlink()
    (folder / ".git").mkdir()
    names = ["sale", "pay", *(f"team{number:02}" for number in range(3, 61))]
    orders = 'resource "kafka_topic" "orders" {{\n  name       = "{}"\n  partitions = 3\n}}\n'
    module = 'variable "name" {}\n' + orders.format("x").replace('"x"', "var.name")
    files = {"modules/topic/main.kf.hcl": module}
    for name in names:
        own = provider.replace("{\n", "{\n  operation_timeout = 60\n", 1)
        files[f"teams/{name}/provider.kf.hcl"] = own if name > "team58" else provider
        files[f"teams/{name}/main.kf.hcl"] = orders.format(f"{name}.orders")
    call = 'module "extra" {{\n  source = "../../modules/topic"\n  name   = "{}.extra"\n}}\n'
    files["teams/pay/main.kf.hcl"] = call.format("pay")
    files["others/main.kf.hcl"] = provider + "".join(
        orders.format(name).replace('"orders"', f'"t{number}"')
        for number, name in enumerate(("sale.refunds", "sale.returns", "pay.cards", "audit.all"))
    )
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("others", "teams/sale"):
        run(folder, "kafkaform", "--chdir", name, "apply", "--auto-approve")
    shutil.rmtree(folder / "others")


def commit_offset(clients: Clients, group: str, offset: TopicPartition) -> None:
    """A group has read as far as this."""
    consumer = Consumer({**clients.config, "group.id": group})

    def has_committed() -> bool:
        # Kafka makes its topic of groups first.
        try:
            consumer.commit(offsets=[offset], asynchronous=False)
        except KafkaException:
            return False
        return True

    wait_for(has_committed)
    consumer.close()


def read_all_payments(folder: Path) -> None:
    """A group has read a topic that gets a record every two minutes."""
    provider = (folder / "provider.kf.hcl").read_text(encoding="utf-8")
    found = re.search(r'bootstrap_servers\s*=\s*\["([^"]+)"', provider)
    assert found is not None
    clients = Clients(found[1], os.environ["KAFKAFORM_SANDBOX_PASSWORD"])
    assert clients.create("shop.payments") == ""
    producer, now = Producer(clients.config), int(time.time() * 1000)
    for number in range(100):
        producer.produce("shop.payments", "x", timestamp=now - 60_000 - (99 - number) * 120_000)
    assert producer.flush(30) == 0
    commit_offset(clients, "billing", TopicPartition("shop.payments", 0, 100))


READER = """
import json, sys
from confluent_kafka import Consumer

consumer = Consumer(json.loads(sys.argv[1]))
consumer.subscribe(["shop.clicks"])
while True:
    consumer.poll(1.0)
"""
"""A member of a group that reads a topic until it is ended."""


def use_the_shop(folder: Path) -> subprocess.Popen[bytes]:
    """Somebody applies the page's first files; a group is 95 minutes behind, another topic grows,
    and a reader reads a third one: its process, which is ended after the page."""
    page = (DOCS / "how-to/see-whom-a-change-hits.md").read_text(encoding="utf-8")
    for title, text in [(title, text) for _, title, text in FENCE.findall(page) if title][:2]:
        (folder / title).write_text(text, encoding="utf-8")
    run(folder, "kafkaform", "apply", "--auto-approve")
    provider = (folder / "provider.kf.hcl").read_text(encoding="utf-8")
    servers = re.search(r'bootstrap_servers\s*=\s*\["([^"]+)"', provider)
    assert servers is not None
    clients = Clients(servers[1], os.environ["KAFKAFORM_SANDBOX_PASSWORD"])
    producer, now = Producer(clients.config), int(time.time() * 1000)
    minute = 60_000
    for number in range(200):
        # Ten at once, five minutes from the limits, so that a slow computer sees the same.
        producer.produce("shop.orders", "x", timestamp=now - (195 - number // 10 * 10) * minute)
    producer.produce("shop.clicks", "x")
    for number in range(1_500):
        age = (1_500 - number) * 66 * minute // 1_500
        producer.produce("shop.events", os.urandom(100_000), timestamp=now - age)
        producer.poll(0)
        if number % 100 == 99:
            assert producer.flush(60) == 0
    assert producer.flush(60) == 0
    commit_offset(clients, "billing", TopicPartition("shop.orders", 0, 100))
    login = {
        **clients.config,
        "sasl.username": "ci",
        "sasl.password": os.environ["KAFKAFORM_SANDBOX_CI_PASSWORD"],
        "group.id": "reports",
        "client.id": "reports-app",
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 200,
    }
    reader = subprocess.Popen([sys.executable, "-c", READER, json.dumps(login)])

    def has_read() -> bool:
        printed = run(folder, "kafkaform", "describe", "groups", "reports")
        return re.search(r"shop\.clicks +0 +1 +1 +0 .*reports-app", printed) is not None

    wait_for(has_read)
    return reader


BEFORE_PAGES = {
    "see-whom-a-change-hits": use_the_shop,
    "set-a-group-back": read_all_payments,
    "from-60-folders-to-one-file": make_team_folders,
    "undo-a-run": cut_a_retention,
    "take-over-a-cluster": declare_by_others,
    "from-jikkou": declare_by_jikkou,
    "from-confluents-provider": declare_by_terraform,
    "recover-after-a-crash": kill_an_apply,
}
"""Page -> what has happened before its first command."""
SERVERS = {
    "from-jikkou": ("--schema-registry", "--connect"),
    "from-confluents-provider": ("--schema-registry",),
}
"""Page -> what its sandbox has beside the broker."""


@pytest.mark.timeout(600)
def test_the_wheel_does_the_tutorial(home: Path, own_brokers: None, tmp_path: Path) -> None:
    """In an environment that has only the wheel and what it asks for: from the first broker to the
    last deletion, everything is printed as the page shows it."""
    commands = install_wheel(build_wheel(tmp_path / "dist"), tmp_path / "environment", "sandbox")
    folder = tmp_path / "work"
    folder.mkdir()
    different = follow(DOCS / "tutorial.md", folder, [str(commands / "kafkaform")])
    assert not different, "\n".join(different)


@pytest.mark.parametrize(
    ("page", "provider"),
    [(page, SERVERS.get(page.stem, ())) for page in PAGES],
    indirect=["provider"],
    ids=[page.stem for page in PAGES],
)
def test_each_how_to_leads_to_its_end(page: Path, provider: str, tmp_path: Path) -> None:
    """In a folder with a provider block, each command of the page prints what the page shows."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "provider.kf.hcl").write_text(provider, encoding="utf-8")
    user = BEFORE_PAGES.get(page.stem, lambda _: None)(folder)
    try:
        different = follow(page, folder)
    finally:
        if user is not None:
            user.kill()
            user.wait(10)
    assert not different, "\n".join(different)
