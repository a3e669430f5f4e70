"""Error of a damaged recommendation document."""

from lifelong_core.values.errors import ConfigurationError


class MethodError(ConfigurationError, LookupError):
    """The recommendation document is damaged."""

    code = "method"
