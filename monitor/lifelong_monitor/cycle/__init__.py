"""One cycle of one population.

- `cycle`: load, judge, record
- `due_times`, `lease`: why and when a cycle is due; one monitor at a time
- `subject`, `context`, `traffic`: model, head, quantifier and circumstances
- `window`, `new_samples`, `labels`: the predictions and labels that are judged
- `estimates`: metrics that are estimated without labels, and their acceptance
- `reports`, `replay`, `text`: the recorded report, its replay, its line in the log
"""
