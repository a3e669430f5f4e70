"""Does a model look at the same places as another one? After R. Romanova (2020).

Free of torch:

- `stability`: agreement of the patches that two models find positive, and its mean over images with an interval.
- `classifier_stability`: all pairs of several classifiers, over the positive images.
- `occlusion`: where a model looks, from its logits alone; `overlay`: the image with these places.
- `pooling`: from scores of patches to the score of an image, and supervised by marked patches (eqs. 1 to 5 and 23).

With torch:

- `patch_head`: a timm backbone with a score for each patch; the poolings for training, on logits.
"""
