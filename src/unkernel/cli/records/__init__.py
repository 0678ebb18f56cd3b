"""What commands do with models of records: answering, explaining, measuring."""
