"""Providers are found by name, loaded once, and their faults name the package at fault."""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path

import pytest

from kafkaform import __version__
from kafkaform.core.errors import ConfigurationError
from kafkaform.provider import registry as registry_module
from kafkaform.provider.registry import BUILT_IN, GROUP, Registry

PROVIDER = """
from types import SimpleNamespace
from kafkaform.provider.contract import OptionalParts
class Whole(OptionalParts):
    def __init__(self, **parts):
        vars(self).update(parts)
PARTS = dict(words=None, config=None, types={}, data={}, check=None, open=None)
PARTS.update(commanded={}, review_needs=None, load_rules=None)
GOOD = Whole(name="good", **PARTS)
MISNAMED = Whole(name="other", **PARTS)
HOLLOW = SimpleNamespace(name="hollow", config=None, types={}, data={}, open=None)
BARE = SimpleNamespace(**{**PARTS, "name": "bare"})
del BARE.commanded
FOREIGN = SimpleNamespace(name="foreign", **PARTS)
"""


class Installed(Distribution):
    """An installed package that exists in this test only."""

    def __init__(self, name: str) -> None:
        self._text = f"Name: {name}\nVersion: 1.2\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        raise FileNotFoundError(path)


def point(name: str, target: str, package: str = "acme-pack") -> EntryPoint:
    found = EntryPoint(name=name, value=target, group=GROUP)
    vars(found)["dist"] = Installed(package)
    return found


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an importable module that holds providers."""
    name = "acme_providers_of_registry_test"
    (tmp_path / f"{name}.py").write_text(PROVIDER)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def refusal(registry: Registry, name: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        registry.load(name)
    return caught.value


def test_the_kafka_provider_is_built_in() -> None:
    """An installed kafkaform offers "kafka" and knows that it comes from itself."""
    registry = Registry()
    assert "kafka" in registry.names
    assert registry.describe_package("kafka") == f"kafkaform {__version__}"


@pytest.mark.parametrize("name", BUILT_IN)
def test_no_entry_point_is_read_for_a_built_in_provider(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is loaded and named without a look at the installed packages."""
    monkeypatch.setattr(registry_module, "list_entry_points", lambda: pytest.fail("it was read"))
    registry = Registry()
    assert registry.load(name).name == name
    assert registry.describe_package(name)
    assert name in registry.built_in


