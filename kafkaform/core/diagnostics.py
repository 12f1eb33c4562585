"""Diagnostics: faults of the user as data, so that all faults of a run are shown at once; and
suggestions for words that nobody knows.

A suggestion is what users of other tools call a thing: of Terraform and its providers (Mongey,
Confluent, Aiven, Redpanda), topicctl, JulieOps, kafka-gitops, jikkou, Strimzi and Kafka's own
tools, and of other programming languages. Only then it is a word that is spelled alike.
"""

from __future__ import annotations

import difflib
import os.path
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

_RESOURCE_TYPES: Mapping[str, str] = {
    "kafka_topic": "topic topics kafkatopic kafka_topic_resource confluent_kafka_topic "
    "aiven_kafka_topic redpanda_topic aws_msk_topic",
    "kafka_topic_config": "kafka_topic_configs kafka_topic_settings kafka_topic_configuration",
    "kafka_acl": "acl acls kafkaacl kafka_permission kafka_permissions kafka_rule kafka_acl_rule "
    "kafka_acl_binding confluent_kafka_acl aiven_kafka_acl aiven_kafka_native_acl redpanda_acl "
    "kafkaprincipalacl kafkaprincipalauthorization",
    "kafka_access": "kafka_role kafka_roles kafka_role_binding kafka_rolebinding kafka_grant "
    "kafka_grants kafka_principal kafka_principals kafka_service kafka_application "
    "confluent_role_binding kafkaprincipalrole",
    "kafka_quota": "quota quotas kafkaquota kafka_client_quota kafka_client_quotas "
    "kafkaclientquota kafka_user_quota kafka_ip_quota confluent_kafka_client_quota "
    "aiven_kafka_quota",
    "kafka_user_scram_credential": "kafka_user kafka_users kafkauser kafka_scram kafka_scram_user "
    "kafka_scram_users kafka_scram_credential kafka_user_scram kafka_user_credential "
    "kafka_credential kafka_login kafka_account aiven_kafka_user redpanda_user",
    "kafka_broker_config": "kafka_broker kafka_brokers kafka_broker_configs kafka_broker_settings "
    "kafkabroker",
    "kafka_cluster_config": "kafka_cluster kafka_cluster_configs kafka_cluster_settings "
    "kafka_default_config kafka_config confluent_kafka_cluster_config",
    "kafka_group_config": "kafka_group kafka_groups kafka_consumer_group kafka_consumer_groups "
    "kafka_consumer_group_config kafkaconsumergroup",
    "kafka_client_metrics": "kafka_metrics kafka_telemetry kafka_client_metrics_subscription "
    "kafka_metrics_subscription kafka_client_telemetry",
    "kafka_connect_connector": "connector connectors kafka_connector kafka_connectors "
    "kafkaconnector kafka_connect kafka-connect_connector kafkaconnect_connector "
    "confluent_connector aiven_kafka_connector",
    "schema_registry_schema": "schema schemas kafka_schema kafka_schemas kafka_schema_registry "
    "kafka_schema_registry_schema schemaregistry_schema schema_registry_subject "
    "schemaregistrysubject avro_schema confluent_schema aiven_kafka_schema redpanda_schema",
    "schema_registry_subject_config": "schema_registry_subject_compatibility "
    "schema_registry_subject_mode schema_registry_compatibility schema_config "
    "schemaregistry_subject_config confluent_subject_config confluent_subject_mode "
    "aiven_kafka_schema_configuration",
    "schema_registry_config": "schema_registry schemaregistry_config schema_registry_mode "
    "schema_registry_cluster_config schema_registry_cluster_mode schema_registry_defaults "
    "confluent_schema_registry_cluster_config confluent_schema_registry_cluster_mode",
}
"""Resource type -> what else is typed for it."""

