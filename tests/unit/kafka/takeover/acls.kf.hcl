# Each ACL of local.acls, by its key.
resource "kafka_acl" "live" {
  for_each                     = { for key in local.acls : key => split("|", key) }
  acl_principal                = each.value[0]
  acl_host                     = each.value[1]
  acl_operation                = each.value[2]
  acl_permission_type          = each.value[3]
  resource_type                = each.value[4]
  resource_name                = each.value[5]
  resource_pattern_type_filter = each.value[6]
}
