"""Life cycle of stored data.

- `retention`, `erasure`: deletion by age, and of a group
- `exports`: export of the log of one environment by pages
- `privacy`, `group_keys`: hashes of groups and their keys
"""
