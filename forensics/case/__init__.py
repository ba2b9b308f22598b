"""One model of a run: attempts, series, progress, errors, endings and settings, each decided once from the tables.

Every part is a function of a run that `Run.derived` keeps: it is computed at the first question and then shared by all
analyses, rules and commands.
"""
