"""Images of a task for training: read, split without leaks, and kept decoded.

- `cases`: the labelled images of a source.
- `splits`: training, validation, calibration and test split, stratified; groups and identical images tie cases
  together.
- `pixel_cache`: decoded images in a file.
- `prepared`: all of it together, what a training gets; a part of the training split that a search keeps for itself.
"""
