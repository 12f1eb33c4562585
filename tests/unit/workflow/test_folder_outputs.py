"""`data "kafkaform_outputs"`: what another folder has recorded, and every reason why it cannot be
read, each at the line of the block or of the name."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.core.diagnostics import Severity
from kafkaform.core.errors import ConfigurationError
from kafkaform.core.value import FrozenMap
from kafkaform.language.desired import Built
from kafkaform.state.codec import encode
from kafkaform.state.model import State
from kafkaform.workflow import workspace
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.stores import load_outputs
from kafkaform.workflow.workspace import Workspace

from ...kit.git_origin import Origin
from .test_repository_file import make_files

STATE = "kafkaform.state.json"
DATA = 'data "kafkaform_outputs" "platform" {\n  folder = "../platform"\n}\n'
TOPIC = "\n".join(
    (
        'provider "kafka" {',
        '  bootstrap_servers = ["nowhere:1"]',
        "}",
        'resource "kafka_topic" "orders" {',
        "  name = {}",
        "}",
        "",
    )
)
PREFIX = "data.kafkaform_outputs.platform.outputs.prefix"
PROTECTED = FrozenMap(value=None, sensitive=True)


def record(folder: Path, name: str = STATE, **outputs: object) -> None:
    """Write the state that an apply would leave behind. A FrozenMap stands in it as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    items = {
        output: value if value is PROTECTED else FrozenMap(value=value, sensitive=False)
        for output, value in outputs.items()
    }
    (folder / name).write_bytes(
        encode(State("11111111-1111-4111-8111-111111111111", outputs=FrozenMap(items)))
    )


def declare_topic(name: str) -> str:
    return TOPIC.replace("{}", name)


def evaluate(folder: Path, text: str, **inputs: object) -> Built:
    """The folder `shop` with this text."""
    make_files(folder, {"shop/main.kf.hcl": text})
    read = Inputs.read((), environment={}, **inputs)  # type: ignore[arg-type]
    configuration = read_configuration(folder / "shop", read, load_outputs=load_outputs)
    return configuration.evaluate()


def list_faults(built: Built) -> list[tuple[str, str]]:
    return [
        (str(item.range), item.summary)
        for item in built.desired.diagnostics
        if item.severity is Severity.ERROR
    ]


def open_shop(folder: Path, text: str) -> Workspace:
    make_files(folder, {"shop/main.kf.hcl": text})
    return workspace.open_workspace(folder / "shop", environment={})


def test_a_value_is_used_like_any_other(tmp_path: Path) -> None:
    """No provider answers, so no provider block is needed and nothing connects."""
    record(tmp_path / "platform", prefix="acme", sizes=(1, 2), tags=FrozenMap(tier="gold"))
    name = f'"${{{PREFIX}}}.orders"'
    space = open_shop(
        tmp_path,
        DATA
        + declare_topic(name)
        + "output all {\n  value = data.kafkaform_outputs.platform\n}\n".replace(" all", ' "all"'),
    )
    assert [item.identity.key for item in space.desired.declared] == ["acme.orders"]
    (output,) = space.desired.outputs
    assert output.value == FrozenMap(
        folder="../platform",
        outputs=FrozenMap(prefix="acme", sizes=(1, 2), tags=FrozenMap(tier="gold")),
        sensitive=(),
    )


def test_a_folder_without_any_provider_can_read_outputs(tmp_path: Path) -> None:
    record(tmp_path / "platform", prefix="acme")
    space = open_shop(tmp_path, DATA + f'output "prefix" {{\n  value = {PREFIX}\n}}\n')
    assert [output.value for output in space.desired.outputs] == ["acme"]
    assert not space.desired.providers


def test_outputs_decide_what_is_declared(tmp_path: Path) -> None:
    """Also for several folders at once, with for_each."""
    record(tmp_path / "a", topics=("a.one", "a.two"))
    record(tmp_path / "b", topics=("b.one",))
    text = (
        'data "kafkaform_outputs" "teams" {\n  for_each = toset(["a", "b"])\n'
        '  folder = "../${each.key}"\n}\n'
        + declare_topic("each.value").replace(
            "  name =",
            "  for_each = toset(flatten(values(data.kafkaform_outputs.teams)[*].outputs.topics))\n"
            "  name =",
        )
    )
    space = open_shop(tmp_path, text)
    assert sorted(item.identity.key for item in space.desired.declared) == [
        "a.one",
        "a.two",
        "b.one",
    ]
    assert set(space.configuration.asking.outputs.read) == {tmp_path / "a", tmp_path / "b"}


