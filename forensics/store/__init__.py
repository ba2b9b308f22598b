"""The tables of a run: schema, sink, writer and reader."""
