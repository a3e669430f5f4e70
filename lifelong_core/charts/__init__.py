"""Charts as SVG markup: pure functions from data to text, for pages of the console, reports and previews.

`time_series`, `state_timeline`, `heatmap` and `bars` have the charts: frozen dataclasses whose `draw()` gives a figure
with its legend and a text alternative, for wide and for small screens. `sparkline` draws a line within a text.
`style` is the style sheet of a page with charts. `scales` has axes and ticks, `markup` elements with escaped text,
`figures` what the charts share.
"""