def test_the_state_is_where_the_other_folder_says(tmp_path: Path) -> None:
    """In a backend block, or in the repository file above it. KAFKAFORM_STATE is for this one."""
    backend = 'kafkaform {\n  backend "local" {\n    path = "states/it.json"\n  }\n}\n'
    make_files(
        tmp_path,
        {
            "kafkaform.hcl": 'repository {\n  name = "acme"\n}\nfolders "teams/*" {\n'
            '  state = "states/${folder.name}.json"\n}\n',
            "platform/main.kf.hcl": backend,
            "teams/pay/main.kf.hcl": "",
        },
    )
    record(tmp_path / "platform/states", "it.json", prefix="acme")
    record(tmp_path / "states", "pay.json", prefix="pay")
    text = (
        DATA
        + 'data "kafkaform_outputs" "pay" {\n  folder = "../teams/pay"\n}\n'
        + f'output "it" {{\n  value = [{PREFIX}, data.kafkaform_outputs.pay.outputs.prefix]\n}}\n'
    )
    make_files(tmp_path, {"shop/main.kf.hcl": text})
    space = workspace.open_workspace(
        tmp_path / "shop", environment={"KAFKAFORM_STATE": str(tmp_path / "other.json")}
    )
    assert [output.value for output in space.desired.outputs] == [("acme", "pay")]


@pytest.mark.parametrize(
    "folder, summary",
    [
        ("../nowhere", "there is no folder ../nowhere"),
        ("../empty", "../empty has no state yet"),
        (".", ". is the folder of this configuration itself"),
        ("../shop", "../shop is the folder of this configuration itself"),
        ("../link", "../link is the folder of this configuration itself"),
        ("../broken", "the state of ../broken cannot be read: "),
    ],
)
def test_every_reason_is_at_the_block(tmp_path: Path, folder: str, summary: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shop")
    make_files(tmp_path, {f"broken/{STATE}": "{", "shop/main.kf.hcl": ""})
    text = DATA.replace("../platform", folder) + declare_topic(PREFIX)
    ((place, text),) = list_faults(evaluate(tmp_path, text))
    assert place == "main.kf.hcl:1:1"
    assert text.startswith(f"data.kafkaform_outputs.platform cannot be read: {summary}")


def test_a_folder_without_a_state_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "platform").mkdir()
    with pytest.raises(ConfigurationError) as error:
        open_shop(tmp_path, DATA)
    (fault,) = error.value.diagnostics
    assert "kafkaform apply --all" in fault.advice


@pytest.mark.parametrize(
    "reference", ["outputs.password", 'outputs["password"]', 'outputs["pass${"word"}"]']
)
def test_a_sensitive_output_stays_sensitive(tmp_path: Path, reference: str) -> None:
    """No state has its value. Null would pass for one, so it is a fault at the name."""
    record(tmp_path / "platform", prefix="acme", password=PROTECTED)
    text = DATA + declare_topic(f"data.kafkaform_outputs.platform.{reference}")
    ((place, summary),) = list_faults(evaluate(tmp_path, text))
    assert place.startswith("main.kf.hcl:8:")
    assert summary == (
        'The output "password" of ../platform is sensitive, so its value is not recorded'
    )


def test_a_missing_output_is_a_fault_at_the_name(tmp_path: Path) -> None:
    record(tmp_path / "platform", prefix="acme")
    text = DATA + declare_topic("data.kafkaform_outputs.platform.outputs.prefx")
    built = evaluate(tmp_path, text)
    ((place, summary),) = list_faults(built)
    assert (place, summary) == (
        "main.kf.hcl:8:10",
        '../platform has not recorded an output "prefx"',
    )
    (fault,) = (d for d in built.desired.diagnostics if d.severity is Severity.ERROR)
    assert (fault.detail, fault.advice) == ("It has recorded prefix.", 'Did you mean "prefix"?')


