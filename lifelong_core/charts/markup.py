"""SVG and HTML elements with escaped text and attributes."""

from html import escape


class Markup(str):
    """Text that is markup already; templates insert it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        """The markup, for templates."""
        return str(self)


def element(tag: str, *content: str, **attributes: str | float | None) -> Markup:
    """An element; content that is no `Markup` is escaped.

    Args:
        tag: name of the element.
        content: text and elements in it.
        attributes: `_` in names stands for `-`, at the end for nothing; an attribute that is None is left out.

    Examples:
        >>> element("text", "a < b", class_="tick", font_size=12.50, x=None)
        '<text class="tick" font-size="12.5">a &lt; b</text>'
        >>> element("g", element("path", d="M0 0"))
        '<g><path d="M0 0"/></g>'
    """
    names = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    written = "".join(f' {name}="{_text(value)}"' for name, value in names if value is not None)
    inner = joined(*content)
    return Markup(f"<{tag}{written}>{inner}</{tag}>" if inner else f"<{tag}{written}/>")


def joined(*content: str) -> Markup:
    """Texts and elements one after the other; what is no `Markup` is escaped."""
    return Markup("".join(one if isinstance(one, Markup) else escape(one) for one in content))


def _text(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else f"{round(value, 1):.10g}"
