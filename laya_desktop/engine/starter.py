"""The starter model: what the app answers with before anybody registered a model."""

import json

from laya_desktop.config.schema import ModelEntry
from laya_desktop.core.paths import Paths
from laya_desktop.core.resources import resource


def starter_models(paths: Paths) -> tuple[ModelEntry, ...]:
    """The starter models of `resources/starter_models.json` that lie in the models folder."""
    listed = json.loads(resource("starter_models.json").read_text(encoding="utf-8"))
    return tuple(
        ModelEntry(name=item["name"], path=str(paths.models / item["file"]))
        for item in listed
        if (paths.models / item["file"]).is_file()
    )
