"""Rules about a part of each step that trains nothing: waiting for data, padding, an idle device."""
