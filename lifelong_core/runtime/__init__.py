"""Shared functions of all processes of the product.

- `logs`, `redaction`: one log format; texts without passwords and tokens
- `background`, `deadline`: threads with an orderly end; calls that may hang
- `memory`: memory that a process may use, return of free memory to the system
- `private_files`: files and folders of an installation, and their access rights
- `files`: private files, a temporary folder, and mapped files without holes
- `graph_check`: loads an untrusted ONNX graph in a process of its own
- `addresses`: IP addresses in URLs
- `tracing`: OpenTelemetry spans, off by default
- `cores`: processor cores that a process may use
"""
