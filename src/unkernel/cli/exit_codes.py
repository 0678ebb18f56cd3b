"""Exit codes of the commands."""

BROKEN_PIPE = 1
DAMAGED_MODEL = 1  # returned by ``unkernel verify``
BAD_INPUT = 2
INTERRUPTED = 130
