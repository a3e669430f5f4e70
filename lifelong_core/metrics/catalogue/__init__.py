"""All metrics by acronym, as data.

- `metrics`: METRICS, the catalogue itself
- `metric_info`: what is known of one metric
- `per_class`, `multiclass`, `scores`, `agreement`: the entries
- `relations`, `parameters`, `undefined_reasons`: related metrics, their parameters, why a value is undefined
"""
