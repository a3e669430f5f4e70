"""`lifelong init --mode`: writes the mode to the settings file and changes nothing else in it."""

import tomllib

from lifelong_core.configuration.settings import Settings, settings_file
from lifelong_core.store.files import make_private_file
from lifelong_core.values.errors import ConfigurationError


def write_mode(mode: str) -> None:
    """Make `mode` the common mode: in a new settings file, or as a new table at the end of the present one.

    Args:
        mode: auto, propose or shadow.

    Raises:
        ConfigurationError: the settings cannot be read; the file has a policy with another mode (its lines are never
            rewritten); it cannot be written; or a variable overrides it.
    """
    Settings.load()  # refuses a file that is no TOML or holds unknown settings
    file = settings_file()
    try:
        content = file.read_text(encoding="utf-8") if file.exists() else ""
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.", field="--mode") from error
    policy = tomllib.loads(content).get("policy")
    line = f'mode = "{mode}"'
    if policy is None:
        separator = "" if not content else "\n" if content.endswith("\n") else "\n\n"
        try:
            make_private_file(file)
            with file.open("a", encoding="utf-8") as opened:
                opened.write(f"{separator}[policy]\n{line}\n")
        except OSError as error:
            raise ConfigurationError(
                f"{file} cannot be written: {error.strerror}.", field="--mode"
            ) from error
    elif policy.get("mode", "auto") != mode:
        raise ConfigurationError(
            f"{file} has a policy already, and this command does not rewrite it.",
            field="--mode",
            hint=f"Write {line} under [policy] yourself, then repeat without --mode.",
        )
    in_force = Settings.load().policy.mode
    if in_force != mode:
        raise ConfigurationError(
            f"{file} says {mode}, but a variable sets {in_force}, which wins over the file.",
            field="--mode",
            hint="Unset LIFELONG_POLICY__MODE (or LIFELONG_POLICY), or change it there.",
        )
