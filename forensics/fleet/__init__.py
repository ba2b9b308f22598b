"""Many runs in one place: found by their folders, and judged one by one, on as many processes as are asked for."""
