"""Pages of models and of their validations."""
