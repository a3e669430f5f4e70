"""What every process of the product needs.

- `logs`, `redaction`: one log format; texts without passwords and tokens
- `background`, `deadline`: threads with a clean end; calls that may hang
- `memory`, `file_modes`: free memory back to the system; private files
"""
