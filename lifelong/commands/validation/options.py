"""Options that `validate` and `models validate` share: uncertainty-aware scores, and means over groups."""

from typing import Any

import click

from lifelong_core.design import UncertaintySettings
from lifelong_core.values.uncertainties import UNCERTAINTY_KINDS

OPTIONS = {
    "sigmas": "--sigma",
    "dampings": "--damping",
    "threshold": "--uncertainty-threshold",
    "kind": "--uncertainty-kind",
}
"""By setting"""

aggregate_option = click.option(
    "--aggregate",
    type=click.Choice(["pooled", "by-group"]),
    default="pooled",
    show_default=True,
    help="by-group: metrics of each group (patient), then their mean over the groups.",
)


def uncertainty_options(command: Any) -> Any:
    """Add the options of the settings to a command."""
    options = (
        click.option(
            "--sigma",
            "sigmas",
            metavar="NUMBERS",
            help="Spreads of the threshold of uncertainty-aware scores, ascending, separated by commas.",
        ),
        click.option(
            "--damping",
            "dampings",
            metavar="NUMBERS",
            help="Damping factors of the uncertainties, ascending, separated by commas.  [default: 0,0.5,1,2]",
        ),
        click.option(
            "--uncertainty-threshold",
            "threshold",
            type=float,
            help="Probability from which on uncertainty-aware scores decide positively.  [default: 0.5]",
        ),
        click.option(
            "--uncertainty-kind",
            "kind",
            type=click.Choice(UNCERTAINTY_KINDS),
            help="What the given uncertainties are; values that it cannot have are refused.  [default: other]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def settings_of(options: dict[str, Any]) -> UncertaintySettings | None:
    """The settings that were asked for; None: no option was given.

    Raises:
        InvalidInputError: a value does not fit; the field is the option.
    """
    return UncertaintySettings.of_options(options, OPTIONS)
