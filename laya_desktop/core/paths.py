"""Where files live on this system."""

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

_APP = "laya-desktop"


@dataclass(frozen=True)
class Paths:
    """Folders of one installation. `data` holds chats, models and the engine's lock; `logs` the log files."""

    config: Path
    data: Path
    cache: Path
    logs: Path

    @classmethod
    def default(cls) -> "Paths":
        """The platform's folders, or everything below ``$LAYA_HOME`` when it is set."""
        home = os.environ.get("LAYA_HOME")
        if home:
            return cls.below(Path(home))
        dirs = platformdirs.PlatformDirs(_APP, appauthor=False)
        return cls(
            config=dirs.user_config_path,
            data=dirs.user_data_path,
            cache=dirs.user_cache_path,
            logs=dirs.user_log_path,
        )

    @classmethod
    def below(cls, root: Path) -> "Paths":
        return cls(config=root / "config", data=root / "data", cache=root / "cache", logs=root / "logs")

    @property
    def config_file(self) -> Path:
        return self.config / "config.yaml"

    @property
    def models(self) -> Path:
        """Where the starter model and downloads go."""
        return self.data / "models"

    @property
    def conversations(self) -> Path:
        return self.data / "conversations.db"

    @property
    def history(self) -> Path:
        """Measured speeds of the models."""
        return self.data / "history.json"

    @property
    def memory(self) -> Path:
        """What the models' workers were measured to need."""
        return self.data / "memory.json"

    def create(self) -> "Paths":
        """Make the folders. Raises OSError where that is not allowed."""
        for folder in (self.config, self.data, self.models, self.cache, self.logs):
            folder.mkdir(parents=True, exist_ok=True)
        return self
