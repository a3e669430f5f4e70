"""The life of stored data.

- `retention`, `erasure`: deletion by age, and of a group
- `exports`: the log of one environment, page by page
- `privacy`, `group_keys`: hashes of groups and their keys
"""
