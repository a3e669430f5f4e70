"""The option of means over groups, which `validate` and `models validate` share."""

import click

aggregate_option = click.option(
    "--aggregate",
    type=click.Choice(["pooled", "by-group"]),
    default="pooled",
    show_default=True,
    help="by-group: metrics of each group (patient), then their mean over the groups.",
)
