"""Pages that show the Grafana dashboards without Grafana: the same grid, from the API of Prometheus.

`preview.preview` makes the page of one dashboard. `source` asks Prometheus; `variables` puts values for `$model`;
`fields` has units, thresholds and words of values; `frames` makes tables of query results; `times` draws values over
time, `panels` the other types of panels; `page.html.jinja` is the page.
"""
