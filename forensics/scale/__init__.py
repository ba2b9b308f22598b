"""The same reading on several processes or machines: it changes how long a run takes to read, and no answer."""
