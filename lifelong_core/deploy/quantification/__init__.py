"""Prevalence estimation without labels, one module for each family of quantifiers.

- `registry`: QUANTIFIERS, `quantifier(name)`; `automatic`: `auto`, the default
- `fitted_quantifier`: the interface of all quantifiers
- `prevalence_estimate`: the estimate with its interval
- `counting`: CC, PCC, ACC, PACC, BBSE; `em`: EMQ, MLLS; `hdy`: HDy
- `kdey`: KDEyML, and the kernel densities; `kdey_divergence`: KDEyHD, KDEyCS
- `uncertainty`: variances by influence functions
- `cautions`: whether the calibration set separates the classes; limits of every estimate from it
- `window_summary`: a window in bounded memory, by `codebook` and `group_sketch`
"""
