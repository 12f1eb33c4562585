variable "keep" {
  type = string
}

resource "kafka_topic" "this" {
  for_each = toset(["orders", "payments"])

  name       = "global.${each.key}"
  partitions = 3
  config     = { "retention.ms" = retention(var.keep) }
}

output "names" {
  value = sort([for topic in kafka_topic.this : topic.name])
}
