"""The row about the prevalence: the estimate against what the head assumes."""

from grafana.panels import (
    FULL,
    POPULATION,
    Query,
    dashed_style,
    draw_band,
    plot_series,
    query_population,
)
from grafana.sdk import timeseries

_CLASSES = f'{{{POPULATION},class=~"$class"}}'
"""Label matchers of the chosen classes of the population."""


def build_panels() -> list[timeseries.Panel]:
    """Estimate and assumption, one panel per class; then shift and window."""
    return [
        draw_band(
            plot_series(
                "Prevalence of $class",
                "Line and band: share of the class among the recent predictions, estimated without labels, with"
                " its confidence interval. Dashed: what the active head assumes. A dashed line outside the band"
                " means that the head decides for another class mix than the present one; the next swap should"
                " close the gap.",
                [
                    Query(f"max by (class) (lifelong_prevalence_estimate{_CLASSES})", "estimate"),
                    Query(f"min by (class) (lifelong_prevalence_low{_CLASSES})", "low"),
                    Query(f"max by (class) (lifelong_prevalence_high{_CLASSES})", "high"),
                    Query(f"max by (class) (lifelong_prevalence_assumed{_CLASSES})", "assumed by the head"),
                ],
                unit="percentunit",
                width=FULL,
                minimum=0,
                maximum=1,
            )
            .repeat("class")
            .repeat_direction("h")
            .max_per_row(4)
        ).override_by_name("assumed by the head", dashed_style("orange")),
        plot_series(
            "Shift size",
            "L1 distance between the estimated prevalence and what the head judged by the cycle assumed: 0 is"
            " no shift, 2 the largest possible. A peak that is followed by a swap is the loop at work; a plateau"
            " means that no swap was worth it or that cycles refuse.",
            [query_population("lifelong_prevalence_shift_l1", "L1 distance")],
            unit="none",
            minimum=0,
            drawn="steps",
        ),
        plot_series(
            "Window size",
            "Predictions that the last cycle looked at, and those it left out because their logits are not finite,"
            " all equal, or of another number of classes. Few samples give wide bands, and below the policy's minimum"
            " the head is always kept.",
            [
                query_population("lifelong_window_samples", "predictions"),
                query_population("lifelong_quarantined_predictions", "left out"),
            ],
            unit="short",
            minimum=0,
            drawn="steps",
        ),
    ]
