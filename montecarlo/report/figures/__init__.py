"""The figures of the report: tables of results in, SVG without words out.

Axes and legends carry symbols and numbers only, so that one set serves all languages.
A new figure is one builder and one entry in `FIGURES`.
"""

from montecarlo.report.figures.attention import build_attention
from montecarlo.report.figures.audit import build_audit
from montecarlo.report.figures.distribution import build_score_distribution
from montecarlo.report.figures.drawing.panels import FigureSpec, render_svg
from montecarlo.report.figures.formats import build_formats
from montecarlo.report.figures.gradients import build_gradient_ratio, build_gradients
from montecarlo.report.figures.judging.card import build_report_card
from montecarlo.report.figures.judging.judgement import build_thresholds, build_z_scores
from montecarlo.report.figures.judging.texts import build_texts
from montecarlo.report.figures.maps import build_entropy, build_saturation
from montecarlo.report.figures.planted import build_planted
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
        FigureSpec(
            "attention",
            build_attention,
            "weights as drawn, and the share of saturated rows",
        ),
        FigureSpec(
            "variance",
            build_variance,
            "variance of the scores against d_k under four divisors",
        ),
        FigureSpec(
            "weights-by-rank",
            build_weights_by_rank,
            "weights of a row from the largest down",
        ),
        FigureSpec(
            "effective-keys",
            build_effective_keys,
            "keys that a row spreads over, against d_k",
        ),
        FigureSpec(
            "weight-max", build_weight_max, "largest weight of a row, against d_k"
        ),
        FigureSpec(
            "saturation", build_saturation, "map of the largest weight over d_k and n"
        ),
        FigureSpec(
            "largest-score", build_largest_score, "largest score of a row against n"
        ),
        FigureSpec(
            "gradients",
            build_gradients,
            "four gradients: mean, median and lowest tenth",
        ),
        FigureSpec(
            "gradient-ratio",
            build_gradient_ratio,
            "gradients without the divisor over those with it",
        ),
        FigureSpec(
            "score-distribution",
            build_score_distribution,
            "distribution of the scaled score against the normal distribution",
        ),
        FigureSpec(
            "entropy",
            build_entropy,
            "map of entropy and effective keys over d_k and n",
        ),
        FigureSpec(
            "planted",
            build_planted,
            "planted key by alignment: its weight and its rank",
        ),
        FigureSpec(
            "formats",
            build_formats,
            "overflow and resolution by number format",
        ),
        FigureSpec(
            "audit",
            build_audit,
            "variances that initialisations give",
        ),
        FigureSpec(
            "texts",
            build_texts,
            "verdicts by text",
        ),
        FigureSpec(
            "thresholds",
            build_thresholds,
            "outcomes against the threshold of each vague word",
        ),
        FigureSpec(
            "z-scores",
            build_z_scores,
            "estimates against exact theory",
        ),
        FigureSpec(
            "report-card",
            build_report_card,
            "actual error rates of the judge, and its power",
        ),
    )
}
