"""Augmentation policies: applied to images, and searched for a task."""
