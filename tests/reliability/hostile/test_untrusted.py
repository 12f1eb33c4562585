"""`--untrusted`: what a stranger's files say is shown, and decides nothing about who is asked,
with which credentials, and what is read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kafkaform.core.clock import SystemClock
from kafkaform.workflow.configuration.untrusted import name_variable
from kafkaform_kafka.connection.provider_block import CONFIG
from kafkaform_kafka.wire import connections

from ...kit.commands.folder import Folder
from ...kit.commands.here import Here
from ...kit.listener import Listener

BOOTSTRAP = "KAFKAFORM_KAFKA_BOOTSTRAP_SERVERS"
TOPIC = 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'
DATA = 'data "kafka_topics" "all" {}\noutput "x" { value = data.kafka_topics.all }\n'
PLAN = ("plan", "--untrusted", "--state=state.json")
CANARY = "canary-4f1d9b"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of whoever runs the tests, and no patience."""
    for name in [name for name in os.environ if name.startswith("KAFKAFORM_KAFKA")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(connections, "SETTLED", 0.1)  # nobody here is a broker that may come yet


# ── where it connects to ────────────────────────────────────────────────────────────────


def block(text: str) -> str:
    return f'provider "kafka" {{\n{text}\n}}\n'


def login(address: str) -> str:
    """A block that sends the pipeline's password to an address."""
    return block(
        f'bootstrap_servers = ["{address}"]\nsecurity_protocol = "SASL_PLAINTEXT"\n'
        'sasl_username = "admin"\nsasl_password = secret_env("PIPELINE_PASSWORD")\n'
        'operation_timeout = "1s"'
    )


@pytest.mark.parametrize("more", [TOPIC, DATA, TOPIC + DATA], ids=["topic", "data", "both"])
def test_a_changed_address_gets_no_byte(here: Here, listener: Listener, more: str) -> None:
    """Neither a plan nor a data source, which is asked while files are evaluated, connects to
    what a pull request names; the fault is at its line."""
    here.monkeypatch.setenv("PIPELINE_PASSWORD", CANARY)
    here.monkeypatch.setenv(BOOTSTRAP, "127.0.0.1:1")
    here.write("main.kf.hcl", login(listener.address) + more)
    said = here.fails(*PLAN)
    assert f"servers comes from the environment, and {BOOTSTRAP} has another value" in said
    assert "on main.kf.hcl:2:1" in said
    assert listener.connections == 0 and listener.received == b""
    assert CANARY not in said


def test_without_the_flag_it_would_connect(here: Here, listener: Listener) -> None:
    """The same files do reach that host when they are trusted, so the test above can fail."""
    here.monkeypatch.setenv("PIPELINE_PASSWORD", CANARY)
    here.write("main.kf.hcl", login(listener.address) + DATA)
    here.run("plan")
    assert listener.connections > 0 and listener.received != b""


@pytest.mark.parametrize("secret", ["PIPELINE_PASSWORD", "AWS_SECRET_ACCESS_KEY"])
def test_no_other_secret_is_sent(here: Here, listener: Listener, secret: str) -> None:
    """The password is the environment's own, whatever variable the file names: what goes out is
    not the value of another one."""
    for name in ("PIPELINE_PASSWORD", "AWS_SECRET_ACCESS_KEY"):
        here.monkeypatch.setenv(name, CANARY)
    given = {
        "bootstrap_servers": listener.address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_username": "admin",
        "sasl_password": "reader",
    }
    for name, text in given.items():
        here.monkeypatch.setenv(name_variable("kafka", name), text)
    here.write("main.kf.hcl", login(listener.address).replace("PIPELINE_PASSWORD", secret) + TOPIC)
    said = here.fails(*PLAN)
    assert "cannot reach Kafka" in said  # the listener is no broker
    assert listener.connections > 0
    assert CANARY.encode() not in listener.received and CANARY not in said


CHANGES = {
    'bootstrap_servers = ["a:1", "evil:9092"]': "bootstrap_servers",
    'security_protocol = "PLAINTEXT"': "security_protocol",
    'sasl_username = "somebody"': "sasl_username",
    'sasl_mechanism = "oauthbearer"': "sasl_mechanism",
    'sasl_token_url = "https://evil.example/token"': "sasl_token_url",
    'sasl_token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token"': "sasl_token_file",
    'sasl_oauth_scopes = ["admin"]': "sasl_oauth_scopes",
    'ca_cert = "evil.pem"': "ca_cert",
    'ca_cert_file = "evil.pem"': "ca_cert",
    'client_cert_file = "/etc/shadow"': "client_cert",
    'ssl_truststore_location = "evil.jks"': "ssl_truststore_location",
    'ssl_keystore_location = "/etc/runner.p12"': "ssl_keystore_location",
    'client_key_file = "/etc/shadow"': "client_key",
    "tls_enabled = false": "tls_enabled",
    'sasl_aws_profile = "prod"': "sasl_aws_profile",
    'sasl_aws_role_arn = "arn:aws:iam::1:role/admin"': "sasl_aws_role_arn",
    'sasl_aws_shared_config_files = ["evil.ini"]': "sasl_aws_shared_config_files",
    'sasl_aws_container_credentials_full_uri = "http://169.254.169.254/"': "sasl_aws_container",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_setting_is_refused(here: Here, change: str) -> None:
    """Each setting of a connection that a file says differently is named, at its line."""
    here.monkeypatch.setenv(BOOTSTRAP, "a:1")
    same = "" if "bootstrap" in change else 'bootstrap_servers = ["a:1"]'
    here.write("main.kf.hcl", block(f"{same}\n{change}") + TOPIC)
    said = here.fails(*PLAN)
    assert f"{CHANGES[change]}" in said and "comes from the environment" in said
    assert "on main.kf.hcl:3:1" in said


def test_instances_have_variables_of_their_own(here: Here) -> None:
    """A second block with an alias that nobody prepared goes nowhere."""
    here.monkeypatch.setenv(BOOTSTRAP, "a:1")
    text = block('bootstrap_servers = ["a:1"]') + block('alias = "eu"')
    here.write("main.kf.hcl", text + TOPIC)
    assert "KAFKAFORM_KAFKA_EU_BOOTSTRAP_SERVERS is not set" in here.fails(*PLAN)


def test_without_a_block_or_a_variable(here: Here) -> None:
    """Nothing says where to connect, and the variable that would is named."""
    here.write("main.kf.hcl", TOPIC)
    assert f"{BOOTSTRAP} is not set" in here.fails(*PLAN)


def test_no_variable_has_two_meanings() -> None:
    """An alias cannot be chosen so that one instance's variable is read as another's: no
    attribute is called like the end of another one. One that takes only the words of a list
    refuses what another one means."""
    read = {name: one for name, one in CONFIG.attributes.items() if not one.policy}
    tails = [(a, b) for a in read if not read[a].choices for b in read if b.endswith(f"_{a}")]
    assert tails == []


def test_every_setting_of_a_connection_is_the_environments() -> None:
    """What a file may say for itself is a short list; a new attribute is not on it by chance."""
    policies = {name for name, one in CONFIG.attributes.items() if one.policy}
    assert policies == {
        *("skip_tls_verify", "operation_timeout", "acl_order", "protect_topics"),
        *("reassignment_throttle", "principal", "kafka_version", "sasl_aws_creds_debug"),
        "cluster_id",
    }


AWS = 'sasl_mechanism = "aws-iam"\nsasl_aws_region = "eu-west-1"\nsasl_aws_profile = "prod"'


@pytest.mark.parametrize("flag", [True, False], ids=["untrusted", "trusted"])
def test_no_aws_credential_is_read(here: Here, flag: bool) -> None:
    """A profile that a pull request names is not looked up, and no program of the profile starts;
    trusted files do start it, so this can fail."""
    import botocore  # noqa: F401  # without the extra the test is skipped

    here.write("aws.ini", "[profile prod]\ncredential_process = sh -c 'touch started; false'\n")
    here.monkeypatch.setenv("AWS_CONFIG_FILE", str(here.path / "aws.ini"))
    here.monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(here.path / "none"))
    here.monkeypatch.setenv(BOOTSTRAP, "127.0.0.1:1")
    here.write("main.kf.hcl", block(AWS) + TOPIC)
    said = here.fails(*(PLAN if flag else ("plan",)))
    assert ("sasl_mechanism comes from the environment" in said) == flag
    assert ("AWS credentials cannot be read (custom-process)" in said) != flag
    assert (here.path / "started").exists() != flag


# ── what it reads ───────────────────────────────────────────────────────────────────────

FUNCTIONS = (
    *("file", "filebase64", "filemd5", "filesha1", "filesha256", "filesha512", "fileexists"),
    *("filebase64sha256", "filebase64sha512"),
)
REFUSED = {
    "/proc/self/environ": "is an absolute path",
    "../x.txt": "leads out of the root",
    "../../../../../../../../etc/passwd": "leads out of the root",
    "link.txt": "is a link or behind one",
    "folder/x.txt": "is a link or behind one",
    "./sub/../link.txt": "is a link or behind one",
    "token.txt": "is not tracked by git",
    "sub/token.txt": "is not tracked by git",
    ".git/config": "configuration must not read",
    "pipe": "is not a regular file",
}
"""Path -> why a function does not read it."""


@pytest.fixture
def checkout(here: Here) -> Here:
    """A checkout of git with a file in it, and beside it what a job or an attacker left there."""
    (here.path / ".git").rmdir()
    (here.path.parent / "x.txt").write_text(CANARY)
    here.write("x.txt", "hello")
    here.write("sub/x.txt", "below")
    (here.path / "link.txt").symlink_to("../x.txt")
    (here.path / "folder").symlink_to("..")
    for words in (("init", "--quiet"), ("add", "--all"), ("config", "a.b", CANARY)):
        subprocess.run(["git", *words], cwd=here.path, check=True, timeout=60)
    here.write("token.txt", CANARY)
    here.write("sub/token.txt", CANARY)
    os.mkfifo(here.path / "pipe")
    return here


@pytest.mark.parametrize("command", ["plan", "validate"])
@pytest.mark.parametrize("path", REFUSED)
def test_functions_read_files_of_the_checkout_only(checkout: Here, path: str, command: str) -> None:
    """Absolute paths, paths out of the checkout, links, and files that git does not track, such as
    credentials of the job, are refused at their line, by each function; none of them is shown."""
    checkout.monkeypatch.setenv(BOOTSTRAP, "a:1")
    lines = [f'  v{n} = {name}("{path}")' for n, name in enumerate(FUNCTIONS)]
    lines.append(f'  t = templatefile("{path}", {{}})')
    checkout.write("main.kf.hcl", "locals {\n" + "\n".join(lines) + "\n}\n")
    arguments = PLAN if command == "plan" else ("validate", "--untrusted")
    text = checkout.fails(*arguments)
    for number in range(len(lines)):
        assert f"on main.kf.hcl:{number + 2}:" in text
    assert text.count(REFUSED[path]) == len(lines), text
    assert CANARY not in text


def test_functions_read_what_git_tracks(checkout: Here) -> None:
    """A schema or a template that belongs to the files under review is a part of the plan, and a
    list of files has no others."""
    checkout.write(
        "main.kf.hcl",
        """
        check "read" {
          assert {
            condition     = file("x.txt") == "hello" && templatefile("./sub/x.txt", {}) == "below"
            error_message = "not read"
          }
          assert {
            condition     = fileset(".", "**/x.txt") == toset(["x.txt", "sub/x.txt"])
            error_message = "other files: ${jsonencode(fileset(".", "**"))}"
          }
          assert {
            condition     = fileset("sub", "*") == toset(["x.txt"])
            error_message = "other files: ${jsonencode(fileset("sub", "*"))}"
          }
        }
        """,
    )
    text = checkout.done("validate", "--untrusted").text
    assert "not read" not in text and "other files" not in text, text


def test_a_folder_without_git_is_a_checkout_as_a_whole(here: Here) -> None:
    """Files that were unpacked and not cloned can be read; links still cannot."""
    (here.path / ".git").rmdir()
    here.write("x.txt", "hello")
    here.write("main.kf.hcl", 'locals {\n  a = file("x.txt")\n}\n')
    here.done("validate", "--untrusted")
    (here.path / "x.txt").unlink()
    (here.path / "x.txt").symlink_to("/etc/hostname")
    assert "is a link" in here.fails("validate", "--untrusted")


def test_without_the_flag_they_read(here: Here) -> None:
    """The same call is sound when files are trusted."""
    here.write("x.txt", CANARY)
    here.write("main.kf.hcl", 'locals {\n  a = file("x.txt")\n}\n')
    here.done("validate")


LINKS = {
    "a.kf.hcl": "a.kf.hcl",
    "kafkaform.kfvars.hcl": "kafkaform.kfvars.hcl",
    "a.auto.kfvars.hcl": "a.auto.kfvars.hcl",
    "a.kf.json": "a.kf.json",
    "a_override.kf.hcl": "a_override.kf.hcl",
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_is_not_configuration(here: Here, name: str) -> None:
    """A link named like a configuration file would show a line of what it leads to in an error
    message; that one inside the checkout is no better, for pipelines put secrets there."""
    here.write(".env", f"TOKEN={CANARY}\n")
    here.write("main.kf.hcl", "")
    (here.path / name).symlink_to(here.path / ".env")
    said = here.fails("validate", "--untrusted")
    assert f'"{name}" is a link' in said and CANARY not in said


def test_a_module_behind_a_link(here: Here) -> None:
    """The folder of a module is no link either."""
    here.write("real/main.kf.hcl", "")
    (here.path / "linked").symlink_to(here.path / "real")
    here.write("main.kf.hcl", 'module "m" {\n  source = "./linked"\n}\n')
    assert "is behind a link" in here.fails("validate", "--untrusted")
    here.write("main.kf.hcl", 'module "m" {\n  source = "./real"\n}\n')
    here.done("validate", "--untrusted")


@pytest.fixture
def linked(here: Here) -> Path:
    """A checkout whose folder `kafka` is a link to another folder of the runner."""
    (here.path / ".git").rmdir()
    secret, checkout = here.path / "elsewhere", here.path / "checkout"
    here.write("elsewhere/main.kf.hcl", f'locals {{ a = "{CANARY}" b = }}\n')
    checkout.mkdir()
    (checkout / "kafka").symlink_to(secret)
    here.monkeypatch.chdir(checkout)
    here.monkeypatch.setenv("PWD", str(checkout))
    return checkout


@pytest.mark.parametrize("git", [True, False], ids=["git", "no git"])
@pytest.mark.parametrize("way", ["kafka", "./kafka", "kafka/.", "kafka/sub", "absolute", "cd"])
def test_a_link_in_place_of_the_folder(here: Here, linked: Path, way: str, git: bool) -> None:
    """Whoever planned a checkout's folder plans nothing else: a link in its place, or above it, is
    refused however the folder is named, and no file behind it is read."""
    if git:
        (linked / ".git").mkdir()
    here.write("elsewhere/sub/main.kf.hcl", f'locals {{ a = "{CANARY}" b = }}\n')
    words = [f"--chdir={way}"]
    if way == "absolute":
        words = [f"--chdir={linked / 'kafka'}"]
    elif way == "cd":
        here.monkeypatch.chdir(linked / "kafka")
        here.monkeypatch.setenv("PWD", str(linked / "kafka"))
        words = []
    for command in (PLAN, ("validate", "--untrusted")):
        here.monkeypatch.chdir(linked if words else linked / "kafka")
        said = here.fails(*words, *command)
        assert "is a link, and --untrusted follows none" in said, said
        assert CANARY not in said


def test_a_value_file_behind_a_link(here: Here) -> None:
    """A file of values that the command line names is no link either."""
    here.write(".env", f"{CANARY} b =\n")
    (here.path / "prod.kfvars.hcl").symlink_to(here.path / ".env")
    here.write("main.kf.hcl", "")
    said = here.fails("validate", "--untrusted", "--var-file=prod.kfvars.hcl")
    assert "is a link, and --untrusted follows none" in said and CANARY not in said


def test_links_of_the_computer_are_none_of_a_pull_request(here: Here) -> None:
    """A checkout may be reached through a link that nobody could have checked out, and trusted
    runs follow links as before."""
    (here.path / ".git").rmdir()
    here.write("real/.git/HEAD", "")
    here.write("real/kafka/main.kf.hcl", "")
    (here.path / "home").symlink_to(here.path / "real")
    for start, words in (("home", ["--chdir=kafka"]), (".", [f"--chdir={here.path}/home/kafka"])):
        here.monkeypatch.chdir(here.path / start)
        here.monkeypatch.setenv("PWD", str(here.path / start))
        here.done(*words, "validate", "--untrusted")
    (here.path / "real/linked").symlink_to(here.path / "real/kafka")
    here.monkeypatch.chdir(here.path / "real")
    here.done("--chdir=linked", "validate")


def test_terraforms_variables_are_not_read(here: Here) -> None:
    """A pull request that brings a folder of Terraform's files gets no TF_VAR_, which pipelines
    fill with passwords; KF_VAR_ it gets."""
    here.monkeypatch.setenv("TF_VAR_db", CANARY)
    here.monkeypatch.setenv("KF_VAR_team", "blue")
    here.monkeypatch.setenv(BOOTSTRAP, "a:1")
    check = 'variable "team" {}\ncheck "c" {\n  assert {\n    condition = false\n    '
    text = check + 'error_message = "team ${var.team}"\n  }\n}\nvariable "db" {}\n'
    here.write("main.tf", text)
    said = here.fails(*PLAN)
    assert 'The variable "db" has no value' in said and CANARY not in said
    assert '"team" has no value' not in said


@pytest.mark.parametrize("kind", ["secret_env", "secret_file", "secret_command", "var"])
def test_secrets_of_the_configuration_are_references(folder: Folder, kind: str) -> None:
    """A user's password may be named; no plan looks it up, so its value is nowhere."""
    folder.monkeypatch.setenv("CI_TOKEN", CANARY)
    folder.monkeypatch.setenv("KF_VAR_p", CANARY)
    folder.write("token.txt", CANARY)
    said = {
        "secret_env": 'secret_env("CI_TOKEN")',
        "secret_file": 'secret_file("token.txt")',
        "secret_command": 'secret_command(["touch", "was-run"])',
        "var": "var.p",
    }[kind]
    text = 'variable "p" {\n  sensitive = true\n}\n' if kind == "var" else ""
    text += (
        'resource "kafka_user_scram_credential" "u" {\n  username = "hostile-u"\n'
        f'  scram_mechanism = "SCRAM-SHA-256"\n  password = {said}\n  password_wo_version = 1\n}}\n'
    )
    folder.write("users.kf.hcl", text)
    trusting(folder)
    out = folder.done(*PLAN, "--out=p.json", "--comment=c.md")
    assert said in out.text
    written = (folder.path / "p.json").read_text() + (folder.path / "c.md").read_text()
    assert CANARY not in out.text + written
    assert not (folder.path / "was-run").exists()


# ── what it is run with ─────────────────────────────────────────────────────────────────


def trusting(folder: Folder) -> None:
    """Give the environment the connection that the folder's block names."""
    given = {
        "bootstrap_servers": folder.broker.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "admin",
        "sasl_password": folder.broker.admin_password,
    }
    for name, text in given.items():
        folder.monkeypatch.setenv(name_variable("kafka", name), text)


def test_the_review_is_good_for_the_apply(folder: Folder) -> None:
    """An untrusted plan of files that were not tampered with has the approval that the trusted
    plan has, so that what was reviewed in a fork can be applied after the merge."""
    folder.declare("a", "b")
    trusting(folder)
    token = folder.approval("--untrusted", f"--state={folder.path / 'kafkaform.state.json'}")
    for name in [name for name in os.environ if name.startswith("KAFKAFORM_KAFKA")]:
        folder.monkeypatch.delenv(name)
    folder.done("apply", "--expect", token)
    assert folder.topics() == {"a": 1, "b": 1}


def test_the_state_is_named_by_the_pipeline(here: Here) -> None:
    """A state beside the files could be forged with them."""
    here.write("main.kf.hcl", TOPIC)
    here.monkeypatch.delenv("KAFKAFORM_STATE", raising=False)
    assert "--untrusted needs --state" in here.fails("plan", "--untrusted")
    here.monkeypatch.setenv("KAFKAFORM_STATE", "/nowhere/s.json")
    assert "--untrusted needs --state" not in here.fails("plan", "--untrusted")


def test_what_does_not_go_with_it(here: Here) -> None:
    """A dry run needs rights to write, and nothing untrusted is ever applied."""
    here.write("main.kf.hcl", TOPIC)
    assert "exclude each other" in here.fails(*PLAN, "--validate")
    for command in (["apply"], ["apply", "p.json"], ["apply", "--auto-approve"]):
        assert "apply takes no --untrusted" in here.fails(*command, "--untrusted")
    assert "--untrusted" in here.fails("destroy", "--untrusted")


BACKEND = """
kafkaform {{
  backend "s3" {{
    bucket     = "evil"
    key        = "x"
    region     = "eu-central-1"
    endpoint   = "http://{address}"
    timeout    = "1s"
  }}
}}
"""


@pytest.mark.parametrize("untrusted", [True, False])
def test_a_backend_block_decides_nothing(here: Here, listener: Listener, untrusted: bool) -> None:
    """A pull request cannot move the state to a place of its own, which would get requests that
    are signed with the pipeline's key. Without the flags the same block does get them."""
    here.monkeypatch.setenv(BOOTSTRAP, "127.0.0.1:1")
    here.monkeypatch.setenv("AWS_ACCESS_KEY_ID", CANARY)
    here.monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    here.monkeypatch.setattr(SystemClock, "sleep", lambda self, seconds: None)
    same = block('bootstrap_servers = ["127.0.0.1:1"]')
    here.write("main.kf.hcl", BACKEND.format(address=listener.address) + same + TOPIC)
    here.run(*PLAN if untrusted else ("plan",))
    assert (listener.connections == 0) == untrusted
    assert (CANARY.encode() in listener.received) != untrusted


@pytest.mark.parametrize(("allowed", "there"), [(None, True), ("other", False), ("kafka,x", True)])
def test_providers_are_those_that_are_allowed(here: Here, allowed: str | None, there: bool) -> None:
    """An installed provider that the environment does not name is not loaded."""
    here.monkeypatch.setenv("KAFKAFORM_PROVIDERS", allowed or "kafka")
    here.write("main.kf.hcl", block('bootstrap_servers = ["a:1"]') + TOPIC)
    if there:
        here.done("validate", "--untrusted")
    else:
        assert 'There is no resource type "kafka_topic"' in here.fails("validate", "--untrusted")


def test_paths_in_the_environment_are_not_the_files_business(here: Here, tmp_path: Path) -> None:
    """A certificate that the environment names is taken, and the same name in a file is sound."""
    here.monkeypatch.setenv(BOOTSTRAP, "127.0.0.1:1")
    here.monkeypatch.setenv(name_variable("kafka", "ca_cert"), "/nowhere/ca.pem")
    text = block('bootstrap_servers = ["127.0.0.1:1"]\nca_cert = "/nowhere/ca.pem"')
    here.write("main.kf.hcl", text + TOPIC)
    assert "/nowhere/ca.pem" in here.fails(*PLAN)
    assert "comes from the environment" not in here.fails(*PLAN)
