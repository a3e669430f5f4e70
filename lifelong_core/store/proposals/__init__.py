"""Retrainings that monitors propose and people decide on.

- `proposals`: proposes, lists, accepts and dismisses
- `acceptance`: accepts, and starts the retraining
"""
