"""The prediction log.

- `predictions`, `writing`: rows of predictions, read and written
- `records`, `rows`: their value types, and those from rows
- `identifiers`, `commit_order`: ids, and the order in which transactions committed
- `labels`: true classes
- `partitions`, `quarantine`: daily partitions; rows that cannot be judged
- `delivery`, `recent_requests`: entries from the spool; repetitions during an outage
- `traffic`: rates of predictions by token
"""
