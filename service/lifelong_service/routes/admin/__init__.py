"""The routes under `/v1/admin`, one module for each resource."""
