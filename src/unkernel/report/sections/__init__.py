"""Make the sections of reports from the predictions of models. Each file makes one kind of section."""
