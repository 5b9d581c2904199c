"""The programs under tools/ are not installed: they are found from the root of the tree."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))
