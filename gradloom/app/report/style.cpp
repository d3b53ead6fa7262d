#include "gradloom/app/report/parts.h"

namespace gradloom::app {

// The colours of splits are from Okabe and Ito's palette, which colour-blind people can tell apart; test is dashed as
// well.
const char* report_style() {
  return R"css(
:root {
  color-scheme: light dark;
  --paper: #ffffff; --sheet: #f6f7f9; --ink: #1b1f27; --quiet: #667085; --rule: #e4e7ec; --faint: #eef0f3;
  --curve: #0b62b0; --node: #1b1f27; --wire: #475467;
  --train: #0072b2; --validation: #d55e00; --test: #009e73; --a: #7b5ea7; --b: #b8860b; --c: #56b4e9; --d: #4d4d4d;
  --warn-paper: #fff7e6; --warn-rule: #e69f00; --warn-ink: #6b4a00;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #14171c; --sheet: #1b1f26; --ink: #e7e9ee; --quiet: #98a2b3; --rule: #2c323c; --faint: #20252d;
    --curve: #6cb6f5; --node: #e7e9ee; --wire: #a3adbd;
    --train: #56b4e9; --validation: #f2955b; --test: #2fc79a; --a: #b79ae0; --b: #e0b83f; --c: #9bd3f5; --d: #c4c8d0;
    --warn-paper: #2a2213; --warn-rule: #c98a00; --warn-ink: #f1d9a5;
  }
}
* { box-sizing: border-box; }
html { background: var(--paper); -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 72px 40px 96px; max-width: 1200px; color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", sans-serif;
}
header p { margin: 0; }
.eyebrow { font-size: 13px; letter-spacing: .08em; color: var(--quiet); }
h1 { margin: 4px 0 6px; font-size: 38px; line-height: 1.2; font-weight: 650; letter-spacing: -.015em; overflow-wrap: anywhere; }
h2 { margin: 0 0 4px; font-size: 21px; line-height: 1.3; font-weight: 620; letter-spacing: -.005em; }
.subtitle { font-size: 18px; color: var(--quiet); }
.note { margin: 0 0 20px; max-width: 46em; color: var(--quiet); }
.quiet { margin: 8px 0 0; font-size: 14px; color: var(--quiet); }
section { margin-top: 64px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 28px 36px; margin: 44px 0 0; padding: 0; }
.figures div { border-top: 2px solid var(--ink); padding-top: 10px; }
.figures dt { font-size: 14px; color: var(--quiet); }
.figures dd { margin: 2px 0 0; font-size: 27px; line-height: 1.25; font-weight: 600; letter-spacing: -.01em; font-variant-numeric: tabular-nums; white-space: nowrap; }
.figures .long { font-size: 19px; line-height: 1.78; white-space: normal; }
.figures dd span { font-size: 15px; font-weight: 400; color: var(--quiet); letter-spacing: 0; }
.warnings { margin: 40px 0 0; padding: 14px 20px; list-style: none; background: var(--warn-paper); color: var(--warn-ink); border-left: 4px solid var(--warn-rule); border-radius: 4px; }
.warnings li { padding: 2px 0; }
svg { display: block; font-family: inherit; }
.chart, .network { width: 100%; height: auto; }
.network { margin: 12px auto 0; }
.wide { overflow-x: auto; }
.grid { stroke: var(--rule); }
.axis { stroke: var(--quiet); }
.mark { stroke: var(--quiet); stroke-dasharray: 3 4; }
.tick, .marktext { font-size: 13px; fill: var(--quiet); font-variant-numeric: tabular-nums; }
.label { font-size: 14px; fill: var(--quiet); }
.series { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.envelope { stroke: none; fill-opacity: .2; }
.s-train { --own: var(--train); } .s-validation { --own: var(--validation); } .s-test { --own: var(--test); }
.s-a { --own: var(--a); } .s-b { --own: var(--b); } .s-c { --own: var(--c); } .s-d { --own: var(--d); }
.series { stroke: var(--own); }
.envelope { fill: var(--own); }
.series.s-validation, .series.s-test { stroke-width: 2.2; }
.series.s-test { stroke-dasharray: 7 5; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 28px; margin: 12px 0 10px; padding: 0; list-style: none; font-size: 15px; }
.legend li { display: flex; align-items: center; gap: 8px; }
.legend .last { color: var(--quiet); font-variant-numeric: tabular-nums; }
.wire { fill: none; stroke: var(--wire); stroke-linecap: round; }
.node { fill: var(--node); stroke: var(--paper); stroke-width: 2; }
.factor { fill: none; stroke: var(--node); stroke-width: 1.4; }
circle.times { fill: var(--paper); stroke: var(--node); stroke-width: 1.6; }
path.times { fill: none; stroke: var(--node); stroke-width: 1.8; stroke-linecap: round; }
.tie { stroke-opacity: .4; stroke-width: 1.2; }
.dot { fill: var(--own); stroke: var(--paper); stroke-width: 1.5; }
.sample { fill: none; stroke: var(--quiet); stroke-width: 1.5; }
.ring { fill: none; stroke: var(--ink); stroke-width: 2.2; }
.name { font-size: 15px; fill: var(--ink); }
.frame { fill: var(--paper); stroke: var(--rule); stroke-width: 1.2; }
.function:hover .frame { stroke: var(--ink); }
.outside { fill: var(--faint); }
.zero { stroke: var(--rule); }
.curve { fill: none; stroke: var(--curve); stroke-linejoin: round; stroke-linecap: round; }
.maps { display: flex; flex-wrap: wrap; align-items: flex-end; gap: 28px 44px; margin-top: 16px; }
.map { max-width: 100%; height: auto; fill: var(--curve); }
.paper { fill: var(--faint); }
figure { margin: 0; }
.cells { display: block; max-width: 100%; height: auto; image-rendering: pixelated; margin-top: 14px; border: 1px solid var(--rule); }
figcaption { margin-top: 4px; font-size: 14px; color: var(--quiet); }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(120px, 1fr)); gap: 22px 18px; margin-top: 18px; }
.gallery svg { width: 100%; height: auto; }
.gallery figcaption { display: flex; justify-content: space-between; gap: 8px; font-size: 13px; color: var(--ink); }
.gallery span { color: var(--quiet); font-variant-numeric: tabular-nums; }
.formula { display: flex; flex-wrap: wrap; align-items: baseline; gap: 10px 8px; margin: 18px 0 6px; padding: 10px 0; overflow-x: auto; }
.formula math { font-size: 24px; math-style: normal; }
.formula + pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 30px 26px; margin-top: 18px; }
.plots svg { width: 100%; height: auto; }
.plots .tick { font-size: 11px; }
.plots figcaption { color: var(--ink); }
.plots figcaption p { margin: 0; display: flex; justify-content: space-between; gap: 10px; }
.plots figcaption span { color: var(--quiet); font-variant-numeric: tabular-nums; }
.plots figcaption math { font-size: 15px; }
.plots .like { overflow-x: auto; color: var(--quiet); }
.plots .curve { stroke-width: 2.2; }
.density { fill: var(--rule); }
.candidate { fill: none; stroke: var(--validation); stroke-width: 1.8; stroke-dasharray: 5 4; stroke-linecap: round; }
.scatter { width: 100%; max-width: 620px; height: auto; }
.scatter .dot { stroke: none; fill-opacity: .5; }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 0 56px; }
.tables > section { min-width: 0; }
.tables > .broad { grid-column: 1 / -1; }
.scroll { overflow-x: auto; margin-top: 10px; }
table { width: 100%; border-collapse: collapse; font-size: 15px; }
th { padding: 7px 12px; text-align: left; font-weight: 500; font-size: 14px; color: var(--quiet); border-bottom: 1px solid var(--quiet); vertical-align: bottom; }
td { padding: 7px 12px; border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
.bar { width: 42%; }
.bar div { display: flex; align-items: center; justify-content: flex-end; gap: 12px; }
.bar b { min-width: 4em; font-weight: inherit; }
.bar i { flex: 1 1 auto; height: 8px; border-radius: 2px; background: linear-gradient(var(--train), var(--train)) left / var(--share) 100% no-repeat var(--faint); }
details { margin-top: 64px; }
summary { cursor: pointer; font-size: 21px; font-weight: 620; }
pre { margin: 14px 0 0; padding: 20px 24px; overflow-x: auto; background: var(--sheet); border-radius: 6px; font: 14px/1.6 ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace; }
@media (max-width: 640px) { body { padding: 36px 18px 56px; } h1 { font-size: 29px; } section, details { margin-top: 48px; } }
@media print {
  body { padding: 0; font-size: 11pt; max-width: none; }
  section { margin-top: 28pt; break-inside: avoid; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  pre { white-space: pre-wrap; }
  .bar i, .warnings { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)css";
}

}  // namespace gradloom::app
