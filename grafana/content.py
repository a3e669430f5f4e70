"""The panels of the dashboard, row by row."""

from typing import TypeAlias

from grafana.panels import FULL, HALF, POPULATION, THIRD, Query, colour, lines, number, stacked, steps, style
from grafana.sdk import common, stat, timeseries

Panel: TypeAlias = timeseries.Panel | stat.Panel


def state() -> list[Panel]:
    """Are the processes up, which head serves, and does the monitor get its work done?"""
    return [
        number(
            "Processes",
            "1: Prometheus reaches the process. 0: it is down or its port is wrong; see the alerts"
            " ServiceDown and MonitorDown.",
            [Query('min by (job) (up{job=~"lifelong-.*"})', "{{job}}")],
            unit="short",
            thresholds=[(None, "red"), (1, "green")],
        ),
        number(
            "Active head",
            "Version of the head that serves this population now. It is the environment's own head, or the"
            " model's default head while the environment has none.",
            [Query(f"max by (model, environment) (lifelong_head_version{{{POPULATION}}})", "head")],
            unit="none",
            thresholds=[(None, "blue")],
        ),
        number(
            "Time since the last successful cycle",
            "A cycle that found nothing new to judge counts as successful. Above two intervals an alert"
            " fires: look into the monitor's log.",
            [
                Query(
                    f"time() - max by (model, environment)"
                    f" (lifelong_cycle_last_success_timestamp_seconds{{{POPULATION}}})",
                    "since success",
                ),
                Query("max(lifelong_cycle_interval_seconds)", "interval"),
            ],
            unit="s",
            thresholds=[(None, "text")],
        ),
        number(
            "Mode",
            "What a cycle that wants another head does. auto: it swaps. propose: it asks a person, who approves by"
            " lifelong heads approve. shadow: it only reports.",
            [Query(f"max by (mode) (lifelong_policy_mode{{{POPULATION}}}) == 1", "{{mode}}")],
            unit="none",
            thresholds=[(None, "blue")],
        ),
        number(
            "Head pinned",
            "1: a person holds the head that serves this population, and cycles watch and report but never swap;"
            " lifelong heads list says who and why. 0: cycles may swap.",
            [Query(f"max by (model, environment) (lifelong_head_pinned{{{POPULATION}}})", "pinned")],
            unit="none",
            thresholds=[(None, "green"), (1, "orange")],
        ),
        number(
            "Open proposals",
            "Heads that cycles of all populations propose and nobody has approved yet: lifelong heads proposals. The"
            " next cycle of a population replaces its proposal by a newer one, or withdraws it.",
            [Query("sum(max by (model, environment) (lifelong_proposal_open))", "proposals")],
            unit="none",
            thresholds=[(None, "green"), (1, "orange")],
        ),
    ]


def prevalence() -> list[Panel]:
    """The estimate against what the head assumes: one panel per class, then shift and window."""
    selected = f'{{{POPULATION},class=~"$class"}}'
    band = (
        lines(
            "Prevalence of $class",
            "Line and band: share of the class among the recent predictions, estimated without labels, with"
            " its confidence interval. Dashed: what the active head assumes. A dashed line outside the band"
            " means that the head decides for another class mix than the present one; the next swap should"
            " close the gap.",
            [
                Query(f"max by (class) (lifelong_prevalence_estimate{selected})", "estimate"),
                Query(f"min by (class) (lifelong_prevalence_low{selected})", "low"),
                Query(f"max by (class) (lifelong_prevalence_high{selected})", "high"),
                Query(f"max by (class) (lifelong_prevalence_assumed{selected})", "assumed by the head"),
            ],
            unit="percentunit",
            width=FULL,
            minimum=0,
            maximum=1,
        )
        .repeat("class")
        .repeat_direction("h")
        .max_per_row(4)
        .override_by_name("estimate", style(color=colour("blue"), custom__lineWidth=2))
        .override_by_name("low", style(color=colour("light-blue"), custom__lineWidth=0))
        .override_by_name(
            "high",
            style(
                color=colour("light-blue"),
                custom__lineWidth=0,
                custom__fillBelowTo="low",
                custom__fillOpacity=25,
            ),
        )
        .override_by_name(
            "assumed by the head",
            style(color=colour("orange"), custom__lineStyle={"fill": "dash", "dash": [8, 6]}),
        )
    )
    shift = lines(
        "Shift size",
        "L1 distance between the estimated prevalence and what the head judged by the cycle assumed: 0 is"
        " no shift, 2 the largest possible. A peak that is followed by a swap is the loop at work; a plateau"
        " means that no swap was worth it or that cycles refuse.",
        [Query(f"max by (model, environment) (lifelong_prevalence_shift_l1{{{POPULATION}}})", "L1 distance")],
        unit="none",
        minimum=0,
    )
    window = lines(
        "Window size",
        "Predictions that the last cycle looked at, and those it left out because their logits are not finite, all"
        " equal, or of another number of classes. Few samples give wide bands, and below the policy's minimum the head"
        " is always kept.",
        [
            Query(f"max by (model, environment) (lifelong_window_samples{{{POPULATION}}})", "predictions"),
            Query(
                f"max by (model, environment) (lifelong_quarantined_predictions{{{POPULATION}}})", "left out"
            ),
        ],
        unit="short",
        minimum=0,
    )
    return [band, steps(shift), steps(window)]


