"""Decoding of images from clients; no image can block a worker.

- `header`: format, size and cost of an image, read from its first bytes without decoding
- `limits`: limits for refusal, and for decoding in the serving process
- `child`: the process that decodes costly images; it may be killed at any moment
- `turns`: limit of large images that the workers of a machine decode at once
- `process`: starts, uses and kills that process
- `decoder`: the interface for the routes
"""
