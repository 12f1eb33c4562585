# What every environment has. The environments differ in the arguments only.

variable "prefix" {
  type        = string
  default     = ""
  description = "In front of each name, where environments share a cluster."
}

variable "partitions" {
  type    = number
  default = 3
}

variable "keep" {
  type    = string
  default = "1d"
}

variable "final" {
  type        = bool
  default     = false
  description = "Whether losing data here is a loss."
}

resource "kafka_topic" "orders" {
  name       = "${var.prefix}store.orders"
  partitions = var.partitions
  config     = { "retention.ms" = retention(var.keep) }

  lifecycle {
    prevent_destroy = var.final

    precondition {
      condition     = !var.final || retention(var.keep) >= retention("7d")
      error_message = "Orders that matter are kept for a week at least."
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

output "topics" {
  value = [kafka_topic.orders.name]
}
