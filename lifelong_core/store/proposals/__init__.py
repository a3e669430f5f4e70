"""Retrainings that monitors propose and people decide on.

- `proposals`: proposes, lists, accepts and dismisses
- `records`, `documents`: their value type, and it as JSON
"""
