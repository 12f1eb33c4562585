# Written for `terraform show -json`. It reads `kafkaform show PLAN --json` as it is.
package main

import rego.v1

deny contains message if {
	some change in input.resource_changes
	"delete" in change.change.actions
	message := sprintf("%s would be deleted", [change.address])
}

deny contains message if {
	some change in input.resource_changes
	change.type == "kafka_topic"
	some action in ["create", "update"]
	action in change.change.actions
	change.change.after.partitions > 50
	message := sprintf("%s would have %d partitions", [change.address, change.change.after.partitions])
}

# What Terraform has no field for is under `kafkaform`.
warn contains message if {
	some change in input.resource_changes
	some risk in change.kafkaform.risks
	message := sprintf("%s: %s", [change.address, risk.text])
}
