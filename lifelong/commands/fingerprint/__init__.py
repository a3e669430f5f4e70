"""`lifelong fingerprint`: fingerprints of tasks as files.

- `group`: the command and its sub-commands.
- `make`, `extractor`: from images to a fingerprint, and to the reference that institutions share.
- `show`, `compare`: what a fingerprint is and discloses; distances.
- `private`: a differentially private copy.
- `exchange`: from and to the knowledge base of this installation.
- `options`, `files`, `progress`: shared options; reading and writing; the progress bar.
"""
