"""The prediction log.

- `predictions`, `writing`: reads and writes of rows
- `finding`: predictions found by what a person knows of them
- `records`: value types, and rows that no estimate can use
- `identifiers`, `commit_order`: ids, and the order of the commits
- `labels`, `label_writing`: true classes and their history
- `partitions`: daily partitions
- `delivery`, `recent_requests`: entries from the spool; repetitions during an outage
"""