def test_an_installed_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of any package on the path is read for a name that is not built in."""
    noted = tmp_path / "acme_pack-1.2.dist-info"
    noted.mkdir()
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-pack\nVersion: 1.2\n")
    (noted / "entry_points.txt").write_text(f"[{GROUP}]\nacme = acme.first:PROVIDER\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry()
    assert {"acme", "kafka"} <= set(registry.names)
    assert registry.describe_package("acme") == "acme-pack 1.2"


def test_no_package_replaces_a_built_in_provider(module: str) -> None:
    """An entry point of the name of a provider that comes with kafkaform is passed over."""
    registry = Registry([point("kafka", f"{module}:GOOD")])
    assert registry.describe_package("kafka") == f"kafkaform {__version__}"
    assert registry.load("kafka").types


def test_only_allowed_names_are_known(module: str) -> None:
    """Neither a built-in nor an installed provider that is not allowed is found."""
    registry = Registry([point("good", f"{module}:GOOD")], allowed=["good"])
    assert (registry.built_in, registry.names) == ((), ("good",))
    assert refusal(registry, "kafka").message == ('there is no provider "kafka"; installed: good')


def test_a_provider_is_loaded_when_asked_for_and_once(module: str) -> None:
    """Listing names imports nothing; two loads give the same object."""
    registry = Registry([point("good", f"{module}:GOOD")])
    assert registry.names == ("good", "kafka")
    assert module not in sys.modules
    assert registry.load("good") is registry.load("good")
    assert module in sys.modules


def test_registries_share_nothing(module: str) -> None:
    """What one registry found does not leak into another."""
    Registry([point("good", f"{module}:GOOD")]).load("good")
    assert refusal(Registry([]), "good").message == 'there is no provider "good"; installed: kafka'


def test_a_misspelt_provider_gets_the_near_name() -> None:
    """A typing error is answered with what was probably meant."""
    error = refusal(Registry([]), "kafak")
    assert error.message == 'there is no provider "kafak"; installed: kafka'
    assert error.advice == 'Did you mean "kafka"?'


def test_an_unknown_provider_says_what_to_install() -> None:
    """With no near name the advice names the entry-point group to look for."""
    error = refusal(Registry([]), "rabbit")
    assert '"rabbit" in the group kafkaform.providers' in error.advice


@pytest.mark.parametrize("target", ["no_such_module_of_acme:P", "json:no_such_attribute"])
def test_a_broken_package_is_named(target: str) -> None:
    """An import failure names provider, package and version, and is no traceback."""
    error = refusal(Registry([point("acme", target)]), "acme")
    assert error.message.startswith('provider "acme" of acme-pack 1.2 cannot be loaded: ')
    assert error.advice == "Install acme-pack again, with its dependencies."


def test_two_packages_with_one_name_are_refused(module: str) -> None:
    """Which provider runs never depends on the order of installation."""
    points = [point("good", f"{module}:GOOD", "one"), point("good", f"{module}:MISNAMED", "two")]
    assert refusal(Registry(points), "good").message == (
        'provider "good" is offered by one 1.2 and two 1.2'
    )


def test_the_same_offer_seen_twice_is_one(module: str) -> None:
    """A package found by two search paths is no conflict with itself."""
    twice = [point("good", f"{module}:GOOD"), point("good", f"{module}:GOOD")]
    assert Registry(twice).load("good").name == "good"


@pytest.mark.parametrize(
    ("attribute", "name", "complaint"),
    [
        ("HOLLOW", "hollow", "it lacks words, commanded, check, load_rules, review_needs"),
        (
            "BARE",
            "bare",
            "acme_providers_of_registry_test:BARE is not a provider: it lacks commanded",
        ),
        ("MISNAMED", "good", 'calls itself "other"'),
        ("FOREIGN", "foreign", "does not inherit from kafkaform.provider.contract.OptionalParts"),
    ],
)
def test_what_is_no_provider_is_refused(
    module: str, attribute: str, name: str, complaint: str
) -> None:
    """An entry point that leads to something else is explained at once, not at first use."""
    error = refusal(Registry([point(name, f"{module}:{attribute}")]), name)
    assert complaint in error.message
    assert "acme-pack" in error.advice


def test_commands_come_from_built_in_providers_that_have_some(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider without the optional part adds nothing, and no other package is loaded for it."""
    providers = importlib.import_module(module)
    monkeypatch.setattr(providers, "PROVIDER", providers.GOOD, raising=False)
    monkeypatch.setattr(registry_module, "BUILT_IN", {**BUILT_IN, "good": module})
    registry = Registry([point("broken", "no_such_module:PROVIDER")])
    groups = {group.provider: group for group in registry.load_commands("describe")}
    assert groups.keys() == {"kafka", "kafka_connect", "schema_registry"}
    assert "topics" in {command.name for command in groups["kafka"].commands}
    assert registry.find_provider("describe", "subjects") == "schema_registry"
    assert registry.load_commands("no such group") == ()


def test_a_provider_offers_its_simulation_by_name(module: str) -> None:
    """The built-in one has a simulation; a provider without one is refused with its package."""
    found = Registry().load_simulation("kafka")
    assert "brokers" in found.settings.attributes
    refused = refusal_of_simulation(Registry([point("good", f"{module}:GOOD")]), "good")
    assert 'provider "good" of acme-pack 1.2 cannot simulate its system' in str(refused)


def refusal_of_simulation(registry: Registry, name: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        registry.load_simulation(name)
    return caught.value
