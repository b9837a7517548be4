"""Where icons and translations lie: beside the package in a checkout, inside it in a wheel or frozen app."""

from functools import cache
from pathlib import Path


@cache
def root() -> Path:
    """The resources folder."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "resources"
    return inside if inside.is_dir() else package.parent / "resources"


def path(*parts: str) -> Path:
    """The resource at `parts` below the resources folder."""
    return root().joinpath(*parts)
