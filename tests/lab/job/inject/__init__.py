"""What goes wrong: one module for each kind of fault, with a function for each hook that it answers."""
