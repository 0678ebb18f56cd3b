"""Code that all estimators share: targets, progress, fitted attributes, predictions, files."""