_ARGUMENTS: Mapping[str, str] = {
    "name": "topic topic_name topicname metadata_name title connector_name subscription_name",
    "topic": "name topic_name topicname",
    "topics": "topic topic_names topic_name",
    "partitions": "partitions_count partition_count partitioncount num_partitions numpartitions "
    "number_of_partitions",
    "replication_factor": "replicas replica replication replicationfactor replication-factor "
    "num_replicas replica_count replicas_count number_of_replicas repl_factor "
    "default_replication_factor",
    "replica_assignment": "assignment assignments replica_assignments replicas_assignment "
    "replicasassignments partition_assignment placement placement_config",
    "config": "configs configuration configurations settings properties parameters options "
    "overrides config_entries configentries config_map topic_config topic_configs limits quotas "
    "quota spec config_nonsensitive",
    "secret_config": "sensitive_config secrets config_sensitive secret_configs",
    "managed_replication_factor": "ignore_replication_factor",
    "acl_principal": "principal user username service_account member",
    "principal": "acl_principal user username service_account member account",
    "resource_name": "name topic topic_name resource group",
    "resource_type": "type kind",
    "acl_operation": "operation operations acl_operations action permission_name",
    "acl_permission_type": "permission permission_type permissiontype effect allow",
    "acl_host": "host hosts ip",
    "host": "acl_host hosts ip",
    "resource_pattern_type_filter": "pattern pattern_type patterntype resource_pattern_type "
    "resource_pattern",
    "role": "roles access permission permissions",
    "groups": "consumer_group consumer_groups group_ids",
    "group": "name group_id groupid consumer_group consumer_group_id",
    "user": "username principal name",
    "client_id": "client clientid client-id",
    "ip": "host ip_address address",
    "entity_name": "name",
    "username": "user name login sasl_username scram_username principal",
    "password": "password_wo sasl_password secret",
    "password_wo_version": "version",
    "scram_mechanism": "mechanism sasl_mechanism algorithm type",
    "scram_iterations": "iterations",
    "broker_id": "broker id node_id brokerid",
    "class": "connector_class connector.class plugin type",
    "subject": "name subject_name",
    "schema": "definition schema_string content body avro_schema schema_definition",
    "format": "schema_type schematype type",
    "references": "schema_reference schema_references reference",
    "compatibility": "compatibility_level compatibilitylevel level",
    "bootstrap_servers": "brokers broker bootstrap_server bootstrap servers server hosts host "
    "endpoint endpoints kafka_brokers broker_list bootstrap_brokers bootstrap_endpoint",
    "url": "endpoint host uri urls rest_endpoint schema_registry_url connect_url",
    "sasl_username": "username user login kafka_api_key api_key",
    "sasl_password": "password kafka_api_secret api_secret",
    "sasl_mechanism": "mechanism",
    "security_protocol": "protocol",
    "ca_cert": "ca ca_file ca_certificate ca_cert_file cacert root_ca ssl_ca ssl_cafile",
    "client_cert": "cert certificate client_certificate client_cert_file ssl_certfile",
    "client_key": "key private_key client_key_file ssl_keyfile",
    "token": "bearer_token api_key",
    "prevent_destroy": "protect protected prevent_deletion deletion_protection",
    "ignore_changes": "ignore",
    "owner": "team owners",
    "labels": "tags annotations metadata",
}
"""Argument -> what else is typed for it."""

_FUNCTIONS: Mapping[str, str] = {
    "upper": "upcase uppercase toupper to_upper touppercase strtoupper capitalize_all ucase",
    "lower": "downcase lowercase tolower to_lower tolowercase strtolower lcase",
    "title": "capitalize titlecase ucfirst capitalise",
    "length": "len size count strlen list_length",
    "substr": "substring mid strsub",
    "trimspace": "strip trim_space trimall",
    "trimprefix": "removeprefix trim_prefix strip_prefix lstrip ltrim trimstart trimleft",
    "trimsuffix": "removesuffix trim_suffix strip_suffix rstrip rtrim trimend trimright",
    "startswith": "hasprefix has_prefix starts_with beginswith begins_with",
    "endswith": "hassuffix has_suffix ends_with",
    "strcontains": "str_contains containsstr string_contains instr",
    "contains": "includes has in inlist member any_of",
    "replace": "gsub sub substitute str_replace regex_replace regexreplace replaceall",
    "regex": "match regexmatch regex_match regexp matches",
    "regexall": "findall match_all regex_all scan",
    "split": "explode tokenize",
    "join": "implode concat_ws",
    "format": "printf sprintf fmt string_format",
    "concat": "append push extend add",
    "merge": "update deepmerge deep_merge merge_maps assign union_maps",
    "lookup": "get dig getattr map_get",
    "keys": "map_keys",
    "distinct": "unique uniq dedup dedupe dedup_list",
    "sort": "sorted order orderby",
    "reverse": "reversed",
    "range": "seq sequence",
    "index": "indexof index_of position",
    "coalesce": "default ifnull nvl if_null or_else",
    "compact": "filter_empty without_empty",
    "setunion": "union",
    "setintersection": "intersection intersect",
    "setsubtract": "difference subtract except set_difference",
    "setproduct": "product cartesian cross",
    "tostring": "str string to_string text",
    "tonumber": "int integer number float to_number toint parsefloat atoi",
    "tobool": "bool boolean to_bool",
    "tolist": "list to_list toarray array tuple",
    "toset": "set to_set",
    "tomap": "map dict to_map object",
    "jsonencode": "tojson to_json json_encode json stringify",
    "jsondecode": "fromjson from_json parsejson parse_json json_decode",
    "yamlencode": "toyaml to_yaml yaml_encode",
    "yamldecode": "fromyaml from_yaml parseyaml parse_yaml yaml_decode yaml",
    "csvdecode": "fromcsv csv parsecsv",
    "base64encode": "base64 b64enc b64encode to_base64",
    "base64decode": "b64dec b64decode from_base64",
    "urlencode": "quote urlquery uri_encode encodeuricomponent",
    "sha256": "sha256sum hash sha",
    "md5": "md5sum",
    "floor": "round trunc truncate int_floor",
    "ceil": "ceiling roundup",
    "pow": "power",
    "file": "readfile read_file cat read file_content get_file_content",
    "templatefile": "template render template_file",
    "fileset": "glob listfiles files",
    "formatdate": "strftime date date_format dateformat",
    "secret_env": "env getenv get_env environ os_env environment",
    "secret_file": "readsecret secret read_secret",
    "retention": "duration milliseconds ms days hours parse_duration",
    "bytes": "parse_bytes bytesize kib mib gib parse_size",
}
"""Function -> what it is called elsewhere."""

