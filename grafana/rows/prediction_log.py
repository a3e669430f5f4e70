"""The row about the prediction log and the spools in front of it."""

from grafana.panels import THIRD, Query, plot_series
from grafana.sdk import timeseries


def build_panels() -> list[timeseries.Panel]:
    """Does the database take the predictions, and how many wait in the spools?"""
    return [
        plot_series(
            "Predictions in the spool",
            "Answered predictions that wait on the local disk of a machine for the database. It rises while the"
            " database is away or too slow and falls to 0 within seconds of its return; nothing is lost meanwhile,"
            " and the monitor does not see them yet.",
            [Query("max by (instance) (lifelong_spool_predictions)", "{{instance}}")],
            unit="short",
            width=THIRD,
            minimum=0,
        ),
        plot_series(
            "Fill of the spool",
            "Size of the spool against its bound, maximum_spool_bytes. At 100 % predictions get 503 until the"
            " database is back; LifelongSpoolFills fires at half.",
            [
                Query(
                    "max by (instance) (lifelong_spool_bytes / lifelong_spool_maximum_bytes)", "{{instance}}"
                )
            ],
            unit="percentunit",
            width=THIRD,
            minimum=0,
            maximum=1,
        ),
        plot_series(
            "Into and out of the spools",
            "Predictions per second of all machines that went to a spool instead of the database, and that were"
            " brought from there to the database. Both are 0 while all is well.",
            [
                Query("sum(rate(lifelong_spooled_predictions_total[$__rate_interval]))", "spooled"),
                Query("sum(rate(lifelong_spool_delivered_predictions_total[$__rate_interval]))", "delivered"),
            ],
            unit="cps",
            width=THIRD,
            minimum=0,
        ),
    ]
