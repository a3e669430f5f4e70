"""`lifelong fingerprint`: fingerprints of tasks as files.

- `group`: the command and its sub-commands.
- `make`, `extractor`: from images to a fingerprint, to a private copy, and to the reference that institutions share.
- `show`: what a fingerprint is and discloses; distances.
- `exchange`: from and to the knowledge base of this installation.
- `reading`, `files`: options and progress of commands that read images; reading and writing of files.
"""
