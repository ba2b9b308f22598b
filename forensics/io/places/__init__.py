"""The places of a run behind one interface: a folder or a file of this machine, or a bucket."""
