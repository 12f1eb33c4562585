"""Pull requests that hide what a folder declares: in another form of file, in a module, behind
another state, or behind an exception of their own. Each is refused at its line."""

from __future__ import annotations

import pytest

from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.commands.here import Here
from ...kit.git_origin import TOPIC, Origin, call

FILE = """repository {
  name  = "acme"
  owner = "the platform team"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["kafka-1:9093"]
}

folders "teams/*" {
  state = "s3://acme/${folder.path}"
  uses  = { kafka = cluster.prod }

  boundary {
    topics = ["${folder.name}.*"]
  }
}
"""
OUTSIDE = 'the topic "billing.payments" is outside of the boundary of teams/shop (kafkaform.hcl:15)'
PLAIN = 'resource "kafka_topic" "a" {\n  name = "shop.a"\n}\n'
BILLING = PLAIN.replace("shop.a", "billing.payments")
JSON = '{\n  "resource": {"kafka_topic": {"a": {\n    "name": "billing.payments"}}}\n}\n'


@pytest.fixture
def top(here: Here, tmp_path_factory: pytest.TempPathFactory) -> Here:
    """The top of a repository."""
    here.monkeypatch.setenv("KAFKAFORM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    here.write("kafkaform.hcl", FILE)
    here.write("teams/shop/main.kf.hcl", PLAIN)
    here.write("teams/billing/main.kf.hcl", BILLING)
    return here


def find_faults(top: Here, folder: str = "teams/shop") -> list[tuple[str, str]]:
    """The place and the summary of each error of a folder."""
    document = top.json("validate", "--all", "--json", code=1)
    (record,) = [item for item in document["folders"] if item["folder"] == folder]
    return [
        (f"{item['range']['filename']}:{item['range']['start']['line']}", item["summary"])
        for item in record["diagnostics"]
        if item["severity"] == "error"
    ]


FORMS = {
    "JSON": ({"b.kf.json": JSON.replace('"a"', '"b"')}, "b.kf.json:3"),
    "a file of Terraform": (
        {"main.kf.hcl": None, "main.tf": BILLING},
        "main.tf:2",
    ),
    "a file of OpenTofu in JSON": (
        {"main.kf.hcl": None, "main.tofu.json": JSON},
        "main.tofu.json:3",
    ),
    "an override file": (
        {"b_override.kf.hcl": BILLING},
        "b_override.kf.hcl:2",
    ),
    "a variable of an automatic file": (
        {
            "main.kf.hcl": 'variable "n" {}\n' + PLAIN.replace('"shop.a"', "var.n"),
            "a.auto.kfvars.hcl": 'n = "billing.payments"\n',
        },
        "main.kf.hcl:3",
    ),
    "a text of another file": (
        {
            "main.kf.hcl": PLAIN.replace('"shop.a"', 'trimspace(file("name.txt"))'),
            "name.txt": "billing.payments\n",
        },
        "main.kf.hcl:2",
    ),
    "a module of the folder": (
        {"main.kf.hcl": 'module "m" {\n  source = "./m"\n}\n', "m/main.kf.hcl": BILLING},
        "m/main.kf.hcl:2",
    ),
    "another team's folder as a module": (
        {"main.kf.hcl": 'module "m" {\n  source = "../billing"\n}\n'},
        "../billing/main.kf.hcl:2",
    ),
    "a name in capitals and a function": (
        {"main.kf.hcl": PLAIN.replace('"shop.a"', 'lower("BILLING.payments")')},
        "main.kf.hcl:2",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_names_count_in_every_form(top: Here, form: str) -> None:
    """Whatever kind of file has the block, and wherever its name comes from."""
    files, place = FORMS[form]
    for name, text in files.items():
        if text is None:
            (top.path / "teams/shop" / name).unlink()
        else:
            top.write(f"teams/shop/{name}", text)
    faults = find_faults(top)
    file = place.removeprefix("../")
    expected = f"teams/{file}" if file != place else f"teams/shop/{file}"
    assert [(p, s.split(", whose")[0]) for p, s in faults] == [(expected, OUTSIDE)]


def test_a_module_from_git_is_judged(top: Here, tmp_path_factory: pytest.TempPathFactory) -> None:
    """By the values that it declares in the end, at its line."""
    origin = Origin.make(tmp_path_factory.mktemp("origins") / "kafka")
    origin.commit({"main.kf.hcl": TOPIC}, "v1")
    text = call("m", f"{origin.source}?ref=v1", name='"billing.payments"')
    top.write("teams/shop/main.kf.hcl", text)
    top.monkeypatch.chdir(top.path / "teams/shop")
    top.done("init", "--modules-only")
    top.monkeypatch.chdir(top.path)
    ((place, summary),) = find_faults(top)
    assert summary.startswith(OUTSIDE)
    assert place == f"{origin.source}?ref=v1//main.kf.hcl:4"


def test_a_folder_with_a_boundary_chooses_no_state(top: Here) -> None:
    """The state of another folder would get other outputs, which others read."""
    backend = (
        'kafkaform {\n  backend "s3" {\n    bucket = "acme"\n    key = "teams/billing"\n  }\n}\n'
    )
    top.write("teams/shop/backend.kf.hcl", backend)
    faults = find_faults(top)
    assert faults[0][0] == "teams/shop/backend.kf.hcl:2"
    assert (
        "teams/shop has a boundary, so its state is where kafkaform.hcl:11:1 says" in faults[0][1]
    )
    top.monkeypatch.chdir(top.path / "teams/shop")
    assert "teams/shop has a boundary" in top.fails("plan")
    top.monkeypatch.chdir(top.path)
    top.write(
        "kafkaform.hcl",
        FILE.replace("  boundary {\n    topics = [", '  labels = {\n    t = join("", [').replace(
            '*"]\n', '*"])\n'
        ),
    )
    assert top.done("validate", "--folder", "teams/shop")


def test_a_boundary_has_no_exceptions(top: Here) -> None:
    """Neither a waiver of the folder's own policies nor --accept lifts it."""
    top.write("teams/shop/main.kf.hcl", BILLING)
    waiver = (
        'policy_set "kafka" {\n  waiver {\n    rule = "boundary-name"\n'
        '    addresses = ["*"]\n    reason = "none"\n    until = "2099-01-01"\n  }\n}\n'
    )
    top.write("teams/shop/policy.kf.hcl", waiver)
    faults = find_faults(top)
    assert any(place == "teams/shop/policy.kf.hcl:3" for place, _ in faults)
    assert any(summary.startswith(OUTSIDE) for _, summary in faults)
    (top.path / "teams/shop/policy.kf.hcl").unlink()
    top.monkeypatch.chdir(top.path / "teams/shop")
    assert "boundary-name" in top.fails("plan", "--accept", "boundary-name")


@pytest.mark.parametrize("name", ["sh*p", "sh op", "shоp", "-shop", "shop\n", "${folder.path}"])
def test_an_odd_name_gives_no_boundary(top: Here, name: str) -> None:
    """A folder is refused whose name would be a pattern, or only looks like another one."""
    top.write(f"teams/{name}/main.kf.hcl", BILLING)
    document = top.json("validate", "--all", "--json", code=1)
    (record,) = [item for item in document["folders"] if item["folder"] == f"teams/{name}"]
    (fault,) = record["diagnostics"]
    assert "is refused: the name of a folder consists of" in fault["summary"]
    assert fault["range"]["filename"] == "kafkaform.hcl" and fault["range"]["start"]["line"] == 11


@pytest.mark.parametrize("folder", [".hidden", "teams/shop/more", "free"])
def test_a_folder_beside_the_blocks_gets_nothing(top: Here, folder: str) -> None:
    """No command plans it with the others; alone it has neither a cluster nor a state of them."""
    top.write(f"{folder}/main.kf.hcl", BILLING)
    document = top.json("validate", "--all", "--json")
    assert [item["folder"] for item in document["folders"]] == ["teams/billing", "teams/shop"]
    assert "no folder of the repository acme matches" in top.fails("validate", "--folder", folder)
    top.monkeypatch.chdir(top.path / folder)
    assert 'There is no block provider "kafka", and a plan needs one' in top.done("validate").err


def test_a_hidden_folder_is_refused(top: Here) -> None:
    """No wildcard chooses it, and alone it has no name that a boundary could have."""
    top.write("teams/.hidden/main.kf.hcl", BILLING)
    document = top.json("validate", "--all", "--json")
    assert [item["folder"] for item in document["folders"]] == ["teams/billing", "teams/shop"]
    top.monkeypatch.chdir(top.path / "teams/.hidden")
    assert "the folder 'teams/.hidden' is refused" in top.fails("validate")


@pytest.mark.parametrize("glob", ["..", "../*", "teams/../teams/shop", "/etc", "teams//shop"])
def test_a_glob_leads_nowhere_else(top: Here, glob: str) -> None:
    """--folder chooses folders of the repository only."""
    said = top.fails("validate", "--folder", glob)
    assert "no folder of the repository acme matches" in said or "names no folders" in said


def test_a_name_that_the_cluster_says_is_judged(top: Here) -> None:
    """A plan knows it, and judges it at its line."""
    cluster = SimulatedCluster()
    cluster.outside.create("billing.payments")
    top.monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    topics = "sort([for topic in data.kafka_topics.all.list : topic.name])[0]"
    text = 'data "kafka_topics" "all" {}\n' + PLAIN.replace('"shop.a"', topics)
    top.write("teams/shop/main.kf.hcl", text)
    top.monkeypatch.chdir(top.path / "teams/shop")
    said = top.fails("plan", "--state", "own.json", code=8)
    assert OUTSIDE in " ".join(said.split())


REMOVED = "removed {{\n  from = kafka_topic.a\n  lifecycle {{\n    destroy = {}\n  }}\n}}\n"
ADOPTED = BILLING.replace("\n}", "\n  lifecycle {\n    adopt = true\n  }\n}")
IMPORTED = 'import {\n  to = kafka_topic.a\n  id = "billing.payments"\n}\n'
LATER = {
    "deletes": (PLAIN.replace('"a"', '"b"') + REMOVED.format("true"), 4),
    "forgets": (PLAIN.replace('"a"', '"b"') + REMOVED.format("false"), 4),
    "moves": (
        BILLING.replace('"a"', '"new"')
        + "moved {\n  from = kafka_topic.a\n  to   = kafka_topic.new\n}\n",
        1,
    ),
    "keeps": (BILLING, 1),
}


@pytest.fixture
def cluster(top: Here) -> SimulatedCluster:
    """A cluster with another team's topic, which every command reaches."""
    cluster = SimulatedCluster()
    cluster.outside.create("billing.payments")
    top.monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    return cluster


def refuse(top: Here, line: int, *flags: str) -> None:
    """Neither a plan nor an apply passes; both name the line."""
    for command in (("plan",), ("apply", "--auto-approve")):
        said = " ".join(top.fails(*command, "--state", "own.json", *flags, code=8).split())
        assert OUTSIDE in said
        assert f"(main.kf.hcl:{line})" in said


@pytest.mark.parametrize("attempt", LATER)
def test_a_state_from_before_the_boundary_helps_nobody(
    top: Here, cluster: SimulatedCluster, attempt: str
) -> None:
    """What it records is outside now: nothing becomes of it from this folder."""
    top.write("kafkaform.hcl", FILE.replace('"${folder.name}.*"', '"*"'))
    top.monkeypatch.chdir(top.path / "teams/shop")
    top.write("teams/shop/main.kf.hcl", BILLING)
    top.done("apply", "--state", "own.json", "--auto-approve", "--adopt", "*")
    top.write("kafkaform.hcl", FILE)
    text, line = LATER[attempt]
    top.write("teams/shop/main.kf.hcl", text)
    refuse(top, line)
    assert "billing.payments" in cluster.topics
    assert "kafka_topic.a" in top.done("state", "list", "--state", "own.json").out


@pytest.mark.parametrize(
    ("text", "flags"),
    [(BILLING, ()), (BILLING, ("--adopt", "*")), (ADOPTED, ()), (BILLING + IMPORTED, ())],
)
def test_another_teams_topic_is_not_taken_over(
    top: Here, cluster: SimulatedCluster, text: str, flags: tuple[str, ...]
) -> None:
    """Neither by the block alone, nor by a flag, its lifecycle or an import block."""
    top.write("teams/shop/main.kf.hcl", text)
    top.monkeypatch.chdir(top.path / "teams/shop")
    refuse(top, 1, *flags)
    assert not top.done("state", "list", "--state", "own.json").out.strip()


def test_a_name_that_another_folder_has_recorded_is_judged(
    top: Here, cluster: SimulatedCluster
) -> None:
    """An output is a value like any other."""
    top.write("kafkaform.hcl", FILE.replace("s3://acme/${folder.path}", "states/${folder.path}"))
    output = 'output "name" {\n  value = "billing.payments"\n}\n'
    top.write("teams/billing/main.kf.hcl", BILLING.replace("payments", "other") + output)
    top.done("apply", "--folder", "teams/billing", "--auto-approve")
    name = "data.kafkaform_outputs.billing.outputs.name"
    data = 'data "kafkaform_outputs" "billing" {\n  folder = "../billing"\n}\n'
    top.write("teams/shop/main.kf.hcl", PLAIN.replace('"shop.a"', name) + data)
    said = " ".join(top.fails("plan", "--all", code=8).split())
    assert OUTSIDE in said and "kafka_topic.a (main.kf.hcl:1)" in said
