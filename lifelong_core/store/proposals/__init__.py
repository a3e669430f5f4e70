"""Retrainings that monitors propose and people decide on.

- `proposals`: proposes, lists, accepts and dismisses
- `acceptance`: accepts, and starts the retraining
- `records`, `documents`: their value type, and it as JSON
"""
