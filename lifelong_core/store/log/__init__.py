"""The prediction log.

- `predictions`, `writing`: reads and writes of rows
- `records`, `rows`: value types, and their construction from rows
- `identifiers`, `commit_order`: ids, and the order of the commits
- `labels`, `label_writing`: true classes
- `label_revisions`, `label_documents`: the history of labels
- `partitions`, `quarantine`: daily partitions; rows that no estimate can use
- `delivery`, `recent_requests`: entries from the spool; repetitions during an outage
- `traffic`: rates of predictions by token
"""
