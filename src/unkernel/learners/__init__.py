"""What all estimators share: targets, progress, fitted attributes, answers, files."""
