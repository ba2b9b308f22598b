"""Where a run may be, behind one face: a folder or a file of this machine, or what a bucket holds."""
