"""The charts as Vega-Lite specs, made with Altair; each is a form that the page fills with the rows of a pool.

Colours are mid-tones that stand out at three to one on a light and on a dark ground, so one spec serves both; lines
differ by their dashes too. Text and grid take their colours from the stylesheet.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import altair as alt

ROWS = "rows"
_BLUE, _ORANGE, _TEAL, _GREY, _RED = "#2f7de1", "#c96a00", "#0b8f7d", "#76839a", "#d9443a"
_HEIGHT = 180
_STROKES = alt.Legend(title=None, symbolType="stroke", symbolSize=260, symbolStrokeWidth=2.5)
_CLOCK = {"year": "%Y", "month": "%b", "date": "%d %b", "day": "%d %b", "hours": "%H:%M", "minutes": "%H:%M"}

# A chart is drawn where any of its rows has any of these; else the page says that nothing was measured.
NEEDS = {
    "wait": ("median",),
    "ours": ("page", "submit", "verify"),
    "rate": ("rate",),
    "repeats": ("repeated",),
    "spread-wait": ("share",),
    "spread-ours": ("share",),
    "timeline": ("count",),
}
# What the page writes as it writes all numbers of that kind, by its title in a tip.
TOLD = {
    **dict.fromkeys(("median", "P90", "P99", "page", "submit", "verify", "from", "to"), "seconds"),
    **dict.fromkeys(("accepted", "at least", "at most", "repeated", "share"), "percent"),
}
_FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


@cache
def specs() -> dict[str, dict[str, Any]]:
    """Return the spec of each kind of chart, without rows; the caller leaves them as they are."""
    charts = {
        "wait": _lines({"median": _BLUE, "P90": _ORANGE, "P99": _GREY}, attempts="waits"),
        "ours": _lines({"page": _BLUE, "submit": _ORANGE, "verify": _TEAL}, attempts="attempts"),
        "rate": _rate(),
        "repeats": _repeats(),
        "spread-wait": _spread(),
        "spread-ours": _spread(),
        "timeline": _timeline(),
    }
    return {name: _plain(chart) for name, chart in charts.items()}


def _plain(chart: Any) -> dict[str, Any]:
    """Return the spec as a dict that names no address and sizes itself to its place."""
    styled = (
        chart.properties(width="container", autosize=alt.AutoSizeParams(type="fit", contains="padding"))
        .configure(font=_FONT, background="transparent", aria=False)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal", labelLimit=110, ticks=False)
        .configure_legend(orient="top", title=None, labelFontSize=12, offset=4)
    )
    spec: dict[str, Any] = styled.to_dict()
    spec.pop("$schema", None)
    return spec


def _release() -> alt.X:
    axis = alt.Axis(title=None, labelAngle=-35, labelOverlap="greedy", grid=False, labelSeparation=6)
    return alt.X("release:O", sort=None, axis=axis)


def _tips(*shown: tuple[str, str]) -> list[alt.Tooltip]:
    """Return the fields of a tip, the release first; each is (field, title), a count unless `TOLD` has its title."""
    fields = [alt.Tooltip("release:N", title="release")]
    for field, title in shown:
        # Nominal: the page gets the number as it is.
        told = title in TOLD
        fields.append(
            alt.Tooltip(f"{field}:N", title=title) if told else alt.Tooltip(f"{field}:Q", title=title, format=",d")
        )
    return fields


def _lines(colours: dict[str, str], *, attempts: str) -> Any:
    """Return seconds by release, a line for each of the fields."""
    names = list(colours)
    dashes = [[1, 0], [6, 3], [2, 2]][: len(names)]
    scale = alt.Scale(domain=names, range=list(colours.values()))
    base = (
        alt.Chart(alt.NamedData(name=ROWS))
        .transform_fold([*names], as_=["line", "seconds"])
        .transform_filter("isValid(datum.seconds)")
        .encode(
            x=_release(),
            y=alt.Y("seconds:Q", title="seconds", axis=alt.Axis(tickCount=5), scale=alt.Scale(zero=True)),
            color=alt.Color("line:N", scale=scale, sort=names, legend=_STROKES),
            tooltip=_tips(
                *((name, name) for name in names),
                (attempts, "attempts"),
                ("runs", "runs"),
            ),
        )
    )
    dashed = alt.StrokeDash("line:N", scale=alt.Scale(domain=names, range=dashes), sort=names, legend=_STROKES)
    line = base.mark_line(strokeWidth=2).encode(strokeDash=dashed)
    return alt.layer(line, base.mark_circle(size=34, opacity=1)).properties(height=_HEIGHT)


def _rate() -> Any:
    """Return the verification rate by release with its interval."""
    axis = alt.Axis(format=".0%", tickCount=5)
    base = (
        alt.Chart(alt.NamedData(name=ROWS))
        .transform_filter("isValid(datum.rate)")
        .encode(
            x=_release(),
            tooltip=_tips(
                ("rate", "accepted"),
                ("low", "at least"),
                ("high", "at most"),
                ("judged", "judged"),
                ("runs", "runs"),
            ),
        )
    )
    scale = alt.Scale(zero=False, domainMax=1, nice=False)
    low = alt.Y("low:Q", title="accepted", axis=axis, scale=scale)
    band = base.mark_area(color=_BLUE, opacity=0.18).encode(y=low, y2="high:Q")
    bars = base.mark_rule(color=_GREY, strokeWidth=2, opacity=0.6).encode(y=low, y2="high:Q")
    rate = alt.Y("rate:Q", title="accepted", axis=axis, scale=scale)
    line = base.mark_line(color=_BLUE, strokeWidth=2).encode(y=rate)
    return alt.layer(band, bars, line, base.mark_circle(color=_BLUE, size=34, opacity=1).encode(y=rate)).properties(
        height=_HEIGHT
    )


def _repeats() -> Any:
    """Return the share of repeated solves by release."""
    return (
        alt.Chart(alt.NamedData(name=ROWS))
        .transform_filter("isValid(datum.repeated)")
        .mark_bar(color=_ORANGE, width=alt.RelativeBandSize(band=0.45))
        .encode(
            x=_release(),
            y=alt.Y("repeated:Q", title="repeated", axis=alt.Axis(format=".1~%", tickCount=5)),
            tooltip=_tips(("repeated", "repeated"), ("submits", "submits"), ("keys", "tokens")),
        )
        .properties(height=_HEIGHT)
    )


def _spread() -> Any:
    """Return the shares of attempts by seconds, the newest release over its baseline."""
    names = ["baseline", "this release"]
    return (
        alt.Chart(alt.NamedData(name=ROWS))
        .mark_rect()
        .encode(
            x=alt.X(
                "start:Q",
                title="seconds",
                axis=alt.Axis(grid=False, tickCount=8),
                scale=alt.Scale(zero=False, nice=False),
            ),
            x2="end:Q",
            y=alt.Y(
                "share:Q",
                title="share of attempts",
                axis=alt.Axis(format=".0%", tickCount=5),
                scale=alt.Scale(zero=True),
            ),
            y2=alt.datum(0),
            color=alt.Color("which:N", scale=alt.Scale(domain=names, range=[_GREY, _BLUE]), sort=names),
            opacity=alt.Opacity("which:N", scale=alt.Scale(domain=names, range=[0.55, 0.6]), legend=None, sort=names),
            tooltip=_tips(
                ("start", "from"),
                ("end", "to"),
                ("share", "share"),
                ("count", "attempts"),
            ),
        )
        .properties(height=_HEIGHT)
    )


def _timeline() -> Any:
    """Return what happened over time, a lane for each kind; the page makes it as high as it has lanes."""
    levels = {"bad": _RED, "warn": _ORANGE, "good": _TEAL, "unknown": _GREY}
    return (
        alt.Chart(alt.NamedData(name=ROWS))
        .mark_circle(opacity=0.85)
        .encode(
            x=alt.X(
                "start:T",
                title=None,
                scale=alt.Scale(type="utc", padding=16),
                axis=alt.Axis(grid=True, tickCount=7, labelOverlap="greedy", format=_CLOCK),
            ),
            y=alt.Y("kind:N", title=None, sort=None, axis=alt.Axis(grid=True, labelLimit=150)),
            size=alt.Size("count:Q", scale=alt.Scale(type="sqrt", range=[50, 500]), legend=None),
            color=alt.Color("level:N", scale=alt.Scale(domain=list(levels), range=list(levels.values())), legend=None),
            tooltip=[
                alt.Tooltip("when:N", title="when, UTC"),
                alt.Tooltip("kind:N", title="kind"),
                alt.Tooltip("env:N", title="environment"),
                alt.Tooltip("what:N", title="what"),
                alt.Tooltip("count:Q", title="times", format=",d"),
            ],
        )
        .properties(height=_HEIGHT)
    )