def evidence() -> list[Panel]:
    """What the tests of a cycle said, and what a swap was worth."""
    shift = lines(
        "Evidence of a shift",
        "How strongly all samples since the head came in force, each counted once, speak against the prevalence that it"
        " assumes (natural logarithm of the e-value). At the alarm line the prevalence counts as shifted; while"
        " it stays in the tolerated zone that happens once in 20 years of hourly cycles. It starts anew with"
        " every change of head, policy or calibration set.",
        [
            Query(f"max by (model, environment) (lifelong_shift_log_e_value{{{POPULATION}}})", "evidence"),
            Query(f"max by (model, environment) (lifelong_shift_log_e_value_alarm{{{POPULATION}}})", "alarm"),
        ],
        unit="none",
        width=HALF,
        minimum=0,
    )
    assumption = lines(
        "Has more changed than the prevalence?",
        "Minus the decimal logarithm of the p-value of 'nothing but the prevalence has changed' in the window of the"
        " last cycle: 2 is a chance of 1 in 100. Above the limit the estimate cannot be trusted, and a cycle that"
        " would swap refuses unless the policy says otherwise.",
        [
            Query(
                f"-log10(clamp_min(min by (model, environment) (lifelong_assumption_p_value{{{POPULATION}}}),"
                " 1e-12))",
                "surprise",
            ),
            Query(
                f"-log10(min by (model, environment) (lifelong_assumption_level{{{POPULATION}}}))", "limit"
            ),
        ],
        unit="none",
        width=HALF,
        minimum=0,
    )
    gain = lines(
        "Expected gain in cost",
        "Drop of the expected cost per decision that the last cycle expected of a refitted head, with its interval,"
        " and what the swap could cost at worst on that window. Empty while nothing speaks for a shift. Costs are in"
        " the units of the task's cost matrix.",
        [
            Query(f"max by (model, environment) (lifelong_expected_gain{{{POPULATION}}})", "gain"),
            Query(f"min by (model, environment) (lifelong_expected_gain_low{{{POPULATION}}})", "low"),
            Query(f"max by (model, environment) (lifelong_expected_gain_high{{{POPULATION}}})", "high"),
            Query(
                f"max by (model, environment) (lifelong_worst_case_cost_increase{{{POPULATION}}})",
                "worst-case cost increase",
            ),
        ],
        unit="none",
        width=HALF,
    )
    probability_gain = lines(
        "Expected gain in probabilities",
        "Drop of the expected log loss per prediction (nats) that the last cycle expected of a refitted head, with its"
        " interval: how much better its probabilities fit the estimated prevalence. 0.7 is the loss of guessing between"
        " two classes. A large enough gain is worth a swap even where the decisions cost about the same.",
        [
            Query(
                f"max by (model, environment) (lifelong_expected_probability_gain{{{POPULATION}}})", "gain"
            ),
            Query(
                f"min by (model, environment) (lifelong_expected_probability_gain_low{{{POPULATION}}})", "low"
            ),
            Query(
                f"max by (model, environment) (lifelong_expected_probability_gain_high{{{POPULATION}}})",
                "high",
            ),
        ],
        unit="none",
        width=HALF,
    )
    return [
        steps(shift).override_by_name(
            "alarm", style(color=colour("red"), custom__lineStyle={"fill": "dash", "dash": [8, 6]})
        ),
        steps(assumption).override_by_name(
            "limit", style(color=colour("red"), custom__lineStyle={"fill": "dash", "dash": [8, 6]})
        ),
        steps(gain),
        steps(probability_gain),
    ]


def cycles() -> list[Panel]:
    """What cycles decided, which heads followed, and how long they took."""
    outcomes = lines(
        "Cycle outcomes",
        "Cycles by outcome in each step of the time axis. keep: the head still fits, or a swap is not worth"
        " it. swap: a refitted head was published, or wanted (mode). refuse: the assumptions do not hold and the"
        " log says why."
        " skip: nothing new to judge. error: see the monitor's log.",
        [
            Query(
                f"sum by (outcome) (increase(lifelong_cycles_total{{{POPULATION}}}[$__rate_interval]))",
                "{{outcome}}",
            )
        ],
        unit="short",
        width=THIRD,
        minimum=0,
    )
    version = lines(
        "Head version",
        "Version of the head that serves this population. Every step is a swap, a publication or a"
        " roll-back; the audit log names who did it.",
        [Query(f"max by (model, environment) (lifelong_head_version{{{POPULATION}}})", "head version")],
        unit="none",
        width=THIRD,
        minimum=0,
    )
    affected = number(
        "Decisions affected by the last swap",
        "Decisions from the change of the prevalence to the swap which the new head would make otherwise: their number,"
        " their share of the decisions of that time, and their expected cost in the units of the task's cost matrix."
        " lifelong cycles affected lists them, most costly first. Empty while the head that serves came by no swap.",
        [
            Query(f"max by (model, environment) (lifelong_affected_decisions{{{POPULATION}}})", "decisions"),
            Query(
                f"100 * max by (model, environment) (lifelong_affected_decisions_share{{{POPULATION}}})",
                "percent",
            ),
            Query(
                f"max by (model, environment) (lifelong_affected_decisions_expected_cost{{{POPULATION}}})",
                "expected cost",
            ),
        ],
        unit="short",
        thresholds=[(None, "text")],
        width=FULL,
    )
    duration = lines(
        "Cycle duration",
        "95 % of the cycles of all populations that judged a window took less than this. It grows with the"
        " window and the calibration set.",
        [
            Query(
                "histogram_quantile(0.95, sum by (le)"
                " (rate(lifelong_cycle_seconds_bucket[$__rate_interval])))",
                "p95",
            )
        ],
        unit="s",
        width=THIRD,
        minimum=0,
    )
    return [
        stacked(outcomes).draw_style(common.GraphDrawStyle.BARS).fill_opacity(80),
        steps(version),
        duration,
        affected,
    ]


