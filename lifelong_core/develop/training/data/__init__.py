"""Images of a task for training: read, split without leaks, and kept decoded.

- `cases`: the labelled images of a source.
- `splits`: training, validation, calibration and test split, stratified; groups and identical images tie cases
  together.
- `pixel_cache`: decoded images in a file.
- `prepared`: the prepared images of a training; the part of its training split that a search holds out.
"""
