"""What commands read: rows, trees, sentences, models."""
