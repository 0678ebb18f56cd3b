"""``python -m unkernel`` is the command ``unkernel``."""

import sys

from unkernel.cli import main

sys.exit(main())
