"""How probabilities become decisions (FP2.6): rules as values, their cut-offs, and what they will reach.

- `rules`: Bayes rule, argmax, fixed cut-offs, target value, optimised metric; their JSON documents
- `wording`: a rule as a phrase
- `executed`: a rule with its costs or its cut-off, applied to probabilities
- `rates`: metrics of one class against the rest as functions of true and false positives
- `operating_points`: what each cut-off of the calibration set reaches; choice of the cut-off
- `expected_criterion`: the rule's metric in a population, with its interval
"""
