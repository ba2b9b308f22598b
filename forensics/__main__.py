"""`python -m forensics` is `forensics`, started in any folder.

Python puts the working folder first among the places to import from, and inside a run that folder is the run's: its
`polars.py` would be executed. So it is taken out before anything is imported. What Python looks for before this file
(`forensics.py`, `importlib.py`, `warnings.py`) cannot be kept out from here; `python -P -m forensics` and the script
`forensics` never look there.
"""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]

    from forensics.cli.main import run

    sys.exit(run())
