# The topics of a shop, with rules that the files in `tests` prove.

provider "kafka" {
  bootstrap_servers = [var.bootstrap]
}

variable "bootstrap" {
  type        = string
  default     = "localhost:9092"
  description = "host:port of one broker; tests do not connect to it"
}

variable "environment" {
  type = string

  validation {
    condition     = contains(["dev", "prod"], var.environment)
    error_message = "The environment is dev or prod."
  }
}

variable "partitions" {
  type    = number
  default = 6
}

variable "retention" {
  type    = string
  default = "7d"
}

locals {
  prefix = "${var.environment}."
}

resource "kafka_topic" "orders" {
  name               = "${local.prefix}orders"
  partitions         = var.partitions
  replication_factor = var.environment == "prod" ? 3 : 1

  config = {
    "retention.ms" = retention(var.retention)
  }

  lifecycle {
    precondition {
      condition     = var.environment != "prod" || var.partitions >= 6
      error_message = "Production needs at least 6 partitions."
    }
  }
}

resource "kafka_acl" "billing" {
  acl_principal       = "User:billing"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = kafka_topic.orders.name
}

check "naming" {
  assert {
    condition     = can(regex("^[a-z.]+$", kafka_topic.orders.name))
    error_message = "Names of topics are lower case."
  }
}

output "orders" {
  value = kafka_topic.orders.name
}
