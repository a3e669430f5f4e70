"""Shared functions of all processes of the product.

- `logs`, `redaction`: one log format; texts without passwords and tokens
- `background`, `deadline`: threads with an orderly end; calls that may hang
- `memory`, `file_modes`: memory that a process may use, return of free memory to the system; private files
- `disk_space`: files that are mapped into memory, without holes
- `temporary_folder`: a temporary folder on machines without one
- `addresses`: IP addresses in URLs
- `cores`: processor cores that a process may use
"""
