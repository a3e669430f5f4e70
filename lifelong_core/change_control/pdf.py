"""Self-contained HTML pages as PDF, by WeasyPrint (extra `pdf`)."""

import re
from functools import cache
from importlib import import_module
from typing import Any

from PIL import ImageFile

from lifelong_core.charts.style import STYLE
from lifelong_core.values.errors import ConfigurationError

_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_COLOUR = re.compile(r"(--[\w-]+): (#\w+);")
_TONE = re.compile(r"\.([\w-]+) \{\s*--c: var\((--[\w-]+)\)")
_OWN_COLOUR = re.compile(r"var\(--c(?:, var\(--accent\))?\)")
_VARIABLE = re.compile(r"--[\w-]+:[^;]*;")
_MEDIA = re.compile(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")


def to_pdf(html: str) -> bytes:
    """A page as PDF; equal pages give equal bytes with the same version of WeasyPrint.

    Raises:
        ConfigurationError: WeasyPrint, or a library of the system that it needs, is not installed.
    """
    truncated = ImageFile.LOAD_TRUNCATED_IMAGES
    try:
        weasyprint: Any = import_module("weasyprint")
    except (ImportError, OSError) as error:
        raise ConfigurationError(
            f"a PDF needs WeasyPrint: {error}.",
            hint="Install the extra `pdf` and Pango (Debian: libpango-1.0-0, libpangoft2-1.0-0), or write a page:"
            " --html FILE.",
        ) from error
    finally:
        # WeasyPrint lets Pillow read damaged images in the whole process; here they are refused.
        ImageFile.LOAD_TRUNCATED_IMAGES = truncated
    drawn = re.sub(r"(<svg\b[^>]*>)", rf"\1<style>{drawing_style()}</style>", html)
    return weasyprint.HTML(string=drawn).write_pdf(pdf_identifier=b"")


@cache
def drawing_style() -> str:
    """The light style of charts for a drawing by itself.

    WeasyPrint applies no rule of the page to a drawing, and knows no variables in it: each rule that uses the colour of
    its tone is repeated for each tone.
    """
    style = _MEDIA.sub("", STYLE)
    colours = dict(_COLOUR.findall(style))
    tones = {tone: colours[name] for tone, name in _TONE.findall(style)}
    written: list[str] = []
    for selector, body in _RULE.findall(style):
        if "svg" in selector or "legend" in selector or "figcaption" in selector:
            continue
        shape = re.sub(r":is\(\.chart, \.sparkline\) |\.chart ", "", selector.strip())
        if _OWN_COLOUR.search(body):
            for tone, colour in tones.items():
                own = f", .{tone}{shape}" if shape.startswith(".") else ""
                written.append(f".{tone} {shape}{own} {{{_OWN_COLOUR.sub(colour, body)}}}")
        else:
            written.append(f"{shape} {{{_VARIABLE.sub('', body)}}}")
    return re.sub(r"var\((--[\w-]+)\)", lambda found: colours.get(found[1], "#000"), " ".join(written))
