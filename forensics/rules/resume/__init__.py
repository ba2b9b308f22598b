"""Rules of the learning shape about restarts: what a resumed run lost, replayed or counted anew."""
