# A topic exists before kafkaform manages it, and somebody changes it afterwards.

variables {
  environment = "prod"
}

simulate "kafka" {
  brokers = 5
}

given "kafka_topic" "orders" {
  name               = "${var.environment}.orders"
  partitions         = 6
  replication_factor = 3

  config = {
    "retention.ms" = retention("30d")
  }
}

run "not_taken_over_unasked" {
  expect_failures = [kafka_topic.orders]

  assert {
    condition     = plan.changes["kafka_topic.orders"].blocked.kind == "unmanaged"
    error_message = "A topic that exists is left alone."
  }
}

run "adopt" {
  command = "apply"

  plan_options {
    adopt = ["kafka_topic.orders"]
  }

  assert {
    condition     = plan.changes["kafka_topic.orders"].adopts
    error_message = "The topic is taken over."
  }

  assert {
    condition     = plan.changes["kafka_topic.orders"].paths[*].path == ["config.retention.ms"]
    error_message = "Only its retention is changed."
  }
}

run "drift_is_corrected" {
  # Somebody raises the retention again.
  given "kafka_topic" "orders" {
    name       = "${var.environment}.orders"
    partitions = 6

    config = {
      "retention.ms" = retention("90d")
    }
  }

  assert {
    condition     = plan.changes["kafka_topic.orders"].drift[*].path == ["config.retention.ms"]
    error_message = "The plan says what somebody changed."
  }

  assert {
    condition     = plan.changes["kafka_topic.orders"].after.config["retention.ms"] == "604800000"
    error_message = "It goes back to what the configuration says."
  }
}
