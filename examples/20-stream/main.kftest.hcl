# The data contract of payments, on a simulated registry as Confluent's.

variables {
  bootstrap = "localhost:9092"
  registry  = "http://localhost:8081"
  connect   = "http://localhost:8083"
  folder    = "/data"
  contracts = true
}

simulate "schema_registry" {
  product = "confluent"
}

run "register" {
  command = "apply"

  assert {
    condition     = plan.changes["module.payments.schema_registry_schema.value"].after.metadata["properties.owner"] == "billing"
    error_message = "Payments say who answers for them."
  }
}

run "again" {
  assert {
    condition     = plan.counts.change + plan.counts.add == 0
    error_message = "A contract that the registry has is no change."
  }
}
