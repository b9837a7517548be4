"""The live memory plot. It imports pyqtgraph and numpy: import it on first show only. UI thread only."""

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor

from laya_desktop.core.events import MemorySample
from laya_desktop.ui import theme
from laya_desktop.ui.session_log import SAMPLE_SECONDS

_GIB = 1024**3
_BANDS = ("accent", "ok", "warn", "danger")


class _GigabyteAxis(pg.AxisItem):
    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [f"{value:g} GB" for value in values]


class MemoryPlot(pg.PlotWidget):
    """Models stacked, all memory in use as a line, the reserve as a dashed line."""

    def __init__(self) -> None:
        super().__init__(enableMenu=False, axisItems={"left": _GigabyteAxis("left")})
        self._samples: Sequence[MemorySample] = ()
        self._order: list[str] = []
        self._times = ("", "", "")
        item = self.getPlotItem()
        item.hideButtons()
        # pyqtgraph makes this menu without a parent, so that it would outlive the window.
        item.ctrlMenu.setParent(self, item.ctrlMenu.windowFlags())
        item.setMouseEnabled(x=False, y=False)
        item.setXRange(-SAMPLE_SECONDS, 0, padding=0)
        item.layout.setContentsMargins(0, theme.S1, theme.S3, 0)
        self.setMinimumHeight(180)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        theme.notifier().changed.connect(self._redraw)

    def sizeHint(self) -> QSize:
        return QSize(400, 200)

    def set_times(self, start: str, middle: str, end: str) -> None:
        """Words below the plot."""
        self._times = (start, middle, end)
        self._redraw()

    def show_samples(self, samples: Sequence[MemorySample]) -> None:
        """Draw the samples; the newest is at the right edge."""
        self._samples = samples
        for name in samples[-1].models if samples else ():
            if name not in self._order:
                self._order.append(name)
        self._redraw()

    def token_of(self, model: str) -> str:
        """The colour token of a model's band, for the table beside the plot."""
        position = self._order.index(model) if model in self._order else 0
        return _BANDS[position % len(_BANDS)]

    def _redraw(self) -> None:
        item, tokens = self.getPlotItem(), theme.current()
        self.setBackground(tokens.panel)
        item.clear()
        self._style_axes()
        if not self._samples:
            return
        newest = self._samples[-1]
        x = np.array([sample.at - newest.at for sample in self._samples])
        base = np.zeros(len(x))
        for name in self._order:
            band = np.array([sample.models.get(name, 0) / _GIB for sample in self._samples])
            if band.any():
                colour = tokens.color(self.token_of(name))
                colour.setAlphaF(0.5)
                self._add_band(x, base, base + band, colour)
                base = base + band
        used = np.array([sample.used / _GIB for sample in self._samples])
        item.addItem(pg.PlotCurveItem(x, used, pen=pg.mkPen(tokens.text, width=1.8), antialias=True))
        pen = pg.mkPen(tokens.danger, width=1, style=Qt.PenStyle.DashLine)
        item.addItem(pg.InfiniteLine((newest.limit - newest.reserved) / _GIB, 0, pen))
        item.setYRange(0, newest.limit / _GIB, padding=0.02)

    def _add_band(self, x: np.ndarray, low: np.ndarray, high: np.ndarray, colour: QColor) -> None:
        lower, upper = pg.PlotCurveItem(x, low, pen=None), pg.PlotCurveItem(x, high, pen=None)
        for curve in (lower, upper, pg.FillBetweenItem(lower, upper, brush=colour)):
            self.getPlotItem().addItem(curve)

    def _style_axes(self) -> None:
        tokens = theme.current()
        font = theme.font(theme.SMALL)
        for name in ("left", "bottom"):
            axis = self.getPlotItem().getAxis(name)
            axis.setPen(pg.mkPen(tokens.line))
            axis.setTextPen(pg.mkPen(tokens.muted))
            axis.setTickFont(font)
            axis.setStyle(tickLength=0, maxTickLevel=0)
        half = SAMPLE_SECONDS / 2
        ticks = zip((-2 * half + 4, -half, -2), self._times, strict=True)
        self.getPlotItem().getAxis("bottom").setTicks([list(ticks)])