_COMMANDS: Mapping[str, str] = {
    "plan": "diff preview dry-run dryrun whatif what-if compare changes drift check-drift pending",
    "apply": "deploy run sync converge execute reconcile provision up",
    "destroy": "delete-all teardown down undeploy purge nuke",
    "validate": "lint verify",
    "init": "setup configure bootstrap new start",
    "fmt": "format reformat tidy pretty",
    "import": "adopt take-over takeover ingest generate gen",
    "export": "dump to-terraform",
    "describe": "desc inspect info",
    "alter": "edit set modify change",
    "explain": "why access can-i",
    "propose": "rebalance reassign balance placement",
    "shell": "interactive cli",
    "console": "eval repl expression",
    "graph": "dot dependencies",
    "audit": "log logs history events journal",
    "lock": "locks",
    "serve": "ui web server dashboard gui",
    "lsp": "language-server languageserver",
    "sandbox": "dev local playground docker",
    "fleet": "clusters",
    "version": "versions",
    "show": "status list print cat get view tail head",
    "list": "ls show-all status",
    "rm": "remove delete del forget drop unmanage",
    "mv": "move rename",
    "pull": "download save backup export copy",
    "push": "upload restore import",
    "status": "list ls ps state info",
    "up": "start run create launch",
    "down": "stop rm remove delete destroy kill halt",
    "env": "environment config connection connect properties",
    "logs": "log tail",
    "release": "unlock free force-unlock remove rm delete break",
    "verify": "check validate test",
    "mend": "repair fix heal",
    "publish": "push send upload",
    "snapshot": "scan collect crawl read landing",
    "report": "html",
    "query": "sql select",
    "who-can": "whocan access can",
    "doctor": "check diagnose",
    "permissions": "acls rights",
    "schema": "schemas describe",
    "json-schema": "jsonschema",
    "configs": "config settings properties overrides",
    "config": "configs settings properties",
    "topics": "topic partitions",
    "acls": "acl permissions",
    "quotas": "quota limits clients client ips ip",
    "quota": "quotas limits limit",
    "users": "user scram credentials logins",
    "groups": "group consumer-groups consumer-group consumers lag offsets",
    "brokers": "broker nodes node",
    "features": "feature",
    "transactions": "transaction txn",
    "delegation-tokens": "delegation-token tokens token",
    "access": "acl acls permissions who-can rights",
    "topic": "topics",
    "broker": "brokers",
    "user": "users scram",
    "client": "clients client-id",
    "group": "groups",
    "placement": "replicas assignment partitions rebalance leaders",
}
"""Command or subcommand -> what it is called elsewhere."""


