# A fleet: four clusters, the states that manage them, and how they are judged.
#
# Nothing here is applied. `kafkaform fleet snapshot` reads the clusters and states that are named
# here and lays down what it saw; `kafkaform fleet run` makes tables of that.

variable "eu" {
  type        = string
  description = "A broker of the cluster eu, as HOST:PORT."
  default     = "127.0.0.1:9092"
}

variable "us" {
  type        = string
  description = "A broker of the cluster us, as HOST:PORT."
  default     = "127.0.0.1:9093"
}

variable "staging" {
  type        = string
  description = "A broker of the cluster staging, as HOST:PORT."
  default     = "127.0.0.1:9094"
}

fleet {
  root        = "data" # or s3://bucket/fleet
  stale_after = "36h"  # a snapshot that is older tells nothing any more
  skew        = "2m"   # how far the clocks of runners may be off
  grace_days  = 60     # a topic that is idle for longer may be unused
  max_corrupt = 0.001  # more bad lines than one in a thousand fail a build

  principals = ["User:admin"] # known ones that no owner names
}

# ── clusters ────────────────────────────────────────────────────────────────────────────

cluster "eu" {
  env    = "prod"
  region = "eu-central-1"
  owner  = "platform"

  # As in a provider block. Reading takes Describe and DescribeConfigs, and nothing more.
  connection {
    bootstrap_servers = [var.eu]
    security_protocol = "SASL_PLAINTEXT"
    sasl_mechanism    = "PLAIN"
    sasl_username     = "admin"
    sasl_password     = secret_env("KAFKA_EU_PASSWORD")
    operation_timeout = "10s"
  }

  # Brokers do not tell these two. Without them some questions are answered with "unknown".
  super_users     = ["User:admin", "User:broker"]
  allow_if_no_acl = false
  limit_replicas  = 4000
}

cluster "us" {
  env    = "prod"
  region = "us-east-1"
  owner  = "platform"

  connection {
    bootstrap_servers = [var.us]
    security_protocol = "SASL_PLAINTEXT"
    sasl_mechanism    = "PLAIN"
    sasl_username     = "admin"
    sasl_password     = secret_env("KAFKA_US_PASSWORD")
    operation_timeout = "10s"
  }

  super_users     = ["User:admin", "User:broker"]
  allow_if_no_acl = false
  limit_replicas  = 4000
}

cluster "staging" {
  env    = "staging"
  region = "eu-central-1"
  owner  = "platform"

  connection {
    bootstrap_servers = [var.staging]
    security_protocol = "SASL_PLAINTEXT"
    sasl_mechanism    = "PLAIN"
    sasl_username     = "admin"
    sasl_password     = secret_env("KAFKA_STAGING_PASSWORD")
    operation_timeout = "10s"
  }
}

# Nobody answers there. Reports say so, and show nothing of it as zero or as gone.
cluster "lab" {
  env   = "test"
  owner = "research"

  connection {
    bootstrap_servers = ["127.0.0.1:1"]
    operation_timeout = "2s"
  }
}

# ── states ──────────────────────────────────────────────────────────────────────────────

# The state lies where the folder's configuration says; location = "s3://…" names another place.
state "shop" {
  folder = "shop"
  vars   = { eu = var.eu, us = var.us }
  owner  = "platform"
}

state "staging" {
  folder = "staging"
  vars   = { bootstrap = var.staging }
  owner  = "platform"
}

# ── who owns what ───────────────────────────────────────────────────────────────────────

owner "orders" {
  topics     = ["orders.*"]
  principals = ["User:checkout"]
}

owner "payments" {
  topics     = ["payments.*"]
  principals = ["User:billing"]
}

# Unused topics that stay, up to this day. `kafkaform fleet unused` brings the others to their end.
keep {
  topic   = "orders.trial"
  cluster = "staging"
  until   = "2027-12-31"
  reason  = "Load tests use it now and then."
}

# A month, each; bytes are those of all replicas.
rates {
  currency         = "EUR"
  partition        = 0.02
  gigabyte         = 0.1
  ingress_gigabyte = 0.05
  egress_gigabyte  = 0.05
}

# ── what should not be ──────────────────────────────────────────────────────────────────

rule "short-retention" {
  severity = "high"
  kind     = "kafka_topic"
  where    = "cast(attrs['config.retention.ms'] as bigint) < 3600000"
  message  = "Records are kept for less than an hour."

  waiver {
    key    = "cache.*"
    until  = "2027-06-30"
    reason = "Rebuilt from the database within minutes."
  }
}

rule "single-replica" {
  severity = "medium"
  kind     = "kafka_topic"
  where    = "cast(attrs['replication_factor'] as int) < 2 and env = 'prod'"
  message  = "One broker's loss is this topic's loss."

  waiver {
    key    = "orders.shipped"
    until  = "2027-03-31"
    reason = "It can be made again from orders.created."
  }
}

naming {
  kind    = "kafka_topic"
  pattern = "[a-z][a-z0-9]*(\\.[a-z0-9-]+)+|__.*"
}
