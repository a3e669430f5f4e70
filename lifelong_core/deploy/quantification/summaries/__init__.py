"""Windows in bounded memory: mergeable summaries instead of rows.

- `window_summary`: counts and sums per cell of a codebook
- `codebook`: the partition of the space of logits; the scale of the calibration set's logits
- `group_sketch`: which samples belong to the same group
"""
