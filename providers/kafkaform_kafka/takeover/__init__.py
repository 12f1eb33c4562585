"""In: a file or folder of another tool. Out: the topics, ACLs, quotas and users that it declares,
and what in it is not taken over.

One module for each tool; `kafkaform.provider.contract` is the contract. Must not know: brokers,
sessions. Nothing here connects to anything, and no value of a secret is kept.
"""
