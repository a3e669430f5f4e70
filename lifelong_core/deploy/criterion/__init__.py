"""The value that the metric of a head's decision rule will have in a population, with its interval.

- `expected_criterion`: the value as a document and as a sentence, its estimate, and the value in a head's provenance
- `rule_sample`: the calibration set as the rule sees it, and draws of the set, of its rates and of the prevalence
"""
