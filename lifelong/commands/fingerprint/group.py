"""`lifelong fingerprint` and its sub-commands."""

import click

from lifelong.commands.common import CommandGroup
from lifelong.commands.fingerprint.exchange import export, import_
from lifelong.commands.fingerprint.extractor import extractor
from lifelong.commands.fingerprint.make import make, make_private
from lifelong.commands.fingerprint.show import compare, show


@click.group(cls=CommandGroup, short_help="Describe a task by its images, without sharing any.")
def fingerprint() -> None:
    """Fingerprints of tasks: small files that say how similar the images of two tasks are.

    \b
    1. One institution makes an extractor reference (extractor make) and shares
       it together with the file of the weights.
    2. Everyone makes fingerprints of own images with these two files (make).
    3. Files can be compared (compare), or put into the knowledge base (import).

    Fingerprints of different extractor references cannot be compared.
    """


for command in (make, show, compare, make_private, import_, export, extractor):
    fingerprint.add_command(command)
