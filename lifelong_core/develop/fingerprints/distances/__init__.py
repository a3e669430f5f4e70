"""Distances between fingerprints; the lower, the closer (thesis, definition 5.1).

- `method`: the interface of all methods.
- `binned_kld`: bKLD and its matrix form; JSD.
- `pairwise`: naive and MMD.
- `vectors`: P2L, FED and Manual, which compare one vector for each task; FID, EMD and VDNA.
- `registry`: all methods under their names, and `distance`.
"""
