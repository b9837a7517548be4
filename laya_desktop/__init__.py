"""Laya Desktop: several local language models on a small machine, routed, scheduled, inside memory."""

__version__ = "0.1.0"
