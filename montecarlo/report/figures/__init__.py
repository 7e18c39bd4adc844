"""The figures of the report: tables of results in, SVG without words out.

Axes and legends carry symbols and numbers only, so that one set serves all languages.
A new figure is one builder and one entry in `FIGURES`.
"""

from montecarlo.report.figures.card import build_report_card
from montecarlo.report.figures.drawing import FigureSpec, render_svg
from montecarlo.report.figures.gradients import build_gradient_ratio, build_gradients
from montecarlo.report.figures.judgement import build_thresholds, build_z_scores
from montecarlo.report.figures.maps import build_saturation
from montecarlo.report.figures.scores import build_largest_score, build_variance
from montecarlo.report.figures.weights import (
    build_effective_keys,
    build_weight_max,
    build_weights_by_rank,
)

__all__ = ["FIGURES", "FigureSpec", "render_svg"]

FIGURES = {
    spec.id: spec
    for spec in (
        FigureSpec("variance", build_variance),
        FigureSpec("weights-by-rank", build_weights_by_rank),
        FigureSpec("effective-keys", build_effective_keys),
        FigureSpec("weight-max", build_weight_max),
        FigureSpec("saturation", build_saturation),
        FigureSpec("largest-score", build_largest_score),
        FigureSpec("gradients", build_gradients),
        FigureSpec("gradient-ratio", build_gradient_ratio),
        FigureSpec("thresholds", build_thresholds),
        FigureSpec("z-scores", build_z_scores),
        FigureSpec("report-card", build_report_card),
    )
}
