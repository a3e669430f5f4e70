"""Decoding of images from clients; no image can block a worker.

- `header`: format, size and cost of an image, read from its first bytes without decoding; limits
- `decoder`: the interface for the routes
- `process`: starts, uses and kills the process that decodes costly images; turns of the workers of a machine
- `child`: that process; `frames`: the bytes between the two
"""
