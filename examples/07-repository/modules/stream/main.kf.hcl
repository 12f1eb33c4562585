# A topic, and the rights of the application that writes to it.

variable "name" {
  type        = string
  description = "Of the topic, such as shop.orders."
}

variable "keep" {
  type        = string
  default     = "7d"
  description = "For how long records are kept."
}

variable "writer" {
  type        = string
  description = "The principal of the application."
}

resource "kafka_topic" "this" {
  name       = var.name
  partitions = 3
  config     = { "retention.ms" = retention(var.keep) }
}

resource "kafka_access" "writer" {
  principal = var.writer
  role      = "producer"
  topics    = [kafka_topic.this.name]
}

output "topic" {
  value = kafka_topic.this.name
}
