# Written for the JSON of `terraform show`. It reads that of `kafkaform show` as it is.
package main

import rego.v1

deny contains message if {
	some resource in input.resource_changes
	"delete" in resource.change.actions
	message := sprintf("%s would be deleted", [resource.address])
}

deny contains message if {
	some resource in input.resource_changes
	resource.type == "kafka_topic"
	some action in ["create", "update"]
	action in resource.change.actions
	resource.change.after.partitions > 50
	message := sprintf("%s would have %d partitions", [resource.address, resource.change.after.partitions])
}

# What Terraform has no field for is under `kafkaform`.
warn contains message if {
	some resource in input.resource_changes
	some finding in resource.kafkaform.findings
	finding.level in ["danger", "caution"]
	not startswith(finding.rule, "policy/")
	message := sprintf("%s: %s", [resource.address, finding.text])
}
