"""The style sheet of charts, for light and dark screens and for print; pages with charts include it."""

STYLE = """\
:is(.chart, .sparkline) {
  --ink: #1b232c; --soft: #56616d; --line: #d9d6cd; --back: #fff;
  --good: #2b6a34; --warn: #8a5a00; --bad: #a8251f; --accent: #0a6a6f; --calm: #c9cfd4; --on-calm: #1b232c;
  --on: #fff;
  --s0: #0a6a6f; --s1: #a8451b; --s2: #5b4fb0; --s3: #8a6a00; --s4: #a3246f; --s5: #2f6fb3; --s6: #4d7a1f;
  --s7: #5c5c5c;
}
@media (prefers-color-scheme: dark) { :is(.chart, .sparkline) {
  --ink: #e7ebee; --soft: #a3aeb8; --line: #343e48; --back: #12171c;
  --good: #8fd39a; --warn: #f0c267; --bad: #ff9c94; --accent: #5fc9c4; --calm: #46525d; --on-calm: #e7ebee;
  --on: #12171c;
  --s0: #5fc9c4; --s1: #f0a070; --s2: #b3a8ff; --s3: #e3c75a; --s4: #f08cc4; --s5: #86b8ef; --s6: #a8d278;
  --s7: #b8b8b8;
} }
@media print { :is(.chart, .sparkline) { --ink: #000; --soft: #444; --line: #bbb; --back: #fff; --on: #fff;
  --on-calm: #000; } }
.chart { margin: 0; display: grid; gap: .25rem; }
.chart figcaption { font-weight: 600; }
.chart > svg { width: 100%; max-width: 45rem; height: auto; font-family: inherit; }
.chart > svg.small { display: none; max-width: 36rem; }
.chart text { fill: var(--soft); font-size: 12px; }
.chart text.row { fill: var(--ink); }
.chart .legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; margin: 0; padding: 0;
  font-size: .9375rem; }
.chart .legend li { display: flex; gap: .4rem; align-items: center; }
.chart .key { width: 26px; height: 12px; flex: none; }
.chart .grid { stroke: var(--line); stroke-width: 1; fill: none; }
.series-0 { --c: var(--s0); } .series-1 { --c: var(--s1); } .series-2 { --c: var(--s2);
  } .series-3 { --c: var(--s3); }
.series-4 { --c: var(--s4); } .series-5 { --c: var(--s5); } .series-6 { --c: var(--s6);
  } .series-7 { --c: var(--s7); }
.chart .good { --c: var(--good); } .chart .warn { --c: var(--warn); } .chart .bad { --c: var(--bad); }
.chart .accent { --c: var(--accent); } .chart .calm { --c: var(--calm); --on: var(--on-calm); }
.chart .band { fill: var(--c); opacity: .18; }
:is(.chart, .sparkline) .line { fill: none; stroke: var(--c); stroke-width: 2; }
.chart .line.step { stroke-dasharray: 6 3; }
:is(.chart, .sparkline) .dot { fill: var(--c); }
.chart .whisker { fill: none; stroke: var(--ink); stroke-width: 1.5; }
.chart .whisker.thin { stroke: var(--c); stroke-width: 1; opacity: .6; }
.chart .point { fill: var(--back); stroke: var(--c); stroke-width: 2; }
.chart .mark { stroke: var(--c); stroke-width: 1.5; stroke-dasharray: 4 3; }
.chart .mark + text { fill: var(--c); font-weight: 600; }
.chart .threshold { fill: none; stroke: var(--c); stroke-width: 1.5; stroke-dasharray: 2 3; }
.chart .area { fill: var(--c, var(--accent)); }
.chart text.on { fill: var(--on); }
.chart .area.missing { fill: none; stroke: var(--line); }
.chart .level-0 { --c: var(--accent); fill-opacity: .06; } .chart .level-1 { --c: var(--accent);
  fill-opacity: .16; }
.chart .level-2 { --c: var(--accent); fill-opacity: .28; } .chart .level-3 { --c: var(--accent);
  fill-opacity: .4; }
.chart .level-4 { --c: var(--accent); fill-opacity: .52; } .chart .level-5 { --c: var(--accent);
  fill-opacity: .64; }
.chart .level-6 { --c: var(--accent); fill-opacity: .76; } .chart .level-7 { --c: var(--accent);
  fill-opacity: .88; }
.chart .level-8 { --c: var(--accent); }
svg.sparkline { width: 120px; height: 28px; vertical-align: middle; }
@media (max-width: 60rem) { .chart > svg.wide { display: none; } .chart > svg.small { display: block; } }
@media print { .chart > svg.wide { display: block; } .chart > svg.small { display: none; } }
"""
