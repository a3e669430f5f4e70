"""What the metric of a head's decision rule will be in a population, with its interval.

- `expected_criterion`: the value as a document, and the function that estimates it
- `sample`: the calibration set, its rates at a cut-off, and the rule's metric
- `draws`: draws of the calibration set, of the rates and of the prevalence
- `wording`: the value as a sentence
"""
