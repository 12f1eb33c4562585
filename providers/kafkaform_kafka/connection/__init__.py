"""In: a provider block, or the properties of a Java client. Out: settings for both Kafka clients,
an open native client, login tokens, and the proof of which cluster answered.
Must not know: resource types, admin requests beyond those that open a connection, plans.
"""
