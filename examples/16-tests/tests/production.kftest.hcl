# What production gets, and what changes later do.

variables {
  environment = "prod"
}

run "creates_everything" {
  command = "apply"

  assert {
    condition     = plan.counts.add == 2 && plan.counts.change == 0
    error_message = "A new environment gets one topic and one ACL."
  }

  assert {
    condition     = plan.changes["kafka_topic.orders"].after.replication_factor == 3
    error_message = "Production has three replicas."
  }

  assert {
    condition     = output.orders == "prod.orders"
    error_message = "Names begin with the environment."
  }
}

run "second_plan_is_empty" {
  assert {
    condition     = length(plan.changes) == 0
    error_message = "A plan after an apply has nothing to do."
  }
}

run "more_partitions" {
  variables {
    partitions = 12
  }

  assert {
    condition     = plan.changes["kafka_topic.orders"].paths[*].path == ["partitions"]
    error_message = "Only the number of partitions changes."
  }
}

run "shorter_retention_is_a_risk" {
  variables {
    retention = "1d"
  }

  assert {
    condition     = contains(plan.changes["kafka_topic.orders"].harms, "data-loss")
    error_message = "Kafka deletes records that are older than the retention."
  }
}
