"""`lifelong demo`: the whole adaptation loop in one command."""

from pathlib import Path

import click

from lifelong.commands.common import as_json, seed_option


@click.command(short_help="Train, serve, shift and swap within two minutes.")
@seed_option("Seed of the images, the training and the streams.")
@as_json
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Where to save the plot (PNG).")
@click.option("--keep-running", is_flag=True, help="Keep service and monitor running until Ctrl-C.")
def demo(seed: int, *, as_json: bool, plot: Path | None, keep_running: bool) -> None:
    """Train, serve, shift, swap: the whole loop on this machine in one to two minutes.

    A small network is trained on degraded handwritten digits (a stand-in for a clinical classifier),
    served by two workers, and watched by the monitor. Then the class mix shifts, and the monitor corrects
    the decisions without any label. The demo uses a new temporary folder and free ports, and stops its
    processes at the end.
    """
    try:
        from lifelong.demo.main import run_demo
    except ModuleNotFoundError as error:
        from lifelong_core.values.errors import ConfigurationError

        raise ConfigurationError(
            f"the demo needs {error.name}.",
            hint="Install it with the extras cpu (or gpu) and demo: see the README.",
        ) from error
    run_demo(seed, as_json=as_json, plot=plot, keep_running=keep_running)
