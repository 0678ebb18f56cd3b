"""The files that commands read: rows, records, trees, sentences and models."""
