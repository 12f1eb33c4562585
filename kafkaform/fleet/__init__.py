"""Answer questions about many clusters at once: drift, access, use, cost and history.

In: landing files (`core.landing`). Out: Delta Lake tables, reports, answers. It must not know:
brokers, configurations, and how landing files are written.

    landed     parse and verify landing files and audit-log lines
    tables     define the tables; read them and the builds' manifests without Spark
    spark      start Spark; write Delta tables
    datasets   compute the silver and gold tables: drift, attribution, quotas, capacity, ...
    access     compute the permission tables from ACLs
    build      run one build: take files in, recompute what changed, publish the manifest
    report     make the report of a build; render rows as text, JSON or CSV
    answers    answer `fleet query`, `who-can`, `history` and `status`

Only the modules that need pyspark import it: never this one, `answers`, `report` or
`tables.reader`. Those commands must start in a second, without a JVM.
"""
