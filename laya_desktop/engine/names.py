"""Names and aliases of the registered models."""

from collections.abc import Sequence

from laya_desktop.config.schema import ModelEntry
from laya_desktop.core.errors import ErrorCode, LayaError


class ModelNames:
    """Made anew for every config; immutable."""

    def __init__(self, entries: Sequence[ModelEntry]) -> None:
        self._names = {name: entry.name for entry in entries for name in (entry.name, *entry.aliases)}
        self._registered = tuple(entry.name for entry in entries)

    def get(self, name: str) -> str | None:
        """The registered name for a name or alias, None if there is none."""
        return self._names.get(name)

    def resolve(self, name: str) -> str:
        """The same; raises LayaError(MODEL_NOT_FOUND) that lists the registered names."""
        found = self._names.get(name)
        if found is None:
            raise LayaError(
                ErrorCode.MODEL_NOT_FOUND,
                f"There is no model called '{name[:100]}'.",
                hint=f"Registered models: {', '.join(self._registered) or 'none'}.",
                param="model",
            )
        return found
