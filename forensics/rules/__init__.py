"""One file per rule, named by its symptom, in the folder of its shape."""
