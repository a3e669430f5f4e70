"""`lifelong export`: the log of one environment as a Parquet or CSV file."""

from datetime import UTC, datetime
from pathlib import Path

import click

from lifelong.commands.common import (
    environment_argument,
    model_option,
    open_store,
    output_option,
    replace_option,
)
from lifelong.printing import echo
from lifelong_core.values.errors import ConfigurationError, ConflictError


class Moment(click.ParamType):
    """A day or a time in ISO 8601; without a zone it is UTC."""

    name = "time"

    def convert(
        self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """The aware time."""
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time; write 2026-05-01 or 2026-05-01T12:00+02:00.", param, ctx)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@click.command(short_help="Write the log of an environment to a file.")
@environment_argument
@output_option("The file; its suffix is the format: *.parquet, *.csv or *.csv.gz.", required=True)
@model_option("Only predictions of this model; needed where models have different classes.")
@click.option("--since", type=Moment(), help="Only predictions at or after this time (UTC, or with a zone).")
@click.option("--until", type=Moment(), help="Only predictions before this time.")
@replace_option()
def export(
    environment: str,
    output: Path,
    model: str | None,
    since: datetime | None,
    until: datetime | None,
    *,
    replace: bool,
) -> None:
    """Write the predictions of ENVIRONMENT with their labels to a file; service and monitor may run.

    Groups are in it as hashes only. A CSV file has a column logit_<class> for each class. In a Parquet file, logits are
    one column of lists, and the names of the classes are in the metadata of the schema, under "lifelong".

    \b
    Examples:
      lifelong export clinic-a --output log.parquet
      lifelong export clinic-a --output log.csv.gz --since 2026-05-01
    """
    if output.exists() and not replace:
        raise ConflictError(f"{output} exists already.", field="--output", hint="Replace it with --replace.")
    if not output.parent.is_dir():
        raise ConfigurationError(f"the folder {output.parent} does not exist.", field="--output")
    try:
        from lifelong.export import check_suffix, write_log
    except ImportError as error:
        raise ConfigurationError(
            f"the file cannot be written: {error}.",
            hint='Install the extra, in the clone of lifelong: pip install -c constraints.txt -e ".[export]".',
        ) from error
    check_suffix(output)
    with open_store() as store:
        try:
            rows = write_log(store, output, environment, model=model, since=since, until=until)
        except OSError as error:
            raise ConfigurationError(
                f"{output} cannot be written: {error.strerror or error}.",
                field="--output",
                hint="Choose a folder that this user can write to, on a disk with room.",
            ) from error
    echo(f"Wrote {rows} predictions to {output}.")
