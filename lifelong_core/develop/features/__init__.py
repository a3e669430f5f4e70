"""Features of images by a timm model with local weights; the only part of fingerprinting that needs torch.

- `task`: from images to the fingerprints and facts of a task; `result`: fingerprints, facts and the account of a run.
- `reference`: makes the extractor reference that institutions share.
- `sources`: images in folders, tables and archives; `sampling`: a random sample of them.
- `backbone`, `dicom`, `extraction`: the model; from files to its input and to features, batch by batch.
- `collection`: fingerprints and facts from the batches; intrinsic dimension.
- `fisher`: the Fisher embedding.
"""
