"""Run the command ``unkernel`` as ``python -m unkernel``."""

import sys

from unkernel.cli import main

sys.exit(main())