@cache
def _invert_tables() -> Mapping[str, tuple[str, ...]]:
    meant: dict[str, list[str]] = {}
    for table in (_RESOURCE_TYPES, _ARGUMENTS, _FUNCTIONS, _COMMANDS):
        for word, synonyms in table.items():
            for synonym in synonyms.split():
                meant.setdefault(synonym, []).append(word)
    return {synonym: tuple(words) for synonym, words in meant.items()}


def list_meant_words(word: str) -> Iterator[str]:
    """The words that can be meant by a word of another tool, in lower case like it."""
    yield from _invert_tables().get(word, ())


class Severity(StrEnum):
    """Whether a diagnostic stops the run."""

    ERROR = "error"
    WARNING = "warning"


class Range(Struct, frozen=True, order=True):
    """A place in a file. Lines and columns count from 1, and the end is exclusive."""

    file: str
    """The path that messages show."""
    line: int
    """Where it begins."""
    column: int
    """Where it begins, in code points."""
    end_line: int
    """Where it ends."""
    end_column: int
    """Where it ends, in code points."""
    start_byte: int = 0
    """Offset of the begin in the UTF-8 text."""
    end_byte: int = 0
    """Offset of the end in the UTF-8 text."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Diagnostic(Struct, frozen=True):
    """One fault or warning."""

    severity: Severity
    """Whether it stops the run."""
    summary: str
    """What happened, one line."""
    detail: str = ""
    """Why."""
    range: Range | None = None
    """Where in the configuration."""
    excerpt: str | None = None
    """The source line at `range`, never one with a sensitive value."""
    advice: str = ""
    """What to do next."""
    address: str | None = None
    """The object that it is about."""
    context: tuple[str, ...] = ()
    """What was being evaluated, outermost first: `while evaluating kafka_topic.orders["eu"]`."""
    places: tuple[Diagnostic, ...] = ()
    """If it sums up several places: what is wrong at each, which an editor shows there."""

    @property
    def position(self) -> tuple[str, int, int]:
        """File, line and column, to sort by; one without a range comes first."""
        if self.range is None:
            return "", 0, 0
        return self.range.file, self.range.line, self.range.column

    def rewrite(self, change: Callable[[str], str]) -> Diagnostic:
        """The same diagnostic with `change` applied to each text; places stay."""
        return replace(
            self,
            summary=change(self.summary),
            detail=change(self.detail),
            advice=change(self.advice),
            excerpt=None if self.excerpt is None else change(self.excerpt),
            context=tuple(map(change, self.context)),
            places=tuple(item.rewrite(change) for item in self.places),
        )


Diagnostics = tuple[Diagnostic, ...]


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """True if at least one of these stops the run."""
    return any(item.severity is Severity.ERROR for item in diagnostics)


_SEPARATORS = "_.-:"
"""What separates the parts of a name."""
_SAME = 0.9
"""The likeness from which a word is a misspelling of another, and not a word of its own."""


def suggest(word: str, words: Iterable[str], likeness: float = 0.6) -> str:
    """`Did you mean "x"?` for the known word that is meant, in any case, or an empty text: a
    misspelt one, one that other tools call so, or the nearest. likeness: the share of equal
    characters from which a word counts as near."""
    folded = {item.casefold(): item for item in words}
    key = word.casefold()
    near, share = _find_nearest(key, folded, likeness)
    # A word that is nearly one of ours is a misspelling. Of any other, the meaning that it has in
    # another tool counts more than its letters.
    if share < _SAME:
        near = next((meant for meant in list_meant_words(key) if meant in folded), near)
    return f'Did you mean "{folded[near]}"?' if near else ""


def _find_nearest(word: str, words: Iterable[str], likeness: float) -> tuple[str, float]:
    """The nearest known word, and the share of equal characters; empty and 0 for none."""
    # What two words have in common up to a separator, such as the name of the system in front of
    # all types, makes no word near to another.
    rests: dict[int, dict[str, str]] = {}
    for candidate in words:
        # The length of the equal begin of two words, up to its last separator.
        common = os.path.commonprefix((word, candidate))
        start = max(common.rfind(mark) for mark in _SEPARATORS) + 1
        rests.setdefault(start, {})[candidate[start:]] = candidate
    near = [
        suffixes[suffix]
        for start, suffixes in rests.items()
        for suffix in difflib.get_close_matches(word[start:], suffixes, n=1, cutoff=likeness)
    ]
    shares = {
        candidate: difflib.SequenceMatcher(None, candidate, word).ratio() for candidate in near
    }
    best = max(shares, key=shares.__getitem__, default="")
    return best, shares.get(best, 0.0)
