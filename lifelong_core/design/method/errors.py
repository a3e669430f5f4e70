"""What is raised where the recommendation document itself is at fault."""

from lifelong_core.errors import ConfigurationError


class MethodError(ConfigurationError, LookupError):
    """The recommendation document is damaged."""

    code = "method"
