"""Decoding of images from clients; no image can block a worker.

- `header`: format, size and cost of an image, read from its first bytes without decoding
- `limits`: which images are refused, and which are cheap enough for the serving process
- `child`: the process that decodes the other ones; it may be killed at any moment
- `turns`: how many large images the workers of a machine decode at once
- `process`: starts, feeds and kills that process
- `decoder`: what the routes use
"""