_DECIDING = 'route=~"/v1/(predict|logits)"'
"""Requests for predictions; probes, scrapes and the pages of people would hide their failures and latency."""


def traffic() -> list[Panel]:
    """How predictions are answered, how fast, and what was decided."""
    day = f"increase(lifelong_requests_total{{{_DECIDING}"
    outcomes = number(
        "Predictions within a day",
        "Requests to /v1/predict and /v1/logits within 24 hours, of all instances. failed: answered with 5xx, or not at"
        " all. rejected: the client's mistake (4xx). Probes, scrapes and other routes do not count.",
        [
            Query(f'sum({day},status=~"2.."}}[1d]))', "answered"),
            Query(f'sum({day},status=~"4.."}}[1d]))', "rejected"),
            Query(f'sum({day},status=~"5..|none"}}[1d]))', "failed"),
        ],
        unit="short",
        thresholds=[(None, "text")],
        width=FULL,
    )
    requests = lines(
        "Predictions by status",
        "Requests to /v1/predict and /v1/logits per minute by HTTP status; probes, scrapes and other routes do not"
        " count. 4xx are the clients' mistakes; 5xx and none (no answer) are ours.",
        [
            Query(
                f"60 * sum by (status) (rate(lifelong_requests_total{{{_DECIDING}}}[$__rate_interval]))",
                "{{status}}",
            )
        ],
        unit="reqpm",
        width=THIRD,
        minimum=0,
    )
    latency = lines(
        "Latency of predictions",
        "Time from the arrival of a request to /v1/predict or /v1/logits to its answer, failures included: half, 95 %"
        " and 99 % are faster. Empty while there are no such requests.",
        [
            Query(
                f"histogram_quantile({quantile}, sum by (le)"
                f" (rate(lifelong_request_seconds_bucket{{{_DECIDING}}}[$__rate_interval])))",
                name,
            )
            for quantile, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
        ],
        unit="s",
        width=THIRD,
        minimum=0,
    )
    rate = f"sum by (label) (rate(lifelong_predictions_total{{{POPULATION}}}[$__rate_interval]))"
    decisions = lines(
        "Decisions per class",
        "Share of each decision among those made for the chosen population. It is not the prevalence: a classifier's"
        " mistakes bias it, which is why the monitor estimates the prevalence instead of counting decisions.",
        [Query(f"{rate} / on () group_left sum({rate})", "{{label}}")],
        unit="percentunit",
        width=THIRD,
        minimum=0,
        maximum=1,
    )
    return [outcomes, stacked(requests), latency, stacked(decisions)]


def log() -> list[Panel]:
    """Does the database take the predictions, and what waits in the spools?"""
    waiting = lines(
        "Predictions in the spool",
        "Answered predictions that wait on the local disk of a machine for the database. It rises while the database is"
        " away or too slow and falls to 0 within seconds of its return; nothing is lost meanwhile, and the monitor does"
        " not see them yet.",
        [Query("max by (instance) (lifelong_spool_predictions)", "{{instance}}")],
        unit="short",
        width=THIRD,
        minimum=0,
    )
    fill = lines(
        "Fill of the spool",
        "Size of the spool against its bound, maximum_spool_bytes. At 100 % predictions get 503 until the database is"
        " back; LifelongSpoolFills fires at half.",
        [Query("max by (instance) (lifelong_spool_bytes / lifelong_spool_maximum_bytes)", "{{instance}}")],
        unit="percentunit",
        width=THIRD,
        minimum=0,
        maximum=1,
    )
    flow = lines(
        "Into and out of the spools",
        "Predictions per second of all machines that went to a spool instead of the database, and that were brought"
        " from there to the database. Both are 0 while all is well.",
        [
            Query("sum(rate(lifelong_spooled_predictions_total[$__rate_interval]))", "spooled"),
            Query("sum(rate(lifelong_spool_delivered_predictions_total[$__rate_interval]))", "delivered"),
        ],
        unit="cps",
        width=THIRD,
        minimum=0,
    )
    return [waiting, fill, flow]
