"""The window's language: English in the source, translations in resources/translations. UI thread only."""

from typing import Literal

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from laya_desktop.core.resources import resource

Language = Literal["system", "en", "zh_CN"]

_installed: list[QTranslator] = []


def resolve(language: Language) -> str:
    """The language to show: `system` becomes the first of the user's languages that we have."""
    if language != "system":
        return language
    for name in QLocale.system().uiLanguages():
        if name.startswith("zh"):
            return "zh_CN"
        if name.startswith("en"):
            return "en"
    return "en"


def apply(app: QCoreApplication, language: Language) -> None:
    """Switch the app to `language`; every widget gets LanguageChange."""
    chosen = resolve(language)
    QLocale.setDefault(QLocale(chosen))
    for translator in _installed:
        app.removeTranslator(translator)
    _installed.clear()
    for name, folder in (
        ("qtbase", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)),
        ("laya", str(resource("translations"))),
    ):
        translator = QTranslator(app)
        if translator.load(f"{name}_{chosen}", folder):
            app.installTranslator(translator)
            _installed.append(translator)
