"""Rows of features: svmlight files, and packed rows that need not fit into memory."""
