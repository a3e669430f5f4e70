"""Properties whose examples take a second or so: they get a fifth of the examples of the profile."""

from hypothesis import settings

costly = settings(max_examples=settings.default.max_examples // 5)
