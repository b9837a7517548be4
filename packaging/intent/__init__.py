"""Sentences of our own that the intent model learns from, beside the files given to it."""