def test_validate_reads_no_state(tmp_path: Path) -> None:
    """Only names are checked, as for every data source."""
    make_files(tmp_path, {"shop/main.kf.hcl": DATA + declare_topic(PREFIX)})
    configuration = read_configuration(tmp_path / "shop", Inputs.read((), environment={}))
    built = configuration.evaluate(offline=True)
    assert not list_faults(built)
    assert any("not been read" in item.detail + item.summary for item in built.desired.diagnostics)


@pytest.mark.parametrize("argument", ["provider = kafka", "path = 1"])
def test_other_arguments_are_refused(tmp_path: Path, argument: str) -> None:
    record(tmp_path / "platform", prefix="acme")
    text = DATA.replace("}", f"  {argument}\n}}")
    ((place, _),) = list_faults(evaluate(tmp_path, text))
    assert place.startswith("main.kf.hcl:3:")


# ── --untrusted ─────────────────────────────────────────────────────────────────────────

FILE = """
repository {
  name = "acme"
}

folders "*" {
  state = "STATES/${folder.name}.json"
}
"""


def attack(
    tmp_path: Path, states: Path, folder: str, door: Path | None = None, **files: str
) -> list[tuple[str, str]]:
    """The faults of a pull request that reads the outputs of a folder. door: where a link `door` of
    it leads to."""
    origin = Origin.make(tmp_path / "repository")
    origin.commit(
        {
            "kafkaform.hcl": FILE.replace("STATES", str(states)),
            "platform/main.kf.hcl": "",
            "shop/main.kf.hcl": "",
        }
    )
    origin.git("checkout", "--quiet", "-b", "attack")
    if door is not None:
        (origin.path / "door").symlink_to(door)
    text = DATA.replace("../platform", folder) + f'output "p" {{\n  value = {PREFIX}\n}}\n'
    make_files(origin.path, {**files, "shop/main.kf.hcl": text})
    environment = {"KAFKAFORM_BASE_REF": "main"}
    inputs = Inputs.read((), untrusted=True, environment=environment)
    configuration = read_configuration(origin.path / "shop", inputs, load_outputs=load_outputs)
    return list_faults(configuration.evaluate())


def test_untrusted_files_read_the_reviewed_state(tmp_path: Path) -> None:
    """A backend block of the pull request does not count, nor does its repository file."""
    record(tmp_path / "states", "platform.json", prefix="acme")
    backend = 'kafkaform {\n  backend "local" {\n    path = "forged.json"\n  }\n}\n'
    files = {
        "platform/main.kf.hcl": backend,
        "platform/forged.json": "{",
        "kafkaform.hcl": FILE.replace("STATES", "forged"),
    }
    assert not attack(tmp_path, tmp_path / "states", "../platform", **files)


@pytest.mark.parametrize(
    "folder, summary",
    [
        ("../../elsewhere", "--untrusted: ../../elsewhere is not below a kafkaform.hcl"),
        ("/etc", "--untrusted: /etc is not below a kafkaform.hcl"),
        ("../..", "--untrusted: ../.. is not below a kafkaform.hcl"),
        ("../shop/../../elsewhere", "--untrusted: ../shop/../../elsewhere is not below"),
    ],
)
def test_untrusted_files_cannot_leave_the_repository(
    tmp_path: Path, folder: str, summary: str
) -> None:
    record(tmp_path / "elsewhere", prefix="acme")
    ((place, text),) = attack(tmp_path, tmp_path / "states", folder)
    assert place == "main.kf.hcl:1:1"
    assert text.startswith(f"data.kafkaform_outputs.platform cannot be read: {summary}")


def test_untrusted_files_follow_no_link(tmp_path: Path) -> None:
    record(tmp_path / "elsewhere", prefix="acme")
    ((_, text),) = attack(tmp_path, tmp_path / "states", "../door", tmp_path / "elsewhere")
    assert "is a link" in text


def test_untrusted_files_cannot_forge_a_state(tmp_path: Path) -> None:
    """One in the checkout is part of the pull request."""
    ((_, text),) = attack(tmp_path, tmp_path / "repository/states", "../platform")
    assert "the state of ../platform can be forged" in text
