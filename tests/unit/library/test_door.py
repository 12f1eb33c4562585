"""What `kafkaform` exports to programs: its names, and how its functions behave for a caller that
has no terminal. The cluster is simulated."""

from __future__ import annotations

import inspect
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kafkaform
from kafkaform import (
    AppliedInPart,
    Blocked,
    ConfigurationError,
    Interrupted,
    KafkaformError,
    Note,
    Options,
    OutcomeStatus,
    Plan,
    PlanChosen,
    PlanRefused,
    RunEvent,
    Stop,
    UsageError,
    Workspace,
)
from kafkaform.provider.registry import Registry
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster, refused_items

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "library.md"
SECRET = "hunter2-and-more"
CONFIGURATION = """
provider "kafka" {
  bootstrap_servers = ["localhost:9092"]
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("PASSWORD")
}

variable "partitions" {
  type    = map(number)
  default = { a = 1, b = 2 }
}

resource "kafka_topic" "all" {
  for_each   = var.partitions
  name       = each.key
  partitions = each.value
}

output "names" {
  value = [for topic in kafka_topic.all : topic.name]
}
"""
ENVIRONMENT = {"PASSWORD": SECRET, "KAFKAFORM_ACTOR": "a-bot"}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> SimulatedCluster:
    """An empty cluster, which every configuration of the test reaches."""
    made = SimulatedCluster()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(made))
    return made


@pytest.fixture
def folder(tmp_path: Path, cluster: SimulatedCluster) -> Path:
    """A configuration, which is not in the current folder."""
    place = tmp_path / "infra"
    place.mkdir()
    (place / "main.kf.hcl").write_text(CONFIGURATION, "utf-8")
    return place


def opened(folder: Path, **more: Any) -> Workspace:
    return kafkaform.open_workspace(folder, **{"environment": ENVIRONMENT, **more})


def always(plan: Plan) -> bool:
    return True


