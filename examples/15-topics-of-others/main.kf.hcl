# Topics that an application makes itself: looked at, and given configs without owning them.

provider "kafka" {
  bootstrap_servers = [var.bootstrap]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  sasl_password     = secret_env("KAFKAFORM_SANDBOX_PASSWORD")
}

variable "bootstrap" {
  type        = string
  description = "host:port of one broker; the others are found from it"
}

# What a Streams application calls its changelogs: they are there once it has run.
data "kafka_topics" "changelogs" {
  name = "wordcount-*-changelog"
}

# Their configs are declared here, the topics are not: no plan makes or deletes one.
resource "kafka_topic_config" "changelog" {
  for_each = toset(data.kafka_topics.changelogs.list[*].name)

  topic = each.key
  config = {
    "cleanup.policy"    = ["compact"]
    "max.message.bytes" = 2 * 1024 * 1024
  }
}

# A topic of another team, by name: it is an error if it is not there.
data "kafka_topic" "words" {
  name = "words"
}

# The result has as many partitions as the words.
resource "kafka_topic" "counts" {
  name       = "word-counts"
  partitions = data.kafka_topic.words.partitions
}

data "kafka_quotas" "users" {
  entity_type = "user"
}

output "changelogs" {
  value = keys(kafka_topic_config.changelog)
}

output "limited" {
  value = data.kafka_quotas.users.list[*].id
}
