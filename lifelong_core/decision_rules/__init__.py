"""How probabilities become decisions (FP2.6): one implementation for heads and for validations.

- `rules`: Bayes rule, argmax, fixed cut-offs, target value, optimised metric; their JSON documents and targets
- `wording`: a rule as a phrase
- `decide`: a rule with its costs or its cut-off, applied to probabilities
- `operating_points`: metrics of one class as functions of true and false positives; what each
  cut-off of labelled samples reaches; choice of the cut-off
"""
