"""``python -m bench``: see cli.py."""

import sys

from bench.cli import main

sys.exit(main())
