"""Features of images by a timm model with local weights; the only part of fingerprinting that needs torch."""
