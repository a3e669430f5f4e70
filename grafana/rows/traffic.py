"""The row about requests for predictions."""

from grafana.panels import FULL, POPULATION, THIRD, Query, plot_series, show_numbers
from grafana.sdk import stat, timeseries

_PREDICTIONS = 'route=~"/v1/(predict|logits)"'
"""Label matcher of requests for predictions; others would hide their failures and latency."""
_OF_A_DAY = f"increase(lifelong_requests_total{{{_PREDICTIONS}"
_RATE = f"sum by (label) (rate(lifelong_predictions_total{{{POPULATION}}}[$__rate_interval]))"
"""Decisions per second by label."""


def build_panels() -> list[timeseries.Panel | stat.Panel]:
    """How many predictions are answered, how fast, and with which decisions."""
    return [
        show_numbers(
            "Predictions within a day",
            "Requests to /v1/predict and /v1/logits within 24 hours, of all instances. failed: answered with 5xx, or"
            " not at all. rejected: the client's mistake (4xx). Probes, scrapes and other routes do not count.",
            [
                Query(f'sum({_OF_A_DAY},status=~"2.."}}[1d]))', "answered"),
                Query(f'sum({_OF_A_DAY},status=~"4.."}}[1d]))', "rejected"),
                Query(f'sum({_OF_A_DAY},status=~"5..|none"}}[1d]))', "failed"),
            ],
            unit="short",
            thresholds=[(None, "text")],
            width=FULL,
        ),
        plot_series(
            "Predictions by status",
            "Requests to /v1/predict and /v1/logits per minute by HTTP status; probes, scrapes and other routes do not"
            " count. 4xx are the clients' mistakes; 5xx and none (no answer) are ours.",
            [
                Query(
                    f"60 * sum by (status) (rate(lifelong_requests_total{{{_PREDICTIONS}}}[$__rate_interval]))",
                    "{{status}}",
                )
            ],
            unit="reqpm",
            width=THIRD,
            minimum=0,
            drawn="areas",
        ),
        plot_series(
            "Latency of predictions",
            "Time from the arrival of a request to /v1/predict or /v1/logits to its answer, failures included: half,"
            " 95 % and 99 % are faster. Empty while there are no such requests.",
            [
                Query(
                    f"histogram_quantile({quantile}, sum by (le)"
                    f" (rate(lifelong_request_seconds_bucket{{{_PREDICTIONS}}}[$__rate_interval])))",
                    name,
                )
                for quantile, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
            ],
            unit="s",
            width=THIRD,
            minimum=0,
        ),
        plot_series(
            "Decisions per class",
            "Share of each decision among those made for the chosen population. It is not the prevalence: a"
            " classifier's mistakes bias it, which is why the monitor estimates the prevalence instead of counting"
            " decisions.",
            [Query(f"{_RATE} / on () group_left sum({_RATE})", "{{label}}")],
            unit="percentunit",
            width=THIRD,
            minimum=0,
            maximum=1,
            drawn="areas",
        ),
    ]
