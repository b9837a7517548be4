"""The parts of packaging/dev.py. Standard library only: they run before anything is installed."""
