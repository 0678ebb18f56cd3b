"""Detect the formats of files of records, by their names or their first bytes."""

from __future__ import annotations

from pathlib import PurePath

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
COMPRESSIONS = (".gz", ".xz", ".bz2", ".zst")
_PARQUET = b"PAR1"
BOM = b"\xef\xbb\xbf"


def format_of(name: str) -> str | None:
    """Return the format that a file's name implies: "csv", "tsv", "jsonl", "parquet" or None."""
    path = PurePath(name)
    if path.suffix.lower() in COMPRESSIONS:
        path = path.with_suffix("")
    return FORMATS.get(path.suffix.lower())


def detect_format(beginning: bytes) -> str:
    """Return the format that a file's first bytes imply."""
    if beginning.startswith(_PARQUET):
        return "parquet"
    text = beginning.removeprefix(BOM).lstrip()
    if text.startswith(b"{"):
        return "jsonl"
    header = text.partition(b"\n")[0]
    return "tsv" if b"\t" in header and b"," not in header else "csv"
