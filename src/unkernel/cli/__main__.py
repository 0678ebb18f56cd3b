"""``python -m unkernel.cli`` is the command ``unkernel``."""

import sys

from unkernel.cli import main

sys.exit(main())
