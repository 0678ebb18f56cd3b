"""Files of records: CSV, TSV, JSON lines and Parquet, compressed or not, read in bounded memory."""

from unkernel.records.files.blocks import Block
from unkernel.records.files.formats import FORMATS, format_of
from unkernel.records.files.record_files import RecordFile, open_records
from unkernel.records.files.training_table import TrainingTable, read_training

__all__ = ["FORMATS", "Block", "RecordFile", "TrainingTable", "format_of", "open_records", "read_training"]
