provider "kafka" {
  bootstrap_servers = ["broker-1.example:9092"]

  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}

resource "kafka_broker_config" "first" {
  broker_id = 1
  config = {
    "sasl.kerberos.principal.to.local.rules" = join(",", concat(
      [for n in range(30) : format("RULE:[2:$1@$0](svc-%02d@CORP.EXAMPLE.ORG)s/@.*//", n)],
      ["RULE:[1:$1@$0](.*@PARTNER.EXAMPLE.COM)s/.*/admin/"],
      [for n in range(30) : format("RULE:[2:$1@$0](svc-%02d@CORP.EXAMPLE.ORG)s/@.*//", n + 30)],
      ["DEFAULT"],
    ))
  }
}
