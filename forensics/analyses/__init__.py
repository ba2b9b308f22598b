"""One value for each question that is asked of a run; rules, commands and reports read the same one."""
