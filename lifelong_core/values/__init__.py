"""What every layer may import; this package imports nothing of ours.

- `errors`: the root of all exceptions; `validation_errors`: pydantic's errors as ours
- `documents`: base classes of documents; `array_value`: equality of values that hold arrays
- `arrays`, `scientific`, `npz`: array types, argument checks, functions of scipy, files of arrays
- `mistaken_probabilities`: are numbers that were given as logits probabilities?
- `names`, `class_labels`, `control_characters`: names, labels and characters that are checked
- `preprocessing`: the document of how images become the input of a model
- `csv_files`: CSV files, read and written
- `uncertainties`: predicted uncertainties of samples
"""
