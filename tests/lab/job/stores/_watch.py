"""A thread that acts once when no step has begun for a while, as watchdogs of trainers do."""

import threading
import time

#: No step of the lab takes as long; ranks that wait give up after 8 s.
SILENT_S = 4.0
_LOOK_S = 0.2


class Watch:
    """Calls `act` in a thread of its own, once, when `beat` was not called for `SILENT_S`; never before the first."""

    def __init__(self, act):
        self.act, self.last = act, None
        threading.Thread(target=self._run, daemon=True).start()

    def beat(self):
        self.last = time.monotonic()

    def _run(self):
        while self.last is None or time.monotonic() - self.last < SILENT_S:
            time.sleep(_LOOK_S)
        self.act()
