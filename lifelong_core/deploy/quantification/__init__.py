"""Prevalence estimation without labels, one module for each family of quantifiers.

- `registry`: QUANTIFIERS and `quantifier(name)`
- `fitted_quantifier`: the interface of all quantifiers
- `prevalence_estimate`: the estimate with its interval
- `counting`: CC, PCC; `adjusted`: ACC, PACC, BBSE; `em`: EMQ, MLLS; `hdy`: HDy
- `kdey`: KDEyML; `kdey_divergence`: KDEyHD, KDEyCS
- `auto`: the default, with `score_adapted`
- `uncertainty`, `mixture`, `kernels`: variances, mixtures and kernel densities
- `separation`, `cautions`: whether the calibration set separates the classes; limits of an estimate
- `summaries`: windows in bounded memory
"""
