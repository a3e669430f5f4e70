"""Commands that train models, and that show how they were trained."""