def records(folder: Path) -> list[dict[str, Any]]:
    log = folder / "kafkaform.audit.jsonl"
    return (
        [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []
    )


# ── names ───────────────────────────────────────────────────────────────────────────────


def documented() -> dict[str, str]:
    """Name -> the arguments that docs/library.md shows, "" for what is no function."""
    found: dict[str, str] = {}
    for line in DOCUMENT.read_text("utf-8").splitlines():
        if line.startswith("| `"):
            for name, arguments in re.findall(r"`(\w+)(?:\(([^)]*)\))?`", line.split(" | ")[0]):
                found[name] = arguments
    return found


def test_what_is_exported_is_what_is_documented() -> None:
    """Each name has its row in docs/library.md, and each row names something that is there."""
    ways = {"approve", "expect", "confirm"}  # arguments, which have a table of their own
    named = documented().keys() - ways
    assert named == {*kafkaform.__all__} - {"RunEvent", "KafkaformError"}
    assert {"RunEvent", "KafkaformError"} <= {*re.findall(r"`(\w+)`", DOCUMENT.read_text("utf-8"))}


@pytest.mark.parametrize("name", [name for name in kafkaform.__all__ if name.islower()])
def test_the_signatures_shown_are_those_of_the_functions(name: str) -> None:
    """docs/library.md shows each function with its arguments, keyword-only ones after a star."""
    shown = [part.strip() for part in documented()[name].split(",")]
    parameters = inspect.signature(getattr(kafkaform, name)).parameters.values()
    expected = [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]
    only = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    assert shown == [*expected, *(["*", *only] if only else [])]


def test_help_shows_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No default of an argument is the environment, which `help` would print."""
    monkeypatch.setenv("PASSWORD", SECRET)
    for name in kafkaform.__all__:
        if name.islower():
            assert SECRET not in str(inspect.signature(getattr(kafkaform, name)))


def test_every_name_is_there_and_no_other(tmp_path: Path) -> None:
    """Each exported name can be used, `dir` lists it, and a name that is none is an error."""
    for name in kafkaform.__all__:
        assert getattr(kafkaform, name) is not None and name in dir(kafkaform)
    with pytest.raises(AttributeError, match="no attribute 'plan_all'"):
        kafkaform.plan_all  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_loads_nothing() -> None:
    """`import kafkaform` costs no more than its version, until a name of it is used."""
    program = (
        "import sys; before = {*sys.modules}; import kafkaform; "
        "print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["kafkaform", "kafkaform.version"]


# ── plan and apply ──────────────────────────────────────────────────────────────────────


def test_a_folder_is_planned_and_applied(
    folder: Path, cluster: SimulatedCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """From anywhere, with values for its variables and an environment of its own; the callback
    sees the plan, the log knows who approved it, and nothing is printed."""
    seen: list[Plan] = []
    workspace = opened(folder, variables={"partitions": {"a": 3}})
    plan = kafkaform.plan_changes(workspace)
    applied = kafkaform.apply_changes(
        workspace, plan, approve=lambda plan: seen.append(plan) is None
    )
    assert seen == [plan]
    assert [(r.change.address, r.outcome.status) for r in applied.results] == [
        ('kafka_topic.all["a"]', OutcomeStatus.APPLIED)
    ]
    assert [(output.name, output.value) for output in applied.outputs] == [("names", ("a",))]
    assert cluster.topics["a"].partitions == 3
    log = records(folder)
    assert {record["actor"] for record in log} == {"a-bot"}
    assert [r["body"]["how"] for r in log if r["kind"] == "approval"] == ["callback"]
    assert kafkaform.plan_changes(workspace).idle
    assert capfd.readouterr() == ("", "")


def test_variables_may_be_given_as_on_a_command_line(folder: Path, tmp_path: Path) -> None:
    """Texts and files, the later one wins over the earlier one."""
    file = tmp_path / "more.kfvars.hcl"
    file.write_text("partitions = { c = 1 }\n", "utf-8")
    for given, wanted in (
        (["partitions={d=1}", file], {"c"}),
        ([file, "partitions={d=1}"], {"d"}),
    ):
        desired = opened(folder, variables=given).desired
        assert {item.identity.key for item in desired.declared} == wanted


@pytest.mark.parametrize("value", [1.5, object()])
def test_a_variable_that_configuration_cannot_say(folder: Path, value: object) -> None:
    """A float, which is inexact, and foreign objects are refused by the variable's name."""
    with pytest.raises(UsageError, match="the variable partitions"):
        opened(folder, variables={"partitions": value})


async def _agree(plan: Plan) -> bool:
    return True


@pytest.mark.parametrize("answer", [lambda plan: False, lambda plan: "yes", lambda plan: 1])
def test_only_true_approves(
    folder: Path, cluster: SimulatedCluster, answer: Callable[[Plan], Any]
) -> None:
    """An answer that is not True, whatever it counts for, sends nothing."""
    with pytest.raises(KafkaformError, match="not approved; nothing was sent"):
        kafkaform.apply_changes(opened(folder), approve=answer)
    assert not cluster.topics and "intent" not in {r["kind"] for r in records(folder)}


def test_a_coroutine_does_not_approve(folder: Path, cluster: SimulatedCluster) -> None:
    """An async callback that nobody awaits is no yes."""
    with (
        pytest.warns(RuntimeWarning, match="never awaited"),
        pytest.raises(KafkaformError, match="not approved"),
    ):
        kafkaform.apply_changes(opened(folder), approve=_agree)  # type: ignore[arg-type]
    assert not cluster.topics


@pytest.mark.parametrize("operation", [kafkaform.apply_changes, kafkaform.destroy])
def test_somebody_must_approve(folder: Path, operation: Callable[..., Any]) -> None:
    """Without a callback, a token or a confirmation nothing begins, and no lock is taken."""
    with pytest.raises(UsageError, match="no approval was given"):
        operation(opened(folder))
    assert records(folder) == []


def test_a_reviewed_token_approves_its_plan_alone(folder: Path, cluster: SimulatedCluster) -> None:
    """`expect` needs no callback; another plan is refused before anything is sent."""
    token = kafkaform.plan_changes(opened(folder)).token
    with pytest.raises(PlanRefused):
        kafkaform.apply_changes(opened(folder, variables={"partitions": {"z": 1}}), expect=token)
    assert not cluster.topics
    assert kafkaform.apply_changes(opened(folder), expect=token).results


def test_a_plan_is_kept_in_a_file(folder: Path, tmp_path: Path) -> None:
    """A saved plan is the same plan; it is refused once it is stale."""
    workspace = opened(folder)
    plan = kafkaform.plan_changes(workspace)
    kafkaform.save_plan(plan, tmp_path / "a.kfplan")
    assert kafkaform.load_plan(tmp_path / "a.kfplan") == plan
    kafkaform.apply_changes(workspace, approve=always)
    kafkaform.destroy(workspace, confirm=[*plan.scopes.values()])
    with pytest.raises(PlanRefused):
        kafkaform.apply_changes(
            workspace, kafkaform.load_plan(tmp_path / "a.kfplan"), approve=always
        )


def test_destroy_needs_the_clusters_named(folder: Path, cluster: SimulatedCluster) -> None:
    """Another cluster id than that of the plan destroys nothing."""
    workspace = opened(folder)
    kafkaform.apply_changes(workspace, approve=always)
    with pytest.raises(KafkaformError, match="this would destroy in"):
        kafkaform.destroy(workspace, confirm=["elsewhere"])
    assert set(cluster.topics) == {"a", "b"}
    kafkaform.destroy(workspace, confirm=[cluster.id])
    assert not cluster.topics


def test_the_guards_are_those_of_the_command_line(folder: Path, cluster: SimulatedCluster) -> None:
    """A condition of `fail_on`, and a limit of deletions, stop a program too."""
    workspace = opened(folder)
    kafkaform.apply_changes(workspace, approve=always)
    with pytest.raises(Blocked):
        kafkaform.destroy(workspace, options=Options(max_deletes=1), approve=always)
    less = opened(folder, variables={"partitions": {"a": 1}})
    with pytest.raises(UsageError, match="not a condition"):
        kafkaform.apply_changes(less, approve=always, fail_on=["nonsense"])
    assert set(cluster.topics) == {"a", "b"}


def test_an_untrusted_folder_is_never_applied(folder: Path, tmp_path: Path) -> None:
    """It needs the state named, can be planned without a dry run, and no callback helps."""
    with pytest.raises(UsageError, match="needs --state"):
        opened(folder, untrusted=True)
    own = {"KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS": "localhost:9092"}
    text = 'provider "kafka" {}\nresource "kafka_topic" "a" { name = "a" }\n'
    (folder / "main.kf.hcl").write_text(text, "utf-8")
    place = str(tmp_path / "state.json")
    workspace = opened(folder, untrusted=True, state=place, environment=own)
    assert kafkaform.plan_changes(workspace).effective
    for call in (
        lambda: kafkaform.plan_changes(workspace, validate=True),
        lambda: kafkaform.apply_changes(workspace, approve=always),
        lambda: kafkaform.destroy(workspace, approve=always),
    ):
        with pytest.raises(UsageError, match="--untrusted"):
            call()


# ── imports ─────────────────────────────────────────────────────────────────────────────


def test_live_objects_become_configuration(folder: Path, tmp_path: Path) -> None:
    """What one folder made, another one that declares nothing writes blocks for and takes over."""
    kafkaform.apply_changes(opened(folder), approve=always)
    other = tmp_path / "other"
    other.mkdir()
    (other / "main.kf.hcl").write_text(CONFIGURATION.partition("variable")[0], "utf-8")
    found = kafkaform.import_all(opened(other), match=["a"])
    assert (found.count, found.complete) == (1, True)
    (other / "found.kf.hcl").write_text(found.text, "utf-8")
    applied = kafkaform.apply_changes(opened(other), approve=always)
    assert [change.action for change in applied.plan.effective] == [kafkaform.Action.IMPORT]
    assert [row.identity.key for row in applied.state.objects.values()] == ["a"]


def test_one_object_is_imported(folder: Path, tmp_path: Path) -> None:
    """By its address, without any change to it."""
    kafkaform.apply_changes(opened(folder), approve=always)
    for name in ("kafkaform.state.json", "kafkaform.audit.jsonl"):
        (folder / name).unlink()
    applied = kafkaform.import_object(opened(folder), 'kafka_topic.all["a"]', "a")
    assert [str(row.identity.key) for row in applied.state.objects.values()] == ["a"]
    with pytest.raises(UsageError):
        kafkaform.import_object(opened(folder), "no address", "a")


# ── errors, events, interrupts ──────────────────────────────────────────────────────────


def test_faults_of_the_configuration_are_data(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every fault with its place; nothing is printed."""
    (folder / "main.kf.hcl").write_text('resource "kafka_topic" "a" { nam = 1 }\n', "utf-8")
    with pytest.raises(ConfigurationError) as caught:
        opened(folder)
    assert any(item.range and item.range.file == "main.kf.hcl" for item in caught.value.diagnostics)
    assert capfd.readouterr() == ("", "")


def test_an_apply_in_part_says_what_was_applied(folder: Path, cluster: SimulatedCluster) -> None:
    """The error has the results of all steps, of those that went well too."""
    cluster.faults.schedule(refused_items(44, names="b"), "CreateTopics")
    with pytest.raises(AppliedInPart) as caught:
        kafkaform.apply_changes(opened(folder), approve=always)
    results = caught.value.applied.results
    assert {r.change.identity.key: r.outcome.status for r in results} == {
        "a": OutcomeStatus.APPLIED,
        "b": OutcomeStatus.FAILED,
    }


def test_events_tell_the_story(folder: Path) -> None:
    """The plan that is going to be approved is told, and a run that has nothing left to do."""
    told: list[RunEvent] = []
    workspace = opened(folder)
    plan = kafkaform.plan_changes(workspace)
    kafkaform.apply_changes(workspace, plan, approve=always, progress=told.append)
    assert [e.run for e in told if isinstance(e, PlanChosen) and e.plan == plan] == [""]
    told.clear()
    again = kafkaform.apply_changes(workspace, plan, approve=always, progress=told.append)
    assert again.already and not again.results
    [note] = [event.text for event in told if isinstance(event, Note)]
    assert note.startswith(f"Already applied by run {again.already}")


def test_a_callback_that_raises_early_ends_the_run(folder: Path, cluster: SimulatedCluster) -> None:
    """Before anything is sent: nothing is then, and the lock is free again."""

    def fail(event: RunEvent) -> None:
        raise ConnectionResetError("the chat is down")

    with pytest.raises(ConnectionResetError):
        kafkaform.apply_changes(opened(folder), approve=always, progress=fail)
    assert not cluster.topics
    kafkaform.apply_changes(opened(folder), approve=always)


def test_a_callback_cannot_end_a_run_that_sends(folder: Path, cluster: SimulatedCluster) -> None:
    """Once something may be sent, all is sent and recorded; then the caller gets his exception."""

    def fail(event: RunEvent) -> None:
        if any(record["kind"] == "intent" for record in records(folder)):
            raise ConnectionResetError("the chat is down")

    with pytest.raises(ConnectionResetError) as caught:
        kafkaform.apply_changes(opened(folder), approve=always, progress=fail)
    assert "it did is recorded" in caught.value.__notes__[0]
    assert set(cluster.topics) == {"a", "b"} and records(folder)[-1]["kind"] == "run_end"


def test_signal_handlers_stay_the_callers(folder: Path) -> None:
    """No handler is installed at any time of a run."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    seen: list[list[object]] = []

    def look(event: RunEvent) -> None:
        seen.append([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)])

    kafkaform.apply_changes(opened(folder), approve=always, progress=look)
    assert len(seen) > 2 and all(handlers == before for handlers in seen)


def test_a_run_can_be_stopped(folder: Path, cluster: SimulatedCluster) -> None:
    """`request` lets what is under way end, ends the run in good order, and may come twice."""
    stop = Stop()

    def ask(event: RunEvent) -> None:
        stop.request()

    with pytest.raises(Interrupted) as caught:
        kafkaform.apply_changes(opened(folder), approve=always, progress=ask, stop=stop)
    assert kafkaform.exit_code(caught.value) == 143
    assert {r.outcome.status for r in caught.value.applied.results} <= {OutcomeStatus.SKIPPED}
    assert not cluster.topics and records(folder)[-1]["kind"] == "run_end"
    kafkaform.apply_changes(opened(folder), approve=always)
    assert set(cluster.topics) == {"a", "b"}


def test_no_secret_leaves_in_an_error(
    folder: Path, cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a broker's words repeat is masked, in the error and in what it comes from."""

    def refuse(self: object, *arguments: object) -> None:
        try:
            raise ValueError(f"login with {SECRET} failed")
        except ValueError as error:
            raise kafkaform.ConnectError(f"refused: {error}", f"Change {SECRET}.") from error

    workspace = opened(folder)
    monkeypatch.setattr(MemoryProvider, "open", refuse)
    with pytest.raises(kafkaform.ConnectError) as caught:
        kafkaform.plan_changes(workspace)
    error = caught.value
    said = f"{error} {error.args} {error.advice} {error.diagnostics}"
    assert SECRET not in said and "(secret)" in said
    assert error.__suppress_context__ and error.__cause__ is None


def test_no_secret_is_in_a_repr(folder: Path) -> None:
    """A workspace in a traceback or a log shows no value of its environment."""
    workspace = opened(folder)
    kafkaform.plan_changes(workspace)
    assert SECRET not in f"{workspace!r} {workspace.configuration.inputs!r}"


def test_a_plan_is_rendered(folder: Path) -> None:
    """As on a terminal, as data, and as a comment or a page for its review."""
    plan = kafkaform.plan_changes(opened(folder))
    assert kafkaform.render_plan(plan).endswith("Plan: 2 to add, 0 to change, 0 to destroy.\n")
    assert len(json.loads(kafkaform.render_plan(plan, "json"))["resource_changes"]) == 2
    assert f"--expect {plan.token}" in kafkaform.render_plan(plan, "markdown")
    assert f"--expect {plan.token}" in kafkaform.render_plan(plan, "html")


@pytest.mark.parametrize(
    "call",
    [
        lambda: kafkaform.plan_changes("."),  # type: ignore[arg-type]
        lambda: kafkaform.apply_changes(Path()),  # type: ignore[arg-type]
        lambda: kafkaform.destroy("."),  # type: ignore[arg-type]
        lambda: kafkaform.import_object(".", "kafka_topic.a", "a"),  # type: ignore[arg-type]
        lambda: kafkaform.import_all("."),  # type: ignore[arg-type]
    ],
)
def test_a_folder_is_no_workspace(call: Callable[[], object]) -> None:
    """Who passes the path of a folder is told which function opens it."""
    with pytest.raises(TypeError, match=r"workspace = kafkaform\.open_workspace\('\.'\)"):
        call()


def test_an_unknown_form_is_an_error() -> None:
    """A plan is never rendered in another form than the one that was asked for."""
    with pytest.raises(UsageError, match="there is no form 'yaml'") as refused:
        kafkaform.render_plan(None, "yaml")  # type: ignore[arg-type]
    assert refused.value.advice == "Use one of text, json, markdown, html."


def test_the_text_of_an_error_names_the_faults(tmp_path: Path) -> None:
    """`print(error)` says what is wrong and where, not only that something is."""
    (tmp_path / "main.kf.hcl").write_text('output "a" {\n  value = nothing.a + nowhere.b\n}\n')
    with pytest.raises(ConfigurationError) as refused:
        kafkaform.open_workspace(tmp_path, environment={})
    first, *faults = str(refused.value).splitlines()
    assert first.endswith(":") and len(faults) == 2
    assert all(line.startswith("  main.kf.hcl:2:") for line in faults)
