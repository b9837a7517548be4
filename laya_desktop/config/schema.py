"""Every setting of ``config.yaml``: its type, bounds, default, meaning and how a change to it takes effect.

A settings page and a reference can be generated from this module. All models are immutable.
Each field carries two extras in its JSON schema:

- ``apply``: ``live`` (takes effect at once), ``reload`` (the model is loaded again) or ``restart``.
- ``effective``: False while this version accepts the field without acting on it, or the list of those
  values that it does act on. The store reports a field that is set and has no effect.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from laya_desktop.config.fields import (
    Integer,
    Name,
    Names,
    Number,
    OptionalInteger,
    OptionalNumber,
    OptionalText,
    Section,
    Switch,
    Text,
    Words,
    empty_is_none,
    null_is_empty,
    setting,
)
from laya_desktop.config.files import read_file
from laya_desktop.config.model_path import guess_backend, resolve
from laya_desktop.config.routing import Condition, RouterConfig, Rule, Strategy, Target
from laya_desktop.config.scalar import literal, value_of
from laya_desktop.core.errors import ErrorCode, LayaError

__all__ = [
    "Backend",
    "Condition",
    "Config",
    "ExecutorConfig",
    "HubConfig",
    "MemoryConfig",
    "ModelEntry",
    "RouterConfig",
    "Rule",
    "SchedulerConfig",
    "ServerConfig",
    "Strategy",
    "Target",
    "UiConfig",
]

_DEVICE = r"^(auto|cpu|cuda(:\d{1,2})?|metal|mps)$"
_TEMPLATE_SUFFIXES = (".jinja", ".jinja2", ".j2")
_MAX_TEMPLATE_BYTES = 1_000_000


class Backend(StrEnum):
    """What runs a model."""

    GGUF = "gguf"
    MLX = "mlx"
    HF = "hf"
    OPENAI = "openai"


_BACKEND_ALIASES = {"pytorch": Backend.HF, "transformers": Backend.HF}


def _layers(value: object) -> object:
    plain = value_of(value)
    if plain == "auto" or (type(plain) is int and 0 <= plain <= 1000):
        return plain
    raise PydanticCustomError("layers", "expected a number of layers from 0 to 1000, or auto")


Layers = Annotated[int | Literal["auto"], Field(union_mode="left_to_right"), BeforeValidator(_layers)]
Template = Annotated[str, BeforeValidator(literal), Field(max_length=200_000)]


class ModelEntry(Section):
    """One model."""

    name: Name = setting(..., "The name that clients use.", "reload")
    path: Annotated[Text, Field(min_length=1)] = setting(
        ...,
        "A model file, a folder, a hub id (owner/name) or a server's address. Relative paths start at the "
        "config file's folder; ~ is the home folder.",
        "reload",
    )
    backend: Backend = setting(
        Backend.GGUF, "What runs the model; guessed from the path when absent.", "reload", effective=["gguf"]
    )
    device: str = setting(
        "auto",
        "auto, cpu, cuda, cuda:0, metal or mps.",
        "reload",
        effective=["auto", "cpu"],
        pattern=_DEVICE,
    )
    priority: Integer = setting(10, "The lower number is preferred.", "live", ge=0, le=1000)
    gpu_memory_limit_gb: OptionalNumber = setting(
        None, "Graphics memory that this model may use, in GB.", "reload", effective=False, gt=0, le=4096
    )
    gpu_layers: Layers = setting("auto", "Layers that run on the GPU; auto takes as many as fit.", "reload")
    keep_in_memory: Switch = setting(
        False, "Loaded when the app starts, and not unloaded for being idle.", "live"
    )
    warmup: Switch = setting(False, "Load this model when the app starts.", "restart")
    idle_unload_s: OptionalNumber = setting(
        None,
        "Seconds after its last answer until this model is unloaded; 0 unloads it at once. "
        "executor.idle_unload_s if absent. A model with keep_in_memory stays.",
        "live",
        ge=0,
        le=31_536_000,
    )
    aliases: Names = setting((), "Further names for this model.", "live", max_length=50)
    tags: Words = setting((), "Words that rules can refer to.", "live", max_length=50)
    context_tokens: OptionalInteger = setting(
        None,
        "Context tokens of one stream of this model; executor.stream_buffer if absent.",
        "reload",
        ge=256,
        le=1_048_576,
    )
    chat_template: Annotated[Template | None, BeforeValidator(empty_is_none)] = setting(
        None, "A Jinja chat template, or the path of a .jinja file; the model's own if absent.", "reload"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: object, info: ValidationInfo) -> object:
        """Resolve paths and guess the backend. The folder of the file comes in the validation context."""
        if not isinstance(data, dict):
            return data
        data = dict(data)
        folder: Path | None = (info.context or {}).get("folder")
        path, template, backend = data.get("path"), data.get("chat_template"), data.get("backend")
        if isinstance(backend, str):
            data["backend"] = _BACKEND_ALIASES.get(backend, backend)
        elif isinstance(path, str):
            data["backend"] = guess_backend(path)
        if isinstance(path, str) and path:
            data["path"] = resolve(str(path), folder)
        if isinstance(template, str) and _is_template_file(template):
            data["chat_template"] = resolve(str(template), folder)
        return data

    def template_source(self) -> str | None:
        """The Jinja source of `chat_template`, read from its file if it names one. May block.

        Raises LayaError (chat_template_error) when the file cannot be read.
        """
        if self.chat_template is None or not _is_template_file(self.chat_template):
            return self.chat_template
        try:
            return read_file(Path(self.chat_template), _MAX_TEMPLATE_BYTES).decode("utf-8-sig")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise LayaError(
                ErrorCode.CHAT_TEMPLATE_ERROR,
                f"The chat template {self.chat_template} of model {self.name} cannot be read: {reason}.",
                hint="Correct the path in the model's settings.",
            ) from error


def _is_template_file(text: str) -> bool:
    return "\n" not in text and text.endswith(_TEMPLATE_SUFFIXES)


class ExecutorConfig(Section):
    """How models run."""

    max_batch_size: Integer = setting(4, "Streams that one model decodes together.", "reload", ge=1, le=64)
    stream_buffer: Integer = setting(
        4096,
        "Context tokens that one stream may use. The KV cache is sized from it when a model is loaded.",
        "reload",
        ge=256,
        le=1_048_576,
    )
    kv_cache_mode: Literal["bounded", "elastic"] = setting(
        "bounded",
        "bounded: the KV cache is allocated when a model is loaded and stays; elastic: it grows in steps.",
        "reload",
        effective=["bounded"],
    )
    kv_cache_limit_gb: OptionalNumber = setting(
        None, "Upper limit of one model's KV cache, in GB.", "reload", effective=False, gt=0, le=4096
    )
    kv_overflow: Literal["error", "truncate"] = setting(
        "error",
        "What happens to a prompt that does not fit the context: refuse it, or drop its oldest turns.",
        "live",
        effective=["error"],
    )
    idle_unload_s: OptionalNumber = setting(
        None,
        "Seconds after its last answer until an idle model is unloaded; 0 unloads it at once, absent never.",
        "live",
        ge=0,
        le=31_536_000,
    )
    threads: OptionalInteger = setting(
        None,
        "Threads that one model computes with; the number of physical cores if absent.",
        "reload",
        ge=1,
        le=512,
    )


class SchedulerConfig(Section):
    """When requests run."""

    max_concurrent_requests: Integer = setting(
        8, "Requests that run at the same time, over all models.", "live", ge=1, le=1024
    )
    queue_timeout_ms: Integer = setting(
        30_000,
        "Milliseconds that a request waits for a slot before it fails; loading has its own limit.",
        "live",
        ge=0,
        le=3_600_000,
    )
    max_queue: Integer = setting(
        64, "Requests that may wait; further ones are refused.", "live", ge=0, le=10_000
    )
    load_timeout_s: Number = setting(300.0, "Seconds that loading a model may take.", "live", ge=1, le=86_400)


class MemoryConfig(Section):
    """How memory is protected."""

    enable_offload: Switch = setting(
        True, "Unload idle models when free memory runs low.", "live", effective=False
    )
    offload_threshold_gb: OptionalNumber = setting(
        None,
        "Idle models are unloaded below this much free memory, in GB; if absent, the smaller of 12 GB and "
        "15 % of the memory.",
        "live",
        effective=False,
        ge=0,
        le=65_536,
    )
    emergency_release: Switch = setting(
        True,
        "When memory is about to run out, unload all idle models at once, then end streams.",
        "live",
        effective=False,
    )
    reserved_system_gb: OptionalNumber = setting(
        None,
        "Memory that is never promised to a model, in GB; chosen from the machine's size if absent.",
        "live",
        ge=0,
        le=65_536,
    )


class ServerConfig(Section):
    """The HTTP server with the OpenAI-compatible API."""

    enabled: Switch = setting(True, "Whether the server runs.", "live")
    host: Annotated[Text, Field(min_length=1)] = setting(
        "127.0.0.1",
        "Address to listen on; 127.0.0.1 is this computer only. A server without a window keeps its address.",
        "live",
    )
    port: Integer = setting(
        8080,
        "Port to listen on; 0 takes a free one. A server without a window keeps its port.",
        "live",
        ge=0,
        le=65_535,
    )
    api_keys: Words = setting(
        (),
        "Keys of which clients must send one; none are needed if empty.",
        "live",
        max_length=1000,
        repr=False,
    )
    cors_origins: Words = setting(
        (), "Web pages that may call the server from a browser.", "restart", effective=False
    )
    allow_network: Switch = setting(
        False, "Let other computers connect. Without it only addresses of this computer are used.", "restart"
    )


class UiConfig(Section):
    """The window."""

    language: Literal["system", "en", "zh_CN"] = setting("system", "Language of the window.", "live")
    theme: Literal["system", "light", "dark"] = setting("system", "Colours of the window.", "live")
    text_size: Literal["small", "normal", "large"] = setting(
        "normal", "Size of text in the window.", "live", effective=["normal"]
    )
    shortcut: OptionalText = setting(
        None,
        "Global key combination that opens the quick prompt, such as Ctrl+Alt+Space.",
        "live",
        effective=False,
    )
    close_to_tray: Switch = setting(
        False, "Closing the window leaves the app in the tray.", "live", effective=False
    )


class HubConfig(Section):
    """Where models are downloaded from."""

    endpoint: OptionalText = setting(
        None, "Address of the model hub; huggingface.co if absent.", "live", effective=False
    )
    mirror: OptionalText = setting(None, "Address that is tried when the hub fails.", "live", effective=False)
    proxy: OptionalText = setting(
        None, "Proxy for downloads; the system's setting if absent.", "live", effective=False
    )


class Config(Section):
    """All settings. `Config()` has every default."""

    router: RouterConfig = setting(RouterConfig(), "Which model answers.", "live")
    models: Annotated[tuple[ModelEntry, ...], BeforeValidator(null_is_empty)] = setting(
        (),
        "The models, in the order in which they are shown; the starter model if empty.",
        "live",
        max_length=500,
    )
    executor: ExecutorConfig = setting(ExecutorConfig(), "How models run.", "reload")
    scheduler: SchedulerConfig = setting(SchedulerConfig(), "When requests run.", "live")
    memory: MemoryConfig = setting(MemoryConfig(), "How memory is protected.", "live")
    server: ServerConfig = setting(ServerConfig(), "The HTTP server.", "restart")
    ui: UiConfig = setting(UiConfig(), "The window.", "live")
    hub: HubConfig = setting(HubConfig(), "Where models are downloaded from.", "live")

    def find_model(self, name: str) -> ModelEntry | None:
        """The entry that has this name or alias."""
        return next((entry for entry in self.models if name == entry.name or name in entry.aliases), None)
