"""Task fingerprints (thesis, section 5.1.1) as values, and the distances between them; numpy and scipy only.

- `extractor`: backbone, weights, preprocessing and bin edges of the features.
- `fingerprint`: what all kinds share: file format and digest.
- `histogram`, `gaussian`, `feature_set`, `fisher` (with keywords): the kinds; the first two with builders for streams.
- `kinds`: a fingerprint of any kind from its file.
- `distances`: the methods under their names, and `distance`.
- `disclosure`: what a fingerprint reveals of its images.
- `private_histogram`: differentially private histograms.
"""
