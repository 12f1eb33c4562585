"""The resource types that the tables of the vendors name.

Texts, because a table must not load the types; a test compares them with the types.
"""

from __future__ import annotations

TOPIC = "kafka_topic"
TOPIC_CONFIG = "kafka_topic_config"
TOPICS = (TOPIC, TOPIC_CONFIG)
ACL = "kafka_acl"
QUOTA = "kafka_quota"
USER = "kafka_user_scram_credential"
BROKER_CONFIG = "kafka_broker_config"
CLUSTER_CONFIG = "kafka_cluster_config"
BROKERS = (BROKER_CONFIG, CLUSTER_CONFIG)
GROUP_CONFIG = "kafka_group_config"
METRICS = "kafka_client_metrics"
LEADERS = "kafka_topic_leaders"

ACL_APIS = ("DescribeAcls", "CreateAcls", "DeleteAcls")
QUOTA_APIS = ("DescribeClientQuotas", "AlterClientQuotas")
USER_APIS = ("DescribeUserScramCredentials", "AlterUserScramCredentials")
CONFIG_APIS = ("DescribeConfigs", "IncrementalAlterConfigs", "ListConfigResources")
ALTER_CONFIGS = ("IncrementalAlterConfigs",)
ELECTIONS = ("ElectLeaders",)
