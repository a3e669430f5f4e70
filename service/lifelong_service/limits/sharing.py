"""Fair shares of a bounded resource among an unknown number of users."""


def has_room(*, own: float, total: float, limit: float) -> bool:
    """Whether one of several users of a resource may take more of it.

    Each may hold as much as is free: a single user at most half of the limit, two users a third each, so that a new
    user always gets a share. These are the dynamic thresholds of Choudhury and Hahne (1998).

    Args:
        own: amount that this user holds.
        total: amount that all users hold together.
        limit: size of the resource.

    Examples:
        >>> has_room(own=49, total=49, limit=100), has_room(own=50, total=50, limit=100)
        (True, False)
        >>> has_room(own=0, total=50, limit=100)
        True
    """
    return own + total < limit
