"""Options of the form [NAME=]FILE, which belong to one of several models."""

from collections.abc import Sequence
from pathlib import Path

import click


def named_file(text: str, option: str) -> tuple[str | None, Path]:
    """The name, None without one, and the file of an option.

    Raises:
        click.UsageError: there is no such file.
    """
    if Path(text).is_file():
        return None, Path(text)
    name, _, path = text.partition("=")
    if not Path(path).is_file():
        raise click.UsageError(f"{option}: there is no file {path or text!r}.")
    return name.strip() or None, Path(path)


def data_by_model(given: Sequence[str]) -> dict[str, Path]:
    """The labelled data of each model by its name: as given, else that of the file.

    Raises:
        click.UsageError: there is no such file, or two have one name.
    """
    files: dict[str, Path] = {}
    for text in given:
        named, path = named_file(text, "DATA")
        name = named or path.stem
        if name in files:
            raise click.UsageError(f"two models have the name {name}; give names: NAME=FILE.")
        files[name] = path
    return files


def files_by_model(models: Sequence[str], given: Sequence[str], option: str) -> dict[str, list[Path]]:
    """The files of each model, in the order of the options; the name may be left out where there is one model.

    Raises:
        click.UsageError: there is no such file or model.
    """
    files: dict[str, list[Path]] = {}
    for text in given:
        named, path = named_file(text, option)
        name = models[0] if named is None and len(models) == 1 else named
        if name is None or name not in models:
            raise click.UsageError(f"{option} takes NAME=FILE with the name of a model.")
        files.setdefault(name, []).append(path)
    return files


def file_by_model(models: Sequence[str], given: Sequence[str], option: str) -> dict[str, Path]:
    """One file of each model.

    Raises:
        click.UsageError: there is no such file or model, or a model has several files.
    """
    files = files_by_model(models, given, option)
    if any(len(paths) > 1 for paths in files.values()):
        raise click.UsageError(f"{option} takes NAME=FILE with the name of a model, once for each.")
    return {name: paths[0] for name, paths in files.items()}
