"""One look for the figures of all lessons: readable at 1280 pixels, colours that colour-blind readers tell apart."""

from __future__ import annotations

# Okabe and Ito, Color Universal Design (2008)
COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "red": "#D55E00",
    "sky": "#56B4E9",
    "purple": "#CC79A7",
    "yellow": "#F0E442",
    "black": "#000000",
}


def style() -> dict[str, str]:
    """Set matplotlib's defaults for a lesson; returns the colours by name."""
    import matplotlib as mpl  # only figures need it

    mpl.rcParams.update({
        "figure.figsize": (10, 5),
        "figure.dpi": 110,
        "figure.constrained_layout.use": True,
        "axes.prop_cycle": mpl.cycler(color=list(COLOURS.values())),
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.titlesize": 13,
        "axes.labelsize": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "lines.linewidth": 2,
        "legend.frameon": False,
        "legend.fontsize": 11,
        "xtick.labelsize": 11,
        "ytick.labelsize": 11,
    })  # fmt: skip
    return COLOURS
