"""Task fingerprints (thesis, section 5.1.1) as values, and the distances between them; numpy and scipy only.

- `fingerprint`: what all kinds share: file format, digest, comparability.
- `histogram`, `gaussian`, `feature_set`, `fisher`, `keywords`: the kinds; the first three with builders for streams.
- `kinds`: a fingerprint of any kind from its file.
- `distances`: the methods under their names, and `distance`.
- `extractor`: what the features were computed with.
- `privacy`: the guarantee of a differentially private fingerprint.
"""
