# What must be refused. A run passes if exactly these blocks fail.

variables {
  environment = "prod"
}

run "unknown_environment" {
  variables {
    environment = "production"
  }

  expect_failures = [var.environment]
}

run "too_few_partitions" {
  variables {
    partitions = 3
  }

  expect_failures = [kafka_topic.orders]
}

run "create" {
  command = "apply"

  variables {
    partitions = 12
  }
}

# Kafka cannot remove partitions, so the plan blocks the change.
run "fewer_partitions" {
  variables {
    partitions = 6
  }

  expect_failures = [kafka_topic.orders]

  assert {
    condition     = plan.changes["kafka_topic.orders"].blocked.kind == "impossible"
    error_message = "It is blocked because Kafka cannot do it."
  }
}
