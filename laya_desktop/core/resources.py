"""Finding files that ship with the application, in a checkout, a wheel or a frozen build."""

from pathlib import Path

import laya_desktop


def resource(name: str) -> Path:
    """Path of a file or folder below `resources/`. In a checkout that folder lies beside the package."""
    package = Path(laya_desktop.__file__).parent
    inside = package / "resources"
    return (inside if inside.is_dir() else package.parent / "resources") / name
