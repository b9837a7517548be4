"""The names that clients may use for models."""

from laya_desktop.core.errors import ErrorCode
from laya_desktop.core.types import AUTO_MODEL
from laya_desktop.engine.handle import EngineHandle
from laya_desktop.server.errors import ApiError

_SHOWN_CHARACTERS = 100
_FILE_SUFFIXES = (".gguf", ".safetensors")


def served_names(handle: EngineHandle) -> list[str]:
    """Every model in config order. The config names them before the engine has looked at their files; the
    engine knows those that no config names, such as the starter model."""
    configured = (entry.name for entry in handle.config.models)
    return list(dict.fromkeys([*configured, *(model.name for model in handle.models)]))


def resolve(handle: EngineHandle, name: str) -> str:
    """The model that `name` stands for: itself, or the one that has it as an alias.

    Never looks at the file system. Raises ApiError 404 for any other name.
    """
    names = served_names(handle)
    if name == AUTO_MODEL or name in names:
        return name
    if entry := handle.config.find_model(name):
        return entry.name
    shown = name if len(name) <= _SHOWN_CHARACTERS else name[:_SHOWN_CHARACTERS] + "…"
    raise ApiError(
        404,
        f"There is no model '{shown}'.{_hint(handle, name, names)} "
        f"Models: {', '.join([*names, AUTO_MODEL])}.",
        param="model",
        code=ErrorCode.MODEL_NOT_FOUND.value,
    )


def _hint(handle: EngineHandle, name: str, names: list[str]) -> str:
    for model in handle.models:
        if model.path == name:
            return f" Ask for a model by its name, which is '{model.name}', not by its path."
    if name.startswith(("/", "\\", "~", ".")) or "\\" in name or name.lower().endswith(_FILE_SUFFIXES):
        return " Ask for a model by its name, not by its path."
    for known in names:
        if known.casefold() == name.casefold():
            return f" Did you mean '{known}'?"
    return ""
