"""The parts of reports, one file each: functions that make sections from the predictions of models."""
