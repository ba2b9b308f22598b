"""How a run learned: where its loss left its course or never moved, and what its rate and its ranks say of it."""
