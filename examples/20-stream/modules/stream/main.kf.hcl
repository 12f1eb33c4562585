variable "name" {
  type        = string
  description = "of the topic; the subject and the connectors are named after it"
}

variable "schema" {
  type        = string
  description = "Avro schema of the values"
}

variable "references" {
  type        = list(object({ name = string, subject = string }))
  description = "schemas of other subjects that this one uses, each in its newest version"
  default     = []
}

variable "metadata" {
  type        = any
  description = "properties and tags of the data contract"
  default     = null
}

variable "rules" {
  type        = any
  description = "domain rules of the data contract, in order"
  default     = null
}

variable "archive" {
  type        = string
  description = "file to which a connector writes all records"
}

variable "producers" {
  type    = list(string)
  default = []
}

variable "consumers" {
  type    = list(string)
  default = []
}

variable "partitions" {
  type    = number
  default = 3
}

variable "keep" {
  type    = string
  default = "7d"
}

variable "fill_from" {
  type        = string
  description = "file whose lines a connector writes to the topic"
  default     = null
}

variable "worker" {
  type        = string
  description = "principal with whose rights connectors read and write"
  default     = "User:connect"
}

locals {
  archive = "${var.name}.archive"
  file    = "org.apache.kafka.connect.file.FileStream"
}

resource "kafka_topic" "stream" {
  name       = var.name
  partitions = var.partitions
  config     = { "retention.ms" = retention(var.keep) }
}

resource "schema_registry_schema" "value" {
  topic      = kafka_topic.stream.name
  schema     = var.schema
  references = var.references
  metadata   = var.metadata
  rule_set   = var.rules == null ? null : { domain_rules = var.rules }
}

# Whoever reads can be updated first: new schemas have to read what old ones wrote.
resource "schema_registry_subject_config" "value" {
  topic         = kafka_topic.stream.name
  compatibility = "BACKWARD"

  # Some registries keep a level only for a subject that exists.
  depends_on = [schema_registry_schema.value]
}

resource "kafka_access" "producer" {
  for_each = toset(var.producers)

  principal = "User:${each.value}"
  role      = "producer"
  topics    = [kafka_topic.stream.name]
}

resource "kafka_access" "consumer" {
  for_each = toset(var.consumers)

  principal = "User:${each.value}"
  role      = "consumer"
  topics    = [kafka_topic.stream.name]
  group     = each.value
}

# A sink is a consumer, too. Its group is named after the connector.
resource "kafka_access" "archive" {
  principal = var.worker
  role      = "consumer"
  topics    = [kafka_topic.stream.name]
  group     = "connect-${local.archive}"
}

resource "kafka_connect_connector" "archive" {
  name   = local.archive
  class  = "${local.file}SinkConnector"
  config = { topics = kafka_topic.stream.name, file = var.archive }

  # Without its rights, it would fail when it starts.
  depends_on = [kafka_access.archive]
}

resource "kafka_access" "source" {
  count = var.fill_from == null ? 0 : 1

  principal = var.worker
  role      = "producer"
  topics    = [kafka_topic.stream.name]
}

resource "kafka_connect_connector" "source" {
  count = var.fill_from == null ? 0 : 1

  name   = "${var.name}.source"
  class  = "${local.file}SourceConnector"
  config = { topic = kafka_topic.stream.name, file = var.fill_from }

  # It begins when others can already understand and receive what it writes.
  depends_on = [
    kafka_access.source,
    schema_registry_schema.value,
    kafka_connect_connector.archive,
  ]
}

output "topic" {
  value = kafka_topic.stream.name
}
