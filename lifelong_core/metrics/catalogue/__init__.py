"""Catalogue of all metrics by acronym, as data.

- `metrics`: METRICS, the catalogue itself
- `metric_info`: description of one metric
- `per_class`, `multiclass`, `scores`, `agreement`: the entries
- `relations`, `parameters`, `undefined_reasons`: related metrics, parameters of metrics, reasons of undefined values
"""
