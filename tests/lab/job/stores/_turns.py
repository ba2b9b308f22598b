"""One of several ways to write the same thing: each job has its own, the same whenever it runs."""

import random

from facts import JOB


def turn(what, *options):
    """One of the options, by the job and by what is chosen."""
    return random.Random(f"{what}-{JOB['seed']}-{JOB['number']}").choice(options)
