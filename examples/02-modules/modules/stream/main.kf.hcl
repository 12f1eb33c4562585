variable "name" {
  type = string

  validation {
    condition     = can(regex("^[a-z]+\\.[a-z-]+$", var.name))
    error_message = "A stream is called TEAM.NAME, in small letters; this is \"${var.name}\"."
  }
}

variable "owner" {
  type = string
}

variable "partitions" {
  type    = number
  default = 3
}

variable "keep" {
  type        = string
  description = "how long records are kept, such as 7d"
  default     = "7d"
}

variable "retries" {
  type        = bool
  description = "whether there is a topic for records that could not be processed"
  default     = true
}

resource "kafka_topic" "stream" {
  name       = var.name
  partitions = var.partitions
  config     = { "retention.ms" = retention(var.keep) }
  owner      = var.owner

  lifecycle {
    precondition {
      condition     = retention(var.keep) >= retention("1d")
      error_message = "Nobody can repair what is gone after ${var.keep}; keep it for a day at least."
    }
  }
}

resource "kafka_topic" "retry" {
  count = var.retries ? 1 : 0

  name       = "${kafka_topic.stream.name}.retry"
  partitions = kafka_topic.stream.partitions
  config     = { "retention.ms" = retention("14d") }
  owner      = var.owner
}

output "topics" {
  value = concat([kafka_topic.stream.name], kafka_topic.retry[*].name)
}
