terraform {
  required_providers {
    kafka = {
      source = "Mongey/kafka"
    }
  }
}

variable "name" {
  type = string
}

variable "partitions" {
  type = number

  validation {
    condition     = var.partitions > 0
    error_message = "A stream needs a partition."
  }
}

variable "replication_factor" {
  type = number
}

variable "retention_days" {
  type = number
}

variable "compacted" {
  type = bool
}

resource "kafka_topic" "this" {
  name               = var.name
  partitions         = var.partitions
  replication_factor = var.replication_factor

  config = merge(
    { "cleanup.policy" = var.compacted ? "compact" : "delete" },
    var.compacted ? {} : { "retention.ms" = tostring(var.retention_days * 24 * 60 * 60 * 1000) },
  )
}

output "name" {
  value = kafka_topic.this.name
}
